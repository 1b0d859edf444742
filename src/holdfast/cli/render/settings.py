"""The settings in force, and where each comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from holdfast.cli.render.tables import table


def setting_table(items: Sequence[Any], origin: bool) -> RenderableType:
    headings = ("SETTING", "VALUE", "FROM") if origin else ("SETTING", "VALUE")
    rows = [
        [one.name, one.value, Text(one.origin, style=_faint(one.origin))][: len(headings)]
        for one in items
    ]
    return table(headings, rows, whole=("SETTING", "VALUE"), free="FROM")


def _faint(origin: str) -> str:
    return "dim" if origin == "default" else ""
