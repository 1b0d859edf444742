"""A random story: workers, clients and accidents from one seed, then healing, then the contract."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from holdfast import Conflict, Holdfast, Pipeline, Transient, WorkerOptions
from holdfast.adapters.memory.blobs import MemoryBlobs
from holdfast.adapters.memory.documents import MemoryDocuments
from holdfast.adapters.memory.store import MemoryStore
from holdfast.bootstrap import Options
from holdfast.model.clock import Clock
from holdfast.model.commands import Command, Renew, Resume, SaveCheckpoint, Settle, Wake
from holdfast.model.event import STATE_AFTER, Event
from holdfast.model.lease import LeaseTimes
from holdfast.ports.bus import Message
from holdfast.ports.store import RunFilter, Store
from holdfast.testing.crash import RecordingStore
from holdfast.testing.faults import (
    FAULTS,
    LOSE_REQUEST,
    PAUSE_BEFORE,
    Boundary,
    CollectingBus,
    FaultyBlobs,
    FaultyDocuments,
)
from holdfast.testing.invariants import check_published, check_store
from holdfast.testing.world import Process, World, at_once

from .observer import StoryObserver
from .projecting import (
    Reader,
    check_dead_end,
    check_messages,
    declare_projections,
    for_all_pipelines,
)
from .work import is_possible, pipelines

TIMES = LeaseTimes(ttl=30.0, renew=10.0, margin=5.0, sweep=5.0)
CHAOS = 300.0
HEALING = 3600.0
AIM = 0.15
KEYS = [f"k{n}" for n in range(8)]


class StoreWithoutNotifications(RecordingStore):
    """Notifications do not arrive: whoever waits, waits for its timeout."""

    async def wait(self, since: int, timeout: float, *, wake: Wake = Wake.WAITERS) -> int:
        await asyncio.sleep(timeout)
        return since


class SlowClock:
    """A host's clock that runs behind the store's: what the margin of a lease is there for."""

    def __init__(self, clock: Clock, rate: float) -> None:
        self._clock = clock
        self._rate = rate

    def now(self) -> float:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic() * self._rate


class Story:
    """`tell()` plays it and raises AssertionError with everything that went wrong.

    Every other story aims: a worker is paused, often past its lease, in the very moment before it
    writes a result. Accidents at random hit that moment too rarely to prove a fence.

    One in five is calm: nothing goes wrong, so that promises about time can be held to their word;
    in half of these no notification arrives."""

    def __init__(self, seed: int, make_store: Callable[[Clock], Store]) -> None:
        self.world = World(seed)
        self.store = make_store(self.world.clock)
        self.blobs = MemoryBlobs()
        self.calm = seed % 5 == 2
        self.without_notifications = seed % 10 == 2
        self.observer = StoryObserver(self.world, self.store, self._notice(), retries_ask=self.calm)
        self.published: list[tuple[str, Message]] = []
        self.accepted: dict[str, set[str]] = {}
        self.chaos = True
        self.trace: list[str] = []
        # Swarm: each world has its own mix of accidents, so that rare combinations get their turn.
        chance = self.world.random
        self.faults = [fault for fault in FAULTS if chance.random() < 0.5]
        self.rate = chance.choice([0.0, 0.01, 0.03, 0.1])
        self.aimed = seed % 2 == 1 and not self.calm
        self.unrenewed = not self.calm and chance.random() < 0.2
        """Renewals do not arrive, everything else does."""
        self.upgraded = not self.calm and chance.random() < 0.3
        """Some workers run a newer version of the code."""
        report = self.observer.violations.append
        self.pipelines = pipelines(self.world, report, calm=self.calm)
        self.newer = pipelines(self.world, report, version=2)
        self.damaged: set[str] = set()
        declare_projections(self.pipelines)
        declare_projections(self.newer)
        self.documents = MemoryDocuments(self.world.clock)
        self.reader = Reader()
        self.workers: list[Process] = []
        self.boundaries: list[Boundary] = []

    def _notice(self) -> float:
        """How long after a cancel something may still start: 0.2 s in a calm world, by the next
        renewal if no notification arrives, and not at all once the lease is not trusted."""
        if not self.calm:
            return TIMES.ttl
        return TIMES.renew + 0.2 if self.without_notifications else 0.2

    def tell(self) -> None:
        try:
            problems = self._play()
        finally:
            self.world.close()
        assert not problems, f"seed {self.world.seed}:\n  " + "\n  ".join(problems)

    def _play(self) -> list[str]:
        operator = self.world.process("operator")
        self.world.run(self.store.open(), operator)
        self._start_worker()
        self._start_worker()
        client = self.world.process("client")
        busy = client.start(self._client(client))
        self._accidents()
        self._heal()
        self.world.run_until(busy.done, within=HEALING)
        if (
            not busy.cancelled()
        ):  # the client was killed: what it had not submitted was never accepted
            busy.result()
        self.world.run(self._resume_all(), operator)
        self.world.run_until(self._settled, within=HEALING)
        self.world.run_for(60.0)
        return self.world.run(self._check(), operator)

    @property
    def refused(self) -> int:
        return sum(boundary.refused for boundary in self.boundaries)

    # --- who takes part ---------------------------------------------------------------------------

    def _app(self, process: Process, *, worker: bool) -> Holdfast:
        boundary = Boundary(
            process, self._decide, pause=self.world.random.choice([3.0, 29.0, 40.0, 200.0])
        )
        self.boundaries.append(boundary)
        chance = self.world.random
        kind = StoreWithoutNotifications if self.without_notifications else RecordingStore
        clock = SlowClock(self.world.clock, chance.choice([1.0, 0.9]))
        code = self.newer if worker and self.upgraded and chance.random() < 0.5 else self.pipelines
        options = Options(
            kind(self.store, boundary, self.observer),  # type: ignore[arg-type]
            FaultyBlobs(self.blobs, boundary),
            CollectingBus(self.published, boundary) if worker else None,  # type: ignore[arg-type]
            FaultyDocuments(self.documents, boundary, self.reader.observe),
            for_all_pipelines(),
            worker=WorkerOptions(concurrency=3, poll=5.0, progress=7.0),
            works=worker,
            lease=TIMES,
            clock=clock,
            threads=False,
            on_execute=self.observer.on_execute,
        )
        return Holdfast.from_options(options, code)

    def _start_worker(self) -> None:
        process = self.world.process(f"worker-{len(self.workers) + 1}")
        self.workers.append(process)
        process.start(self._work(self._app(process, worker=True)))

    async def _work(self, app: Holdfast) -> None:
        """A worker lives for a while, then is told to stop: it hands over, and another one
        starts."""
        while True:
            try:
                await app.open()
                break
            except Transient:
                await asyncio.sleep(1)
        while True:
            await asyncio.sleep(50)
            if self.chaos and self.world.random.random() < 0.1:
                await app.close(grace=self.world.random.choice([0.0, 5.0]))
                self._start_worker()
                return

    async def _client(self, process: Process) -> None:
        """Submits, and does what people do; asks again when an answer is lost."""
        chance = self.world.random
        app = self._app(process, worker=False)
        for number in range(14):
            await asyncio.sleep(chance.choice([0, 0.1, 10, 30]))
            pipeline = chance.choice(self.pipelines)
            key = (
                f"{pipeline.name}-{chance.choice(KEYS)}" if chance.random() < 0.7 else f"n{number}"
            )
            await self._insist(lambda p=pipeline, k=key: self._submit(app, p, k))
            if chance.random() < (0.9 if self.calm else 0.25):
                await self._insist(lambda: self._meddle(app))

    async def _submit(self, app: Holdfast, pipeline: Pipeline[Any], key: str) -> None:
        try:
            run = await app.submit(pipeline, len(key), key=key)
        except Conflict:
            return
        if not pipeline.unique:
            self.accepted.setdefault(key, set()).add(run.id)

    async def _meddle(self, app: Holdfast) -> None:
        where = RunFilter(state="running") if self.calm else RunFilter()
        runs = await self.store.runs(where, limit=100)
        if not runs:
            return
        run = self.world.random.choice(runs)
        act = self.world.random.choice(
            [app.operations.cancel, app.operations.pause, app.operations.resume]
        )
        try:
            await act(run.id)
        except Conflict:
            pass

    async def _insist(self, act: Callable[[], Any]) -> None:
        while True:
            try:
                return await act()
            except Transient:
                await asyncio.sleep(2)

    # --- accidents and healing --------------------------------------------------------------------

    def _decide(self, kind: str, commands: Sequence[Command]) -> str | None:
        self.trace.append(
            f"{self.world.clock.monotonic():.3f} {kind} {[type(c).__name__ for c in commands]}"
        )
        if not self.chaos or self.calm:
            return None
        if self.unrenewed and any(isinstance(command, Renew) for command in commands):
            return LOSE_REQUEST
        if self.aimed and any(isinstance(command, SaveCheckpoint | Settle) for command in commands):
            return PAUSE_BEFORE if self.world.random.random() < AIM else None
        if not self.faults or self.world.random.random() >= self.rate:
            return None
        fault = self.world.random.choice(self.faults)
        if fault.startswith("kill") and len([w for w in self.workers if w.alive]) > 8:
            return None
        return fault

    def _accidents(self) -> None:
        chance = self.world.random
        for _ in range(10):
            self.world.run_for(CHAOS / 10)
            if self.calm:
                continue
            self._damage()
            living = [worker for worker in self.workers if worker.alive]
            if living and chance.random() < 0.4:
                chance.choice(living).kill()
            if living and chance.random() < 0.3:
                chance.choice(living).pause(chance.choice([10.0, 36.0, 100.0]))
            if chance.random() < 0.2:
                self.world.clock.jump_wall(chance.choice([-3e8, -60.0, 60.0, 3e8]))
            if len([w for w in self.workers if w.alive]) < 2:
                self._start_worker()

    def _damage(self) -> None:
        """A bad disk changes a stored result, once in a run: the third one that is not reused fails
        it, and a damaged item counts for its step as well."""
        if not isinstance(self.store, MemoryStore):
            return
        rows = self.store._tables.runs.values()
        stored = [
            (row.facts.id, checkpoint)
            for row in rows
            if row.facts.state.live and row.facts.id not in self.damaged
            for checkpoint in row.checkpoints.values()
            if checkpoint.value.isdigit()
        ]
        if stored and self.world.random.random() < 0.3:
            run, checkpoint = self.world.random.choice(stored)
            self.damaged.add(run)
            checkpoint.value = f"{checkpoint.value}7"

    def _heal(self) -> None:
        self.chaos = False
        client = self.world.processes[3]
        assert client.name == "client"
        if not client.alive:  # killed at a boundary: its remaining requests were never made
            client.end_tasks()
        self._start_worker()

    async def _resume_all(self) -> None:
        for run in await self.store.runs(RunFilter(state="paused"), limit=1000):
            await self.store.apply([Resume(run.id, "story")])

    def _settled(self) -> bool:
        counts = at_once(self.store.count(RunFilter()))
        return not any(counts.get(state) for state in ("queued", "running"))

    # --- the contract -----------------------------------------------------------------------------

    async def _check(self) -> list[str]:
        problems = [v for v in self.observer.violations if not self._is_allowed(v)]
        problems += await check_store(self.store)
        runs = await self.store.runs(RunFilter(), limit=1000)
        events = [event for run in runs for event in await self.store.history(run.id)]
        problems += check_published(self.published, events)
        problems += check_messages(self.published, events)
        problems += self.reader.check(runs)
        problems += await check_dead_end(self.store)
        listed = {run.id for run in runs}
        for key, ids in self.accepted.items():
            problems += [f"I2: run {id} was accepted and is gone" for id in ids - listed]
            problems += [f"I6: key {key} became {len(ids)} runs"] if len(ids) > 1 else []
        problems += check_order({run.id: run.seq for run in runs if run.lane == "line"}, events)
        problems += [
            f"I2: run {run.id} ended as failed: {run.error}" for run in runs if _unexpected(run)
        ]
        problems += [
            f"I13: run {run.id} of {run.pipeline} answers {run.result} to its {len(run.key or '')}"
            for run in runs
            if run.state == "succeeded"
            and not is_possible(run.pipeline, len(run.key or ""), int(run.result or 0))
        ]
        return problems

    def _is_allowed(self, violation: str) -> bool:
        """Damaged results, and those of other code, are executed again."""
        return "executed again" in violation and (
            self.upgraded or any(run in violation for run in self.damaged)
        )


def _unexpected(run: Any) -> bool:
    return run.state == "failed" and run.error.name != "Permanent"


def check_order(lane: dict[str, int], events: list[Event]) -> list[str]:
    """I5: whenever a run of the lane starts, none that was accepted before it is waiting or under
    way."""
    state: dict[str, str] = {}
    problems: list[str] = []
    for event in sorted(events, key=lambda event: event.position):
        if event.run not in lane:
            continue
        if event.type == "run.started":
            ahead = [
                r
                for r, s in state.items()
                if lane[r] < lane[event.run] and s in ("queued", "running")
            ]
            problems += [
                f"I5: {event.run} started before {r}, which was accepted earlier" for r in ahead
            ]
        if event.type in STATE_AFTER:
            state[event.run] = STATE_AFTER[event.type]
    return problems
