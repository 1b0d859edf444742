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
from holdfast.ports.mover import KINDS, AuditRecord, MoveMark, Mover, MoveState, RunRecord
from holdfast.services.inventory import BlobCheck, Inventory, all_but_runs, pages, records

NAMED = 5
"""How many of many are named in a message."""

ReportProgress = Callable[[str, int, int], None]
"""Is told what is being done, how many runs that was done for, and how many there are."""


class Different(HoldfastError):
    """The check has found that the two stores do not hold the same."""


class NamedMover(Struct):
    """A store: its mover, and its URL fit to be shown."""

    mover: Mover
    name: str


@asynccontextmanager
async def opened(store: NamedMover, *, create: bool = False) -> AsyncIterator[Mover]:
    if not create and not await store.mover.exists():
        raise NotFound(f"there is no store at {store.name}")
    await store.mover.open()
    try:
        yield store.mover
    finally:
        await store.mover.close()


class PromotionPlan(Struct):
    """What a promotion would do, and what stands in its way."""

    inventory: Inventory
    target: str
    """`new`, `empty`, `half filled` or `in use`."""
    obstacles: list[str] = field(default_factory=list)


class Promotion:
    """Moves everything from one store to another."""

    def __init__(
        self,
        source: NamedMover,
        target: NamedMover,
        clock: Clock,
        report_progress: ReportProgress,
        blobs: BlobCheck,
    ) -> None:
        self._source = source
        self._target = target
        self._clock = clock
        self._report_progress = report_progress
        self._blobs = blobs

    # --- looking ----------------------------------------------------------------------------------

    async def plan(self, *, force: bool = False) -> PromotionPlan:
        """Read all of the source and look at the target, changing nothing."""
        async with opened(self._source) as source:
            source_state = await source.move_state()
            target_state = await self._look_at_target()
            obstacles = [
                *self._source_obstacles(source_state, force),
                *self._target_obstacles(source_state, target_state),
            ]
            return PromotionPlan(
                await self._count(source_state), _described(target_state), obstacles
            )

    async def _look_at_target(self) -> MoveState | None:
        """None if there is no store yet."""
        if not await self._target.mover.exists():
            return None
        async with opened(self._target) as target:
            return await target.move_state()

    async def _count(self, source_state: MoveState) -> Inventory:
        inventory = Inventory()
        async for record in all_but_runs(self._source.mover):
            inventory.add(record)
        done = count(1)
        async for record in records(self._source.mover, "runs"):
            inventory.add(record)
            await self._blobs.look(record)
            self._report_progress("read", next(done), source_state.runs)
        return inventory

    # --- moving -----------------------------------------------------------------------------------

    async def move(self, actor: str, *, force: bool = False) -> Inventory:
        """Raises Conflict when something stands in the way, and `Different` when the check
        fails."""
        async with opened(self._source) as source:
            source_state = await source.move_state()
            _refuse(self._source_obstacles(source_state, force))
            async with opened(self._target, create=True) as target:
                target_state = await target.move_state()
                _refuse(self._target_obstacles(source_state, target_state))
                inventory = await self._move(source_state, target_state)
                await self._hand_over(inventory, actor)
        return inventory

    async def _move(self, source_state: MoveState, target_state: MoveState) -> Inventory:
        if (
            source_state.mark is not None and source_state.mark.state == "moved"
        ):  # it died after the check
            return await self._count(source_state)
        await self._hold(source_state.mark, target_state.mark)
        await self._copy()
        return await self._compare()

    async def _hold(self, leaving: MoveMark | None, arriving: MoveMark | None) -> None:
        source, target, now = self._source, self._target, self._clock.now()
        move = leaving.move if leaving else new_id(now)
        if leaving is None:
            await source.mover.hold(MoveMark("leaving", move, target.name, now))
        if arriving is None:
            await target.mover.hold(MoveMark("arriving", move, source.name, now))
        held = (await source.mover.move_state()).mark
        if held is None or held.state != "leaving":
            await source.mover.release()
            raise ConfigurationError(
                f"{source.name} and {target.name} are the same store: nothing was moved"
            )

    async def _copy(self) -> None:
        source, target = self._source.mover, self._target.mover
        source_state, target_state = await source.move_state(), await target.move_state()
        for kind in KINDS[:-1]:
            async for page in pages(source, kind):
                await target.adopt(kind, page)
        done = target_state.runs
        self._report_progress("moved", done, source_state.runs)
        async for page in pages(source, "runs", target_state.last_run):
            await target.adopt("runs", page)
            done += len(page)
            self._report_progress("moved", done, source_state.runs)
        await target.continue_from(source_state.numbers)

    async def _compare(self) -> Inventory:
        """Read both sides back. The source's inventory, when all is the same."""
        source, target = self._source.mover, self._target.mover
        source_state, target_state = Inventory(), Inventory()
        for mover, inventory in ((source, source_state), (target, target_state)):
            async for record in all_but_runs(mover):
                inventory.add(record)
        total = (await source.move_state()).runs
        differing = await self._compare_runs(source_state, target_state, total)
        kinds = source_state.differences(target_state)
        if differing or kinds:
            raise Different(self._explain(differing, kinds))
        return source_state

    async def _compare_runs(
        self, source_state: Inventory, target_state: Inventory, total: int
    ) -> list[str]:
        """The runs that are not the same on both sides."""
        differing: list[str] = []
        done = count(1)
        copies = records(self._target.mover, "runs")
        async for record in records(self._source.mover, "runs"):
            copy: RunRecord | None = await anext(copies, None)
            digest = source_state.add(record)
            if copy is None or target_state.add(copy) != digest:
                differing.append(record.run.id)
            await self._blobs.look(record)
            self._report_progress("compared", next(done), total)
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
        mark = (await source.mover.move_state()).mark
        assert mark is not None, "it was held, and only we release it"
        if mark.state == "leaving":
            await source.mover.hold(MoveMark("moved", mark.move, target.name, now))
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
            source_state = await source.move_state()
            if source_state.mark is None or source_state.mark.state == "arriving":
                raise Conflict(
                    f"there is nothing to take back: {self._source.name} was not moved anywhere"
                )
            if source_state.mark.other != self._target.name:
                raise Conflict(
                    f"{self._source.name} was moved to {source_state.mark.other}, not to "
                    f"{self._target.name}"
                )
            if source_state.mark.state == "moved":
                await self._close_target(source_state, source_state.mark, force)
            await source.release()

    async def _close_target(self, source_state: MoveState, mark: MoveMark, force: bool) -> None:
        """Nobody may go on there when the source goes on."""
        async with opened(self._target) as target:
            target_state = await target.move_state()
            if target_state.mark is not None:
                return
            if target_state.numbers.position > source_state.numbers.position and not force:
                raise Conflict(
                    f"{self._target.name} has gone on since then, and {self._source.name} would "
                    "know nothing of that: "
                    "promote it to a new store instead, or add --force to leave that behind"
                )
            await target.hold(MoveMark("moved", mark.move, self._source.name, self._clock.now()))

    # --- obstacles --------------------------------------------------------------------------------

    def _source_obstacles(self, source_state: MoveState, force: bool) -> list[str]:
        name, mark = self._source.name, source_state.mark
        if mark is None:
            return [_at_work(name, source_state)] if source_state.holders and not force else []
        if mark.state == "arriving" or mark.other != self._target.name:
            return [f"{name} {mark.meaning}"]
        return []

    def _target_obstacles(
        self, source_state: MoveState, target_state: MoveState | None
    ) -> list[str]:
        name = self._target.name
        if target_state is None:
            return []
        if (
            target_state.mark is None
            and source_state.mark is not None
            and source_state.mark.state == "moved"
        ):
            return [f"{self._source.name} {source_state.mark.meaning}"]
        if target_state.mark is None:
            return (
                []
                if target_state.empty
                else [f"{name} has {_contents(target_state)} already: promote to an empty store"]
            )
        is_this_move = (
            source_state.mark is not None
            and source_state.mark.move == target_state.mark.move
            and target_state.mark.state == "arriving"
        )
        if is_this_move:
            return []
        if target_state.mark.state == "arriving":
            return [
                f"{name} was half filled by another move, from {target_state.mark.other}: empty "
                "it, or choose another store"
            ]
        return [f"{name} {target_state.mark.meaning}"]


def _refuse(obstacles: list[str]) -> None:
    for obstacle in obstacles:
        raise Conflict(obstacle)


def _described(target_state: MoveState | None) -> str:
    if target_state is None:
        return "new"
    if target_state.mark is not None and target_state.mark.state == "arriving":
        return "half filled"
    return "empty" if target_state.empty and target_state.mark is None else "in use"


def _contents(target_state: MoveState) -> str:
    return f"{target_state.runs} runs" if target_state.runs else "dead letters or audit entries"


def _at_work(name: str, source_state: MoveState) -> str:
    held = [f"{holder.subject} ({holder.owner})" for holder in source_state.holders]
    return (
        f"workers are alive on {name}: {_some(held)}. Stop them, or add --force to take their "
        "work from them"
    )


def _some(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
