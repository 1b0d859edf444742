"""The store in plain Python: the readable meaning of every command, and a store for tests.

Each command has one function, found by its type; they share the acts in `state.py`. Nothing here
waits, so a batch is applied in one piece. Everything is lost when the process ends."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from itertools import islice
from typing import Any

import msgspec

from holdfast.adapters.doorbell import Doorbell, what_it_leaves
from holdfast.adapters.memory import deadletters, execution, intake, locks, operations, outbox
from holdfast.adapters.memory.standby import Waiters
from holdfast.adapters.memory.state import FINISHED, State
from holdfast.errors import StoreUnavailable
from holdfast.model import commands as c
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.clock import Clock, SystemClock
from holdfast.model.event import Event
from holdfast.model.lease import LockInfo
from holdfast.model.run import Run, RunState
from holdfast.ports.mover import refuse_marked
from holdfast.ports.store import Audit, DeadLetter, Features, LaneInfo, RunFilter, StoredLog

HANDLERS: dict[type, Callable[[State, Any], c.Reply]] = {
    c.Submit: intake.submit,
    c.Claim: execution.claim,
    c.Renew: execution.renew,
    c.SaveCheckpoint: execution.save_checkpoint,
    c.Quarantine: execution.quarantine,
    c.SaveProgress: execution.save_progress,
    c.LogLine: execution.log_line,
    c.Settle: execution.settle,
    c.Cancel: operations.cancel,
    c.PauseRun: operations.pause_run,
    c.Resume: operations.resume,
    c.Sweep: operations.sweep,
    c.Prune: operations.prune,
    c.DefineLane: operations.define_lane,
    c.Acquire: locks.acquire,
    c.RenewLocks: locks.renew_locks,
    c.ReleaseLock: locks.release_lock,
    c.ForceRelease: locks.force_release,
    c.Bury: deadletters.bury,
    c.MarkRedriven: deadletters.mark_redriven,
    c.Discard: deadletters.discard,
    c.ReadOutbox: outbox.read_outbox,
    c.ConfirmOutbox: outbox.confirm_outbox,
}


class MemoryStore:
    """A `Store` in one process's memory, usable from all its threads and event loops."""

    features = Features("memory", durable=False, shared=False)

    def __init__(self, clock: Clock = SystemClock(), *, patience: float = 0.0) -> None:  # noqa: B008 - it holds nothing
        """With `patience`, in seconds, workers may stand by for so long."""
        self.features = msgspec.structs.replace(self.features, stands_by=patience > 0)
        self._state = State(clock)
        self._waiters = Waiters(clock, patience)
        self._guard = threading.Lock()
        self._doorbell = Doorbell()

    async def open(self) -> None:
        """Nothing to open, if nobody has moved it away."""
        refuse_marked(self._state.mark, "this memory")

    async def close(self) -> None:
        """Nothing to close; what it holds can still be read."""

    async def apply(self, commands: Sequence[c.Command]) -> list[c.Reply]:
        with self._guard:
            if self._state.mark is not None:
                raise StoreUnavailable(f"this memory {self._state.mark.meaning}")
            before = self._state.version
            replies = [HANDLERS[type(command)](self._state, command) for command in commands]
            changed = self._state.version != before
            if any(type(command) is c.Submit for command in commands):
                self._waiters.give(lambda claim: execution.claim(self._state, claim))
        if changed:
            self._doorbell.ring(work=what_it_leaves(commands, replies) == "work")
        return replies

    async def stand_by(self, claims: Sequence[c.Claim]) -> list[c.Claimed]:
        with self._guard:
            waiter = self._waiters.sit_down(claims)
        try:
            await waiter.wait(self._waiters.patience)
        finally:
            with self._guard:
                given = self._waiters.get_up(waiter)
        return given

    async def wait(self, since: int, timeout: float, *, work: bool = False) -> int:
        return await self._doorbell.wait(since, timeout, work=work)

    # --- runs ---

    async def run(self, run: str) -> Run | None:
        with self._guard:
            row = self._state.runs.get(run)
            return row.snapshot() if row else None

    async def over(self, runs: Sequence[str]) -> list[Run]:
        with self._guard:
            found = (self._state.runs.get(run) for run in runs)
            return [row.snapshot() for row in found if row and row.run.state in FINISHED]

    async def runs(
        self, where: RunFilter, *, limit: int = 50, before: int | None = None
    ) -> list[Run]:
        with self._guard:
            rows = [
                row for row in self._state.matching(where) if before is None or row.run.seq < before
            ]
            rows.sort(key=lambda row: row.run.seq, reverse=True)
            return [row.snapshot() for row in rows[:limit]]

    async def count(self, where: RunFilter) -> dict[str, int]:
        with self._guard:
            return dict(Counter(str(row.run.state) for row in self._state.matching(where)))

    # --- what belongs to a run ---

    async def checkpoints(self, run: str, step: str | None = None) -> list[Checkpoint]:
        with self._guard:
            row = self._state.runs.get(run)
            found = row.checkpoints.values() if row else ()
            wanted = [copy(checkpoint) for checkpoint in found if step in (None, checkpoint.step)]
            return sorted(wanted, key=lambda checkpoint: (checkpoint.step, checkpoint.key))

    async def quarantined(self, run: str) -> list[tuple[str, str, str]]:
        with self._guard:
            row = self._state.runs.get(run)
            return [(bad.step, bad.key, bad.reason) for bad in row.quarantine] if row else []

    async def history(self, run: str) -> list[Event]:
        with self._guard:
            row = self._state.runs.get(run)
            return list(row.history) if row else []

    async def logs(self, run: str, *, after: int = 0, limit: int = 1000) -> list[StoredLog]:
        with self._guard:
            row = self._state.runs.get(run)
            return row.logs[after : after + limit] if row else []

    # --- the rest ---

    async def dead_letters(
        self, *, tenant: str | None = None, open_only: bool = True, limit: int = 100
    ) -> list[DeadLetter]:
        with self._guard:
            matching = [
                letter
                for letter in self._state.dead_letters.values()
                if tenant in (None, letter.tenant) and not (open_only and letter.closed is not None)
            ]
            return sorted(matching, key=lambda letter: (letter.created, letter.id), reverse=True)[
                :limit
            ]

    async def dead_letter(self, id: str) -> DeadLetter | None:
        with self._guard:
            return self._state.dead_letters.get(id)

    async def locks(self) -> list[LockInfo]:
        with self._guard:
            now = self._state.clock.monotonic()
            held = [
                lock
                for name in sorted(self._state.locks)
                if (lock := self._state.lock_holder(name))
            ]
            return [LockInfo(k.name, k.epoch, k.owner, k.acquired, k.until - now) for k in held]

    async def lanes(self) -> list[LaneInfo]:
        with self._guard:
            return [self._lane_info(name) for name in self._state.lane_names()]

    def _lane_info(self, name: str) -> LaneInfo:
        lane = self._state.lane(name)
        leader = self._state.lock_holder(lane.leader_lock)
        blocked_by = self._state.lane_holder(name)
        return LaneInfo(
            name,
            lane.order,
            lane.head,
            queued=len(list(self._state.in_lane(name, RunState.QUEUED))),
            running=len(list(self._state.in_lane(name, RunState.RUNNING))),
            leader=leader.owner if leader else None,
            term=leader.epoch if leader else 0,
            blocked_by=blocked_by.run.id if blocked_by else None,
        )

    async def audit(self, *, limit: int = 100) -> list[Audit]:
        with self._guard:
            return list(islice(reversed(self._state.audit), limit))
