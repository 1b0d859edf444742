"""Finding what people mean: a run by its id, its idempotency key, or the start of its id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from holdfast.errors import NotFound
from holdfast.model.ids import may_begin_id
from holdfast.model.limits import is_text
from holdfast.model.run import Run
from holdfast.ports.store import RunFilter, Store
from holdfast.services.views import RunSummary

AnyRun = TypeVar("AnyRun", Run, RunSummary)

LISTED = 10
"""Runs that an error lists."""


async def find_run(store: Store, name: str, *, tenant: str | None = None) -> Run:
    """The run that is meant. What matches whole comes first: an id, then a key, then the start of
    an id. Raises NotFound if several match, and lists them."""
    if not is_text(name):  # from a terminal, where it may be any bytes
        raise _unknown(name)
    run = await store.run(name)
    if run is not None and tenant in (None, run.tenant):
        return run
    if not name:
        raise _unknown(name)
    if runs := await store.runs(RunFilter(tenant, key=name), limit=LISTED + 1):
        return the_only(name, runs)
    if not may_begin_id(name):  # a store may have to look at all its ids
        raise _unknown(name)
    runs = await store.runs(RunFilter(tenant, id_prefix=name), limit=LISTED + 1)
    return the_only(name, runs, "begin with")


def the_only(name: str, runs: Sequence[AnyRun], description: str = "have the key") -> AnyRun:
    """The one run that was found. Raises NotFound if there is none, and if there are several."""
    if not runs:
        raise _unknown(name)
    if len(runs) > 1:
        raise _ambiguous(name, runs, description)
    return runs[0]


def _unknown(name: str) -> NotFound:
    return NotFound(f"no run {name!r}; `holdfast runs list` shows what there is")


def _ambiguous(name: str, runs: Sequence[Run | RunSummary], description: str) -> NotFound:
    lines = [f"  {run.id}  {run.pipeline} of {run.tenant}, {run.state}" for run in runs[:LISTED]]
    more = ["  and others"] if len(runs) > LISTED else []
    return NotFound(
        "\n".join(
            [
                f"several runs {description} {name!r}; give the whole id of one of them:",
                *lines,
                *more,
            ]
        )
    )
