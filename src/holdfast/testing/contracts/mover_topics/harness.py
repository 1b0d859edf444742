"""What every mover test gets: a source and a target with a store and a mover each, a move between
them, and all that can be read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from msgspec.structs import replace

from holdfast.ports.mover import KINDS, Kind, MoveMark, Mover, RunRecord
from holdfast.ports.store import RunFilter, Store
from holdfast.testing.clock import ManualClock
from holdfast.testing.contracts.store_topics.harness import StoreHarness

LEAVING = MoveMark("leaving", "m1", "redis://elsewhere/0", 1_700_000_000.0)
MOVED = replace(LEAVING, state="moved")
ARRIVING = replace(LEAVING, state="arriving")


class StoreLocation(Protocol):
    """Where a store is: its store and its mover may be made any number of times, and find the same
    data."""

    def store(self, clock: ManualClock) -> Store: ...

    def mover(self, clock: ManualClock) -> Mover: ...


async def move(source: Mover, target: Mover, limit: int = 4) -> None:
    """All that one store holds to another, as the port says it is done."""
    await source.hold(LEAVING)
    await target.hold(ARRIVING)
    for kind in KINDS:
        after: str | None = None
        while True:
            page = await source.export(kind, after, limit)
            await target.adopt(kind, numbered(page.records))
            if (after := page.after) is None:
                break
    await target.continue_from((await source.move_state()).numbers)
    await source.hold(MOVED)
    await target.release()


async def all_of(mover: Mover, kind: Kind) -> list[Any]:
    return numbered((await mover.export(kind, None, 1000)).records)


def numbered(records: list[Any]) -> list[Any]:
    """Runs with the positions of their first events as their numbers."""
    for record in records:
        if isinstance(record, RunRecord):
            record.run.seq = record.history[0].position
    return records


async def everything(store: Store) -> dict[str, Any]:
    """All that the read methods of a store return."""
    runs = await store.runs(RunFilter(), limit=10_000)
    return {
        "runs": [replace(run, seq=0) for run in runs],
        "count": await store.count(RunFilter()),
        "history": [await store.history(run.id) for run in runs],
        "checkpoints": [await store.checkpoints(run.id) for run in runs],
        "quarantined": [await store.quarantined(run.id) for run in runs],
        "logs": [await store.logs(run.id) for run in runs],
        "letters": await store.dead_letters(open_only=False, limit=10_000),
        "open": await store.dead_letters(tenant="acme"),
        "lanes": await store.lanes(),
        "locks": await store.locks(),
        "audit": await store.audit(limit=10_000),
        "records": (await store.records("")).records,
        "outbox": await store.outbox(0, 10_000),
    }


class MoverHarness:
    """A source and a target, each with its store, its mover, and one clock."""

    def __init__(self, make_location: Callable[[], StoreLocation]) -> None:
        self.clock = ManualClock()
        self._locations = [make_location(), make_location()]
        self._open: list[Any] = []

    async def __aenter__(self) -> MoverHarness:
        self.source, self.target = [await self.mover(location) for location in self._locations]
        self.source_store = await self.open_source()
        return self

    async def __aexit__(self, *_: object) -> None:
        for resource in reversed(self._open):
            await resource.close()

    async def mover(self, location: StoreLocation) -> Mover:
        mover = location.mover(self.clock)
        await mover.open()
        self._open.append(mover)
        return mover

    async def open_source(self) -> StoreHarness:
        return await self._open_store(self._locations[0])

    async def open_target(self) -> StoreHarness:
        return await self._open_store(self._locations[1])

    async def _open_store(self, location: StoreLocation) -> StoreHarness:
        store = location.store(self.clock)
        await store.open()
        self._open.append(store)
        return StoreHarness(store, self.clock, location.store)

    async def moved(self) -> StoreHarness:
        """Move, and open the target."""
        await move(self.source, self.target)
        return await self.open_target()


class MoverTopics:
    """What a suite needs from its adapter."""

    def make_location(self) -> StoreLocation:
        """An empty location, another one each time."""
        raise NotImplementedError("say where the store under test is")


def mover_test(test: Callable[[Any, MoverHarness], Awaitable[None]]) -> Callable[[Any], None]:
    def run_test(self: MoverTopics) -> None:
        async def run() -> None:
            async with MoverHarness(self.make_location) as harness:
                await test(self, harness)

        asyncio.run(run())

    run_test.__name__, run_test.__qualname__, run_test.__doc__ = (
        test.__name__,
        test.__qualname__,
        test.__doc__,
    )
    return run_test
