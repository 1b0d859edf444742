"""A random story: workers, clients and accidents from one seed, then healing, then the contract."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from holdfast import (
    Conflict,
    Context,
    Holdfast,
    Items,
    Lane,
    Permanent,
    Pipeline,
    Transient,
    WorkerOptions,
)
from holdfast.adapters.memory.blobs import MemoryBlobs
from holdfast.bootstrap import Options
from holdfast.model.clock import Clock
from holdfast.model.commands import Command, Resume, SaveCheckpoint, Settle
from holdfast.model.event import STATE_AFTER, Event
from holdfast.model.lease import LeaseTimes
from holdfast.ports.bus import Message
from holdfast.ports.store import RunFilter, Store
from holdfast.testing.crash import WitnessedStore
from holdfast.testing.faults import FAULTS, PAUSE_BEFORE, Boundary, CollectingBus, FaultyBlobs
from holdfast.testing.invariants import Witness, check_published, check_store
from holdfast.testing.world import Process, World, at_once

TIMES = LeaseTimes(ttl=30.0, renew=10.0, margin=5.0, sweep=5.0)
CHAOS = 300.0
HEALING = 3600.0
AIM = 0.15
KEYS = [f"k{n}" for n in range(8)]


def pipelines(world: World) -> list[Pipeline[Any]]:
    """Four shapes of work, with durations and failures drawn from the world's chance."""
    chance = world.random

    async def work() -> None:
        await asyncio.sleep(chance.choice([0, 0, 0.5, 5, 20]))

    chain = Pipeline("chain", max_attempts=50)

    @chain.step
    async def one(input: int) -> int:
        await work()
        return input + 1

    @chain.step(max_attempts=20)
    async def two(one: int) -> int:
        await work()
        if chance.random() < 0.2:
            raise Transient("not now", retry_after=chance.choice([None, 1, 90]))
        return one + 1

    @chain.step
    async def three(two: int) -> int:
        await work()
        return two + 1

    fan = Pipeline("fan", max_attempts=50)

    async def square(n: int) -> int:
        await work()
        return n * n

    @fan.step
    async def squares(input: int, ctx: Context) -> list[int]:
        return await ctx.map(square, range(input % 5 + 2), concurrency=2)

    @fan.step
    async def streamed(squares: Items[int]) -> int:
        return sum([value async for _, value in squares])

    @fan.step
    async def both(squares: list[int], streamed: int) -> int:
        return sum(squares) - streamed

    ordered = Pipeline("ordered", lane=Lane("line", order="fifo"), max_attempts=50)

    @ordered.step(max_attempts=20)
    async def turn(input: int) -> int:
        await work()
        if chance.random() < 0.2:
            raise Transient("again", retry_after=chance.choice([None, 70]))
        if chance.random() < 0.05:
            raise Permanent("never")
        return input

    single = Pipeline("single", unique=True, max_attempts=50)

    @single.step
    async def alone(input: int) -> int:
        await work()
        return input

    return [chain, fan, ordered, single]


class Story:
    """`tell()` plays it and raises AssertionError with everything that went wrong.

    Every other story aims: a worker is paused, often past its lease, in the very moment before it
    writes a result. Accidents at random hit that moment too rarely to prove a fence."""

    def __init__(self, seed: int, make_store: Callable[[Clock], Store]) -> None:
        self.world = World(seed)
        self.store = make_store(self.world.clock)
        self.blobs = MemoryBlobs()
        self.witness = Witness()
        self.published: list[tuple[str, Message]] = []
        self.accepted: dict[str, set[str]] = {}
        self.chaos = True
        self.trace: list[str] = []
        # Swarm: each world has its own mix of accidents, so that rare combinations get their turn.
        chance = self.world.random
        self.faults = [fault for fault in FAULTS if chance.random() < 0.5]
        self.rate = chance.choice([0.0, 0.01, 0.03, 0.1])
        self.aimed = seed % 2 == 1
        self.pipelines = pipelines(self.world)
        self.workers: list[Process] = []
        self.boundaries: list[Boundary] = []

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
        options = Options(
            WitnessedStore(self.store, boundary, self.witness),  # type: ignore[arg-type]
            FaultyBlobs(self.blobs, boundary),
            CollectingBus(self.published, boundary) if worker else None,  # type: ignore[arg-type]
            worker=WorkerOptions(concurrency=3, poll=5.0, progress=7.0),
            works=worker,
            lease=TIMES,
            clock=self.world.clock,
            threads=False,
            on_execute=self.witness.on_execute,
        )
        return Holdfast.from_options(options, self.pipelines)

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
            if chance.random() < 0.25:
                await self._insist(lambda: self._meddle(app))

    async def _submit(self, app: Holdfast, pipeline: Pipeline[Any], key: str) -> None:
        try:
            run = await app.submit(pipeline, len(key), key=key)
        except Conflict:
            return
        if not pipeline.unique:
            self.accepted.setdefault(key, set()).add(run.id)

    async def _meddle(self, app: Holdfast) -> None:
        runs = await self.store.runs(RunFilter(), limit=100)
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
        if not self.chaos:
            return None
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
            living = [worker for worker in self.workers if worker.alive]
            if living and chance.random() < 0.4:
                chance.choice(living).kill()
            if living and chance.random() < 0.3:
                chance.choice(living).pause(chance.choice([10.0, 36.0, 100.0]))
            if chance.random() < 0.2:
                self.world.clock.jump_wall(chance.choice([-3e8, -60.0, 60.0, 3e8]))
            if len([w for w in self.workers if w.alive]) < 2:
                self._start_worker()

    def _heal(self) -> None:
        self.chaos = False
        client = self.world.processes[3]
        assert client.name == "client"
        if not client.alive:  # killed at a boundary: its remaining requests were never made
            client.bury()
        self._start_worker()

    async def _resume_all(self) -> None:
        for run in await self.store.runs(RunFilter(state="paused"), limit=1000):
            await self.store.apply([Resume(run.id, "story")])

    def _settled(self) -> bool:
        counts = at_once(self.store.count(RunFilter()))
        return not any(counts.get(state) for state in ("queued", "running"))

    # --- the contract -----------------------------------------------------------------------------

    async def _check(self) -> list[str]:
        problems = list(self.witness.violations)
        problems += await check_store(self.store)
        runs = await self.store.runs(RunFilter(), limit=1000)
        events = [event for run in runs for event in await self.store.history(run.id)]
        problems += check_published(self.published, events)
        known = {run.id for run in runs}
        for key, ids in self.accepted.items():
            problems += [f"I2: run {id} was accepted and is gone" for id in ids - known]
            problems += [f"I6: key {key} became {len(ids)} runs"] if len(ids) > 1 else []
        problems += check_order({run.id: run.seq for run in runs if run.lane == "line"}, events)
        problems += [
            f"I2: run {run.id} ended as failed: {run.error}" for run in runs if _unexpected(run)
        ]
        return problems


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
