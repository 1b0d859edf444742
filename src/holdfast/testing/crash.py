"""`assert_crash_safe`: what happens to *your* pipeline when its worker dies, anywhere.

One run without faults finds every boundary between the worker and the outside: each checkpoint,
settlement, blob and published event. Then, for each boundary and each fault, a fresh world: the
fault happens there (the worker dies, is paused, loses messages or fails; somebody cancels the run,
deposes leaders or damages a result), another worker takes over, and the contract is checked: one
result, no lost run, nothing with a checkpoint executed again, a gap-free history, every event
published and every copy the same. All of it in memory and in virtual time."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from msgspec import Struct

from holdfast.adapters.memory.blobs import MemoryBlobs
from holdfast.adapters.memory.store import MemoryStore
from holdfast.app import Holdfast
from holdfast.bootstrap import Options
from holdfast.engine.payloads import Payloads
from holdfast.errors import Transient
from holdfast.model.commands import (
    Acquire,
    Command,
    DefineLane,
    LogLine,
    PutRecord,
    ReleaseLock,
    Renew,
    RenewLocks,
    SaveProgress,
    Sweep,
)
from holdfast.model.lease import LeaseTimes
from holdfast.model.options import WorkerOptions
from holdfast.model.pipeline import Pipeline
from holdfast.ports.bus import Message
from holdfast.ports.store import RunFilter
from holdfast.testing import interventions
from holdfast.testing.faults import (
    FAULTS,
    PAUSE_AFTER,
    PAUSE_BEFORE,
    Boundary,
    CollectingBus,
    FaultyBlobs,
    FaultyStore,
)
from holdfast.testing.interventions import INTERVENTIONS, IntervenedBoundary
from holdfast.testing.invariants import Observer, check_published, check_store
from holdfast.testing.world import Process, World, at_once

TIMES = LeaseTimes(ttl=30.0, renew=10.0, margin=5.0, sweep=5.0)
PAUSE = 120.0
SETTLING = 60.0
"""Virtual seconds after the run is over: longer than the dead relay's lease, so that another drains
the outbox."""
RECOVERY = 3600.0
"""Virtual seconds within which everything has to be over."""

QUEUED = RunFilter(state="queued")

ALL_FAULTS = (*FAULTS, *INTERVENTIONS)

NOTICE = 0.2
"""After a cancel nothing further starts later than this, in virtual seconds."""

UNINTERESTING = (
    Acquire, DefineLane, LogLine, PutRecord, ReleaseLock, Renew, RenewLocks, SaveProgress, Sweep,
)  # fmt: skip


class CrashReport(Struct):
    """What was tried, and how often the faults had an effect."""

    boundaries: list[str]
    worlds: int = 0
    takeovers: int = 0
    """Worlds in which a second attempt was needed."""
    refused: int = 0
    """Writes of a worker that had lost its lease, refused by the fence."""
    repeated: int = 0
    """Executions beyond those of the undisturbed run: work in flight when the fault happened."""

    def __str__(self) -> str:
        return (
            f"{len(self.boundaries)} boundaries, {self.worlds} worlds: {self.takeovers} takeovers, "
            f"{self.refused} stale writes refused, {self.repeated} executions repeated, 0 "
            "violations"
        )


def assert_crash_safe(
    pipeline: Pipeline[Any],
    input: Any = None,
    *,
    faults: Sequence[str] = ALL_FAULTS,
    same_result: bool | Callable[[Any], Any] = True,
    max_boundaries: int = 60,
    seed: int = 0,
    provide: Mapping[type[Any], Any] | None = None,
) -> CrashReport:
    """Raise AssertionError with the boundary, the fault and the broken promise, or return what was
    tried.

    `same_result=False` is for pipelines that may answer differently each time; there must still be
    just one answer. A function gives the part of a result (decoded JSON) that has to be the same:
    addresses of artifacts name the attempt that made them. Long pipelines are tried at
    `max_boundaries` boundaries, evenly spread."""
    with quiet():
        return _try_all(
            Case(pipeline, input, dict(provide or {})), faults, same_result, max_boundaries, seed
        )


@contextmanager
def quiet() -> Iterator[None]:
    """Keep hundreds of simulated faults out of the log."""
    log = logging.getLogger("holdfast")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


class Case(NamedTuple):
    """What is tried: a pipeline, its input, and what its steps use."""

    pipeline: Pipeline[Any]
    input: Any
    provide: dict[type[Any], Any]


def _try_all(
    case: Case,
    faults: Sequence[str],
    same_result: bool | Callable[[Any], Any],
    max_boundaries: int,
    seed: int,
) -> CrashReport:
    reference = Trial(case, seed)
    reference.run()
    report = CrashReport(reference.boundaries)
    for boundary in _spread(len(reference.boundaries), max_boundaries):
        for fault in faults:
            trial = Trial(case, seed + boundary, strike_at=boundary, fault=fault)
            _check(
                trial,
                reference,
                same_result,
                f"{fault} {reference.boundaries[boundary]!r} (boundary {boundary})",
            )
            report.worlds += 1
            report.takeovers += trial.attempts > 1
            report.refused += trial.refused
            report.repeated += max(
                0, len(trial.observer.executed) - len(reference.observer.executed)
            )
    return report


def _spread(count: int, most: int) -> list[int]:
    if count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def _check(
    trial: Trial, reference: Trial, same_result: bool | Callable[[Any], Any], case: str
) -> None:
    try:
        trial.run()
    except AssertionError as error:
        raise AssertionError(f"{case}: {error}") from error
    problems = list(trial.problems)
    expected = "cancelled" if trial.was_cancelled else reference.state
    if trial.state != expected:
        problems.append(f"I2: the run ended as {trial.state}, not as {expected} ({trial.error})")
    if not trial.was_cancelled and _differ(trial.result, reference.result, same_result):
        problems.append(
            f"I4: the result is {trial.result!r:.200}, undisturbed {reference.result!r:.200}"
        )
    once = Counter(item[1:] for item in reference.observer.executed)
    for item, times in Counter(trial.observer.executed).items():
        if times > once[item[1:]] + 1:
            problems.append(
                f"I3: one fault made {item[1]}[{item[2]}] run {times} times, undisturbed "
                f"{once[item[1:]]}"
            )
    if problems:
        raise AssertionError(f"{case}:\n  " + "\n  ".join(problems))


def _differ(
    result: str | None, expected: str | None, same_result: bool | Callable[[Any], Any]
) -> bool:
    if not callable(same_result):
        return same_result and result != expected
    return same_result(json.loads(result or "null")) != same_result(json.loads(expected or "null"))


class Trial:
    """One run of the pipeline in a world with two workers; the fault hits the first."""

    def __init__(
        self,
        case: Case,
        seed: int,
        *,
        strike_at: int | None = None,
        fault: str | None = None,
    ) -> None:
        self._case = case
        self._strike_at = strike_at
        self._fault = fault
        self._world = World(seed)
        self._store = MemoryStore(self._world.clock)
        self._blobs = MemoryBlobs()
        self._struck: list[Boundary] = []
        self.published: list[tuple[str, Message]] = []
        self.boundaries: list[str] = []
        self.observer = Observer()
        self.problems: list[str] = []
        self.state = ""
        self.error: Any = None
        self.result: str | None = None
        self.attempts = 0
        self._run_id = ""
        self._cancelled_at: float | None = None
        self._fails_next = False

    @property
    def was_cancelled(self) -> bool:
        return self._cancelled_at is not None

    @property
    def refused(self) -> int:
        return sum(boundary.refused for boundary in self._struck)

    def run(self) -> None:
        try:
            self._play()
        finally:
            self._world.close()

    def _play(self) -> None:
        """Submit, let the first worker begin, inject the fault, let the second one finish,
        check."""
        client, first = self._world.process("client"), self._world.process("first")
        app = Holdfast(
            self._store, blobs=self._blobs, worker=False, clock=self._world.clock, threads=False
        )
        run_id = self._run_id = self._world.run(self._submit(app), client)
        workers = [self._worker(first, faulty=True)]
        first.start(workers[0].open())
        self._world.run_until(lambda: self._begun(first))
        second = self._world.process("second")
        workers.append(self._worker(second, faulty=False))
        second.start(workers[1].open())
        self._world.run_until(lambda: self._over(run_id), within=RECOVERY)
        paused = self._fault in (PAUSE_BEFORE, PAUSE_AFTER)
        self._world.run_for(2 * PAUSE if paused else SETTLING)
        self._world.run(self._inspect(run_id), client)

    async def _submit(self, app: Holdfast) -> str:
        return (await app.submit(self._case.pipeline, self._case.input)).id

    def _worker(self, process: Process, *, faulty: bool) -> Holdfast:
        decide = self._decide if faulty else lambda kind, commands: None
        boundary = IntervenedBoundary(process, decide, PAUSE, self._intervene)
        self._struck.append(boundary)
        store = RecordingStore(self._store, boundary, self.observer)
        options = Options(
            store,  # type: ignore[arg-type]
            FaultyBlobs(self._blobs, boundary),
            CollectingBus(self.published, boundary),  # type: ignore[arg-type]
            worker=WorkerOptions(poll=5.0, progress=5.0),
            lease=TIMES,
            clock=self._world.clock,
            threads=False,
            provide=self._case.provide,
            on_execute=self._on_execute,
        )
        return Holdfast.from_options(options, [self._case.pipeline])

    async def _intervene(self, fault: str, process: Process) -> None:
        match fault:
            case interventions.RETRY:
                steps = self._case.pipeline.steps.values()
                self._fails_next = all(step.max_attempts > 1 for step in steps)
            case interventions.CANCEL:
                if await interventions.cancel(self._store, self._run_id):
                    self._cancelled_at = self._world.clock.monotonic()
            case interventions.CHANGE_LEADER:
                await interventions.change_leaders(self._store)
            case interventions.DAMAGE:
                interventions.damage_last_result(self._store, self._run_id, self.observer)
                process.kill()
            case _:
                raise ValueError(f"{fault!r} is no intervention")

    def _on_execute(self, run: str, step: str, key: str) -> None:
        if self._fails_next:
            self._fails_next = False
            raise Transient("simulated: the step failed")
        if self._cancelled_at is not None:
            late = self._world.clock.monotonic() - self._cancelled_at
            if late > NOTICE:
                self.problems.append(f"L5: {step}[{key}] started {late:g} s after the cancel")
        self.observer.on_execute(run, step, key)

    def _begun(self, first: Process) -> bool:
        """Whether the second worker may start: the run has begun, or the fault has happened."""
        return bool(self.observer.executed) or not first.running or self._over_now()

    def _over_now(self) -> bool:
        return any(not run.state.live for run in at_once(self._store.runs(RunFilter())))

    def _over(self, run_id: str) -> bool:
        return bool(at_once(self._store.over([run_id])))

    def _decide(self, kind: str, commands: Sequence[Command]) -> str | None:
        label = _label(kind, commands)
        if label is None or (label == "Claim" and not at_once(self._store.count(QUEUED))):
            return None
        self.boundaries.append(label)
        return self._fault if len(self.boundaries) - 1 == self._strike_at else None

    async def _inspect(self, run_id: str) -> None:
        run = await self._store.run(run_id)
        assert run is not None
        self.state, self.attempts = run.state, run.epoch
        self.result = await Payloads(self._blobs).fetch(run.result or "null")
        self.error = run.error
        self.problems += self.observer.violations
        self.problems += await check_store(self._store)
        self.problems += check_published(self.published, await self._store.history(run_id))
        if len(await self._store.runs(RunFilter())) != 1:
            self.problems.append("I6: one submission became several runs")


class RecordingStore(FaultyStore):
    """Also tells an observer what the store really accepted, before any answer can be lost."""

    def __init__(self, store: MemoryStore, boundary: Boundary, observer: Observer) -> None:
        super().__init__(store, boundary)
        self._observer = observer

    async def apply(self, commands: Sequence[Command]) -> list[Any]:
        async def call() -> list[Any]:
            replies = await self._store.apply(commands)
            self._observer.observe(commands, replies)
            return replies

        replies = await self._boundary.cross("store", commands, call)
        self._boundary.refused += sum(type(reply).__name__ == "Stale" for reply in replies)
        return replies


def _label(kind: str, commands: Sequence[Command]) -> str | None:
    if kind != "store":
        return kind
    names = [_name(command) for command in commands if not isinstance(command, UNINTERESTING)]
    names = [name for name in names if name]
    return ", ".join(names) or None


def _name(command: Command) -> str:
    step, key = getattr(command, "step", None), getattr(command, "key", None)
    kind = type(command).__name__
    if step is not None:
        return f"{kind} {step}[{key}]" if key else f"{kind} {step}"
    return kind
