"""What the movers of SQL stores have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from holdfast.model.machine.facts import RunFacts
from holdfast.ports.mover import AuditRecord, Page, RunRecord


def without_lease(run: RunFacts, mono: float) -> RunRecord:
    """A run as it is moved. A delay that ends later than it can was given before the host was
    restarted, or by a clock that has since been set back: it is over."""
    wait = 0.0 if run.due is None else run.due - mono
    moved = replace(run, due=None, delay=0.0, lease_until=None, lease_ttl=0.0)
    return RunRecord(moved, wait if 0.0 < wait <= run.delay else 0.0)


def named_page(rows: Sequence[Sequence[Any]], make: Callable[..., Any], limit: int) -> Page:
    """Rows in the order of their first column, by which the next page goes on."""
    return Page([make(*row) for row in rows], rows[-1][0] if len(rows) == limit else None)


def audit_page(rows: Sequence[Sequence[Any]], after: int, limit: int) -> Page:
    """Entries are numbered as they were written."""
    entries = [AuditRecord(number, *row) for number, row in enumerate(rows, after + 1)]
    return Page(entries, str(after + limit) if len(rows) == limit else None)
