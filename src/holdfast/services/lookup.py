"""Finding what people mean: a run by the start of its id."""

from __future__ import annotations

from holdfast.errors import NotFound
from holdfast.model.run import Run
from holdfast.ports.store import RunFilter, Store


async def find_run(store: Store, id_or_prefix: str) -> Run:
    """A run by its id or the unique start of it."""
    run = await store.run(id_or_prefix)
    if run is not None:
        return run
    found = await store.runs(RunFilter(id_prefix=id_or_prefix), limit=2) if id_or_prefix else []
    if not found:
        raise NotFound(f"no run {id_or_prefix!r}; `holdfast runs list` shows what there is")
    if len(found) > 1:
        raise NotFound(f"several runs begin with {id_or_prefix!r}; give more of the id")
    return found[0]
