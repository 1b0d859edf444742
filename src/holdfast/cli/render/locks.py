"""The locks that are held."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from holdfast.cli.render.tables import empty, moment, table, took
from holdfast.services.views import LockView


def lock_table(items: Sequence[LockView]) -> RenderableType:
    if not items:
        return empty("locks are held")
    headings = ("LOCK", "HOLDER", "EPOCH", "SINCE", "LEFT")
    rows = [
        [one.name, one.holder, str(one.epoch), moment(one.acquired), took(one.remaining)]
        for one in items
    ]
    return table(headings, rows, right=("EPOCH", "LEFT"), whole=("LOCK",))
