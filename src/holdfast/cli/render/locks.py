"""The locks that are held."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from holdfast.cli.render.tables import Cell, empty, moment, table, took
from holdfast.services.held_locks import LockView


def lock_table(items: Sequence[LockView]) -> RenderableType:
    if not items:
        return empty("locks are held")
    headings = ("KIND", "LOCK", "HOLDER", "FOR", "EPOCH", "SINCE", "LEFT")
    return table(headings, map(_row, items), right=("EPOCH", "LEFT"), whole=("LOCK", "FOR"))


def _row(lock: LockView) -> list[Cell]:
    return [
        lock.kind,
        lock.name,
        lock.holder,
        lock.held_for,
        "" if lock.epoch is None else str(lock.epoch),
        moment(lock.acquired),
        "" if lock.remaining is None else took(lock.remaining),
    ]
