"""What others do to a run while a worker is busy with it: faults of `assert_crash_safe` that happen
right after a boundary was crossed."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from holdfast.adapters.memory.store import MemoryStore
from holdfast.model.commands import Cancel, ForceRelease
from holdfast.testing.faults import Boundary, Decide
from holdfast.testing.invariants import Observer
from holdfast.testing.world import Process, forever

RETRY = "fail the step after"
CANCEL = "cancel after"
CHANGE_LEADER = "change leaders after"
DAMAGE = "damage the last result after"

LAST_DIGIT = re.compile(r"\d(?=\D*$)|$")
"""Or the end, if there is none."""

INTERVENTIONS = (RETRY, CANCEL, CHANGE_LEADER, DAMAGE)


class IntervenedBoundary(Boundary):
    """A boundary where somebody may also intervene once it was crossed."""

    def __init__(
        self,
        process: Process,
        decide: Decide,
        pause: float,
        intervene: Callable[[str, Process], Awaitable[None]],
    ) -> None:
        super().__init__(process, decide, pause)
        self._intervene = intervene

    async def _after(self, fault: str | None) -> None:
        if fault in INTERVENTIONS:
            await self._intervene(fault, self.process)
        if not self.process.alive:
            await forever()
        await super()._after(fault)


async def cancel(store: MemoryStore, run: str) -> bool:
    """Whether the run could still be cancelled."""
    [reply] = await store.apply([Cancel(run, "crash test")])
    return reply is None


async def change_leaders(store: MemoryStore) -> None:
    """Whoever leads a lane or a relay is deposed."""
    names: Sequence[str] = [lock.name for lock in await store.locks()]
    await store.apply([ForceRelease(name, "crash test", "somebody else's turn") for name in names])


def damage_last_result(store: MemoryStore, run: str, observer: Observer) -> None:
    """A bad disk changes the result that was stored last; it has to be made again."""
    checkpoints = list(store._tables.runs[run].checkpoints.values())
    if checkpoints:
        damaged = checkpoints[-1]
        damaged.value = LAST_DIGIT.sub(lambda digit: "1" if digit[0] == "7" else "7", damaged.value)
        observer.durable.discard((run, damaged.step, damaged.key))
        if damaged.key:  # the result of its step was made from it
            observer.durable.discard((run, damaged.step, ""))
