"""What `holdfast setup` has found and done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import RenderableType
from rich.text import Text

from holdfast.cli.render.tables import table

STYLES = {"missing": "yellow", "differs": "yellow", "created": "green", "changed": "green"}


class CheckedResource(Protocol):
    """A resource, and what was found or done."""

    @property
    def kind(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def differences(self) -> Sequence[object]: ...


def setup_table(items: Sequence[CheckedResource]) -> RenderableType:
    rows = [
        [
            checked.kind,
            checked.name,
            Text(checked.status, style=STYLES.get(checked.status, "dim")),
            "; ".join(map(str, checked.differences)),
        ]
        for checked in items
    ]
    return table(("KIND", "NAME", "STATUS", "DIFFERENCE"), rows, whole=("NAME",), free="DIFFERENCE")
