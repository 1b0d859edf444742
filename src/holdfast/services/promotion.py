"""Promotion: moving everything from one store to another, checking it, and closing the old one.

    1  hold the source      nobody writes to it any more; its leases end; it is `leaving`
    2  hold the target      it is `arriving`: nobody works with what is not complete
    3  copy                 in pages; runs in the order of acceptance
    4  compare              everything is read back from both sides, run by run
    5  close the source     it is `moved`: who opens it is told where its runs are
    6  open the target

Nothing is taken from the source before 5, and then nothing but the right to work on it. Whatever
line the process dies on, at most one of the two stores can be worked with, and the same command
goes on where it was: the marks carry the move's id, and the target knows the last run that has
arrived."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count

from msgspec import Struct, field

from holdfast.errors import ConfigurationError, Conflict, HoldfastError, NotFound
from holdfast.model.clock import Clock
from holdfast.model.ids import new_id
from holdfast.ports.mover import KINDS, AuditRecord, Mark, Mover, RunRecord, Standing
from holdfast.services.inventory import BlobCheck, Inventory, others, pages, records

NAMED = 5
"""How many of many are named in a message."""

Told = Callable[[str, int, int], None]
"""Is told what is being done, how many runs that was done for, and how many there are."""


class Different(HoldfastError):
    """The check has found that the two stores do not hold the same."""


class Place(Struct):
    """A store: its mover, and its URL fit to be shown."""

    mover: Mover
    name: str


@asynccontextmanager
async def opened(place: Place, *, create: bool = False) -> AsyncIterator[Mover]:
    if not create and not await place.mover.exists():
        raise NotFound(f"there is no store at {place.name}")
    await place.mover.open()
    try:
        yield place.mover
    finally:
        await place.mover.close()


class Outlook(Struct):
    """What a promotion would do, and what stands in its way."""

    inventory: Inventory
    target: str
    """`new`, `empty`, `half filled` or `in use`."""
    obstacles: list[str] = field(default_factory=list)


class Promotion:
    """From one place to another."""

    def __init__(
        self, source: Place, target: Place, clock: Clock, told: Told, blobs: BlobCheck
    ) -> None:
        self._source = source
        self._target = target
        self._clock = clock
        self._told = told
        self._blobs = blobs

    # --- looking ----------------------------------------------------------------------------------

    async def outlook(self, *, force: bool = False) -> Outlook:
        """Read all of the source and look at the target, changing nothing."""
        async with opened(self._source) as source:
            there = await source.standing()
            here = await self._look_at_target()
            obstacles = [
                *self._source_obstacles(there, force),
                *self._target_obstacles(there, here),
            ]
            return Outlook(await self._count(there), _described(here), obstacles)

    async def _look_at_target(self) -> Standing | None:
        """None if there is no store yet."""
        if not await self._target.mover.exists():
            return None
        async with opened(self._target) as target:
            return await target.standing()

    async def _count(self, there: Standing) -> Inventory:
        inventory = Inventory()
        async for record in others(self._source.mover):
            inventory.add(record)
        done = count(1)
        async for record in records(self._source.mover, "runs"):
            inventory.add(record)
            await self._blobs.look(record)
            self._told("read", next(done), there.runs)
        return inventory

    # --- moving -----------------------------------------------------------------------------------

    async def move(self, actor: str, *, force: bool = False) -> Inventory:
        """Raises Conflict when something stands in the way, and `Different` when the check
        fails."""
        async with opened(self._source) as source:
            there = await source.standing()
            _refuse(self._source_obstacles(there, force))
            async with opened(self._target, create=True) as target:
                here = await target.standing()
                _refuse(self._target_obstacles(there, here))
                inventory = await self._move(there, here)
                await self._hand_over(inventory, actor)
        return inventory

    async def _move(self, there: Standing, here: Standing) -> Inventory:
        if there.mark is not None and there.mark.state == "moved":  # it died after the check
            return await self._count(there)
        await self._hold(there.mark, here.mark)
        await self._copy()
        return await self._compare()

    async def _hold(self, leaving: Mark | None, arriving: Mark | None) -> None:
        source, target, now = self._source, self._target, self._clock.now()
        move = leaving.move if leaving else new_id(now)
        if leaving is None:
            await source.mover.hold(Mark("leaving", move, target.name, now))
        if arriving is None:
            await target.mover.hold(Mark("arriving", move, source.name, now))
        held = (await source.mover.standing()).mark
        if held is None or held.state != "leaving":
            await source.mover.release()
            raise ConfigurationError(
                f"{source.name} and {target.name} are the same store: nothing was moved"
            )

    async def _copy(self) -> None:
        source, target = self._source.mover, self._target.mover
        there, here = await source.standing(), await target.standing()
        for kind in KINDS[:-1]:
            async for page in pages(source, kind):
                await target.adopt(kind, page)
        done = here.runs
        self._told("moved", done, there.runs)
        async for page in pages(source, "runs", here.last_run):
            await target.adopt("runs", page)
            done += len(page)
            self._told("moved", done, there.runs)
        await target.go_on_from(there.numbers)

    async def _compare(self) -> Inventory:
        """Read both sides back. The source's inventory, when all is the same."""
        source, target = self._source.mover, self._target.mover
        there, here = Inventory(), Inventory()
        for mover, inventory in ((source, there), (target, here)):
            async for record in others(mover):
                inventory.add(record)
        total = (await source.standing()).runs
        differing = await self._compare_runs(there, here, total)
        kinds = there.differences(here)
        if differing or kinds:
            raise Different(self._explain(differing, kinds))
        return there

    async def _compare_runs(self, there: Inventory, here: Inventory, total: int) -> list[str]:
        """The runs that are not the same on both sides."""
        differing: list[str] = []
        done = count(1)
        copies = records(self._target.mover, "runs")
        async for record in records(self._source.mover, "runs"):
            copy: RunRecord | None = await anext(copies, None)
            digest = there.add(record)
            if copy is None or here.add(copy) != digest:
                differing.append(record.run.id)
            await self._blobs.look(record)
            self._told("compared", next(done), total)
        return [*differing, *[surplus.run.id async for surplus in copies]]

    def _explain(self, differing: list[str], kinds: list[str]) -> str:
        runs = f"; {len(differing)} runs differ: {_some(differing)}" if differing else ""
        return (
            f"{self._target.name} does not hold what {self._source.name} holds: "
            f"{', '.join(kinds)}{runs}. Both are "
            "held and nothing is lost: take it back with --undo, empty the target, and try again"
        )

    async def _hand_over(self, inventory: Inventory, actor: str) -> None:
        source, target, now = self._source, self._target, self._clock.now()
        mark = (await source.mover.standing()).mark
        assert mark is not None, "it was held, and only we release it"
        if mark.state == "leaving":
            await source.mover.hold(Mark("moved", mark.move, target.name, now))
        audit = inventory.amounts.get("audit entries")
        number = (audit.count if audit else 0) + 1
        await target.mover.adopt(
            "audit", [AuditRecord(number, now, actor, "store.promote", source.name, mark.move)]
        )
        await target.mover.release()

    # --- taking back ------------------------------------------------------------------------------

    async def undo(self, *, force: bool = False) -> None:
        """Let the source go on as if nothing had been moved."""
        async with opened(self._source) as source:
            there = await source.standing()
            if there.mark is None or there.mark.state == "arriving":
                raise Conflict(
                    f"there is nothing to take back: {self._source.name} was not moved anywhere"
                )
            if there.mark.other != self._target.name:
                raise Conflict(
                    f"{self._source.name} was moved to {there.mark.other}, not to "
                    f"{self._target.name}"
                )
            if there.mark.state == "moved":
                await self._close_target(there, there.mark, force)
            await source.release()

    async def _close_target(self, there: Standing, mark: Mark, force: bool) -> None:
        """Nobody may go on there when the source goes on."""
        async with opened(self._target) as target:
            here = await target.standing()
            if here.mark is not None:
                return
            if here.numbers.position > there.numbers.position and not force:
                raise Conflict(
                    f"{self._target.name} has gone on since then, and {self._source.name} would "
                    "know nothing of that: "
                    "promote it to a new store instead, or add --force to leave that behind"
                )
            await target.hold(Mark("moved", mark.move, self._source.name, self._clock.now()))

    # --- obstacles --------------------------------------------------------------------------------

    def _source_obstacles(self, there: Standing, force: bool) -> list[str]:
        name, mark = self._source.name, there.mark
        if mark is None:
            return [_at_work(name, there)] if there.holders and not force else []
        if mark.state == "arriving" or mark.other != self._target.name:
            return [f"{name} {mark.meaning}"]
        return []

    def _target_obstacles(self, there: Standing, here: Standing | None) -> list[str]:
        name = self._target.name
        if here is None:
            return []
        if here.mark is None and there.mark is not None and there.mark.state == "moved":
            return [f"{self._source.name} {there.mark.meaning}"]
        if here.mark is None:
            return (
                []
                if here.empty
                else [f"{name} has {_contents(here)} already: promote to an empty store"]
            )
        ours = (
            there.mark is not None
            and there.mark.move == here.mark.move
            and here.mark.state == "arriving"
        )
        if ours:
            return []
        if here.mark.state == "arriving":
            return [
                f"{name} was half filled by another move, from {here.mark.other}: empty it, or "
                "choose another place"
            ]
        return [f"{name} {here.mark.meaning}"]


def _refuse(obstacles: list[str]) -> None:
    for obstacle in obstacles:
        raise Conflict(obstacle)


def _described(here: Standing | None) -> str:
    if here is None:
        return "new"
    if here.mark is not None and here.mark.state == "arriving":
        return "half filled"
    return "empty" if here.empty and here.mark is None else "in use"


def _contents(here: Standing) -> str:
    return f"{here.runs} runs" if here.runs else "dead letters or audit entries"


def _at_work(name: str, there: Standing) -> str:
    held = [f"{holder.what} ({holder.who})" for holder in there.holders]
    return f"workers are alive on {name}: {_some(held)}. Stop them, or add --force to take their work from them"


def _some(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
