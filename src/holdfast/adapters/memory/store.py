"""The store in plain Python, for tests, and to read what a store has to do.

Every command is decided by `model/machine` and written to `tables.py`. Nothing here waits, so a
batch is applied in one piece. Everything is lost when the process ends."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from copy import copy
from heapq import nlargest, nsmallest
from itertools import islice
from typing import Any

from holdfast.adapters import isolation
from holdfast.adapters.memory.tables import Tables
from holdfast.adapters.notifier import Notifier, wake_after
from holdfast.errors import StoreUnavailable
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.clock import Clock, SystemClock
from holdfast.model.commands import Command, R, Wake
from holdfast.model.event import Event
from holdfast.model.lane import Lane
from holdfast.model.lease import LockInfo
from holdfast.model.machine import decide
from holdfast.model.machine.facts import Now
from holdfast.model.run import FINISHED, Run, RunState
from holdfast.ports.mover import refuse_marked
from holdfast.ports.records import Record, RecordPage
from holdfast.ports.store import Audit, DeadLetter, Features, LaneInfo, RunFilter, StoredLog


class MemoryStore:
    """A `Store` in one process's memory, usable from all its threads and event loops."""

    features = Features("memory", durable=False, shared=False)

    def __init__(self, clock: Clock = SystemClock()) -> None:  # noqa: B008 - it holds nothing
        self._clock = clock
        self._tables = Tables()
        self._guard = threading.Lock()
        self._notifier = Notifier()

    async def open(self) -> None:
        """Nothing to open; refused if the store was moved away."""
        refuse_marked(self._tables.mark, "this memory")

    async def close(self) -> None:
        """Nothing to close; what it holds can still be read."""

    async def apply(self, commands: Sequence[Command[R]]) -> list[R]:
        return await isolation.apply(commands, self._apply_all)

    async def _apply_all(self, commands: Sequence[Command[Any]]) -> list[Any]:
        with self._guard:
            if self._tables.mark is not None:
                raise StoreUnavailable(f"this memory {self._tables.mark.meaning}")
            replies = [self._apply(command) for command in commands]
        self._notifier.notify(wake_after(commands, replies))
        return replies

    def _apply(self, command: Command[Any]) -> Any:
        now = self._now()
        decision = decide(command, self._tables, now)
        for change in decision.changes:
            self._tables.write(change, now)
        return decision.reply

    def _now(self) -> Now:
        return Now(self._clock.now(), self._clock.monotonic())

    async def wait(self, since: int, timeout: float, *, wake: Wake = Wake.WAITERS) -> int:
        return await self._notifier.wait(since, timeout, wake=wake)

    # --- runs ---

    async def run(self, run: str) -> Run | None:
        with self._guard:
            facts = self._tables.run(run)
            return facts.view() if facts else None

    async def over(self, runs: Sequence[str]) -> list[Run]:
        with self._guard:
            facts = map(self._tables.run, runs)
            return [run.view() for run in facts if run and run.state in FINISHED]

    async def unique_runs(self) -> list[Run]:
        with self._guard:
            facts = (self._tables.run(self._tables.slots[slot]) for slot in self._tables.slots)
            return sorted((run.view() for run in facts if run), key=lambda run: run.seq)

    async def runs(
        self, where: RunFilter, *, limit: int = 50, before: int | None = None
    ) -> list[Run]:
        with self._guard:
            runs = self._tables.matching(where)
            older = [run for run in runs if before is None or run.seq < before]
            return [run.view() for run in nlargest(limit, older, key=lambda run: run.seq)]

    async def count(self, where: RunFilter) -> dict[str, int]:
        with self._guard:
            return dict(Counter(str(run.state) for run in self._tables.matching(where)))

    # --- what belongs to a run ---

    async def checkpoints(self, run: str, step: str | None = None) -> list[Checkpoint]:
        with self._guard:
            row = self._tables.runs.get(run)
            stored = row.checkpoints.values() if row else ()
            selection = [
                copy(checkpoint) for checkpoint in stored if step in (None, checkpoint.step)
            ]
            return sorted(selection, key=lambda checkpoint: (checkpoint.step, checkpoint.key))

    async def quarantined(self, run: str) -> list[tuple[str, str, str]]:
        with self._guard:
            row = self._tables.runs.get(run)
            return [(bad.step, bad.key, bad.reason) for bad in row.quarantine] if row else []

    async def history(self, run: str) -> list[Event]:
        with self._guard:
            row = self._tables.runs.get(run)
            return list(row.history) if row else []

    async def logs(self, run: str, *, after: int = 0, limit: int = 1000) -> list[StoredLog]:
        with self._guard:
            row = self._tables.runs.get(run)
            return row.logs[after : after + limit] if row else []

    # --- the rest ---

    async def dead_letters(
        self,
        *,
        tenant: str | None = None,
        open_only: bool = True,
        limit: int = 100,
        behind: tuple[float, str] | None = None,
    ) -> list[DeadLetter]:
        with self._guard:
            matching = [
                letter
                for letter in self._tables.letters.values()
                if tenant in (None, letter.tenant)
                and not (open_only and letter.closed is not None)
                and (behind is None or (letter.created, letter.id) < behind)
            ]
            newest = nlargest(limit, matching, key=lambda letter: (letter.created, letter.id))
            return [self._tables.with_body(letter) for letter in newest]

    async def dead_letter(self, id: str) -> DeadLetter | None:
        with self._guard:
            letter = self._tables.letters.get(id)
            return self._tables.with_body(letter) if letter else None

    async def locks(self) -> list[LockInfo]:
        with self._guard:
            now, locks = self._now(), self._tables.locks
            locks_held = [locks[name] for name in sorted(locks) if locks[name].is_held(now)]
            return [
                LockInfo(k.name, k.epoch, k.owner, k.acquired, (k.lease_until or 0.0) - now.mono)
                for k in locks_held
            ]

    async def lanes(self) -> list[LaneInfo]:
        with self._guard:
            return [self._lane_info(name) for name in self._tables.lane_names()]

    def _lane_info(self, name: str) -> LaneInfo:
        lane = self._tables.lane(name) or Lane(name)
        lock = self._tables.lock(lane.leader_lock)
        now = self._now()
        leader = lock if lock and lock.is_held(now) else None
        queued = list(self._tables.in_lane(name, RunState.QUEUED))
        blocked_by = self._tables.lane_holder(name)
        return LaneInfo(
            name,
            lane.order,
            lane.head,
            queued=len(queued),
            running=len(list(self._tables.in_lane(name, RunState.RUNNING))),
            leader=leader.owner if leader else None,
            term=leader.epoch if leader else 0,
            blocked_by=blocked_by.id if blocked_by else None,
            delayed=sum(not run.is_due(now) for run in queued),
            oldest=min((run.created for run in queued if run.is_due(now)), default=None),
        )

    async def outbox(self, after: int, limit: int = 200) -> list[Event]:
        with self._guard:
            events = self._tables.outbox.items()
            return list(islice((e for position, e in events if position > after), limit))

    async def record(self, key: str) -> RecordPage:
        page = await self.records(key, limit=1)
        return RecordPage([record for record in page.records if record.key == key], page.now)

    async def records(self, prefix: str, *, after: str = "", limit: int = 100) -> RecordPage:
        with self._guard:
            now = self._now()
            live = [record for record in self._tables.records.values() if record.is_live(now)]
        keys = [r for r in live if r.key.startswith(prefix) and r.key > after]
        first = nsmallest(limit, keys, key=lambda record: record.key)
        return RecordPage([Record(r.key, r.value, r.version, r.updated) for r in first], now.wall)

    async def audit(self, *, limit: int = 100) -> list[Audit]:
        with self._guard:
            return list(islice(reversed(self._tables.audit), limit))
