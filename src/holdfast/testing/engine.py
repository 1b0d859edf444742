"""An engine in memory for tests of pipelines: plain calls, virtual time, crashes on demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.adapters.memory.blobs import MemoryBlobs
from holdfast.adapters.memory.store import MemoryStore
from holdfast.app import Holdfast
from holdfast.bootstrap import Options
from holdfast.engine.handle import RunHandle
from holdfast.model.event import Event
from holdfast.model.lease import LeaseTimes
from holdfast.model.options import WorkerOptions
from holdfast.model.pipeline import Pipeline
from holdfast.model.projection import Projection
from holdfast.model.run import Run, StepRecord
from holdfast.ports.bus import Bus
from holdfast.ports.documents import Documents
from holdfast.ports.store import RunFilter
from holdfast.testing.faults import KILL_AFTER, Boundary, FaultyBlobs, FaultyStore
from holdfast.testing.world import World, at_once

_record = msgspec.json.Decoder(StepRecord).decode


class TestEngine:
    """Runs pipelines in memory. Nothing here sleeps: waiting moves the clock.

    engine = TestEngine(report)
    run = engine.submit(report, request)
    engine.crash_after("claims")         # the worker dies when that step is checkpointed
    engine.drain()                       # … and another one goes on
    assert engine.result(run) == ...
    assert engine.reused(run) == ["clustering", "claims"]
    """

    __test__ = False  # not a test class itself

    def __init__(
        self,
        *pipelines: Pipeline[Any],
        seed: int = 0,
        lease: LeaseTimes | None = None,
        provide: Mapping[type[Any], Any] | None = None,
        worker: WorkerOptions | None = None,
        bus: Bus | None = None,
        documents: Documents | None = None,
        projections: Sequence[Projection | str] = (),
    ) -> None:
        self._provide = provide or {}
        self._bus = bus
        self._documents = documents
        self._projections = projections
        self._worker_options = worker or WorkerOptions()
        self.world = World(seed)
        self.clock = self.world.clock
        self.store = MemoryStore(self.clock)
        self.executed: list[tuple[str, str, str]] = []
        self._blobs = MemoryBlobs()
        self._pipelines = pipelines
        self._lease = lease or LeaseTimes()
        self._crash_after: list[str] = []
        self._client = self.world.process("client")
        self.app = self._app(worker=False)
        self._worker: Holdfast | None = None
        self._workers = 0

    def submit(self, pipeline: Pipeline[Any], input: Any = None, **options: Any) -> RunHandle:
        return self.call(self.app.submit(pipeline, input, **options))

    def call(self, work: Any) -> Any:
        """The result of any coroutine of the app, in virtual time."""
        return self.world.run(work, self._client)

    def crash_after(self, step: str) -> None:
        """Kill the worker at the moment at which this step's checkpoint (or the settlement with it)
        is durable."""
        self._crash_after.append(step)

    def drain(self, within: float = 7 * 86_400.0) -> None:
        """Work until no run is queued or running, with a new worker whenever one dies."""
        self._ensure_worker()
        self.world.run_until(self._idle, within=within)

    def advance(self, seconds: float) -> None:
        """Let time pass, with everything that happens in it."""
        self._ensure_worker()
        self.world.run_for(seconds)

    def result(self, run: RunHandle) -> Any:
        return self.call(run.result())

    def info(self, run: RunHandle) -> Run:
        return self.call(run.info())

    def history(self, run: RunHandle) -> list[Event]:
        return at_once(self.store.history(run.id))

    def steps(self, run: RunHandle) -> dict[str, StepRecord]:
        """The records of the finished steps."""
        checkpoints = at_once(self.store.checkpoints(run.id))
        return {c.step: _record(c.record) for c in checkpoints if not c.key}

    def reused(self, run: RunHandle) -> list[str]:
        """Steps whose result an earlier attempt (or the run before) had left, in the order they
        were finished."""
        epoch = self.info(run).epoch
        steps = sorted(self.steps(run).values(), key=lambda record: record.finished or 0)
        stored = {c.step: c.epoch for c in at_once(self.store.checkpoints(run.id)) if not c.key}
        return [record.step for record in steps if stored[record.step] < epoch]

    def close(self) -> None:
        self.world.close()

    def _idle(self) -> bool:
        self._ensure_worker()
        counts = at_once(self.store.count(RunFilter()))
        return not counts.get("queued") and not counts.get("running")

    def _ensure_worker(self) -> None:
        if self._worker is None or not self._process.alive:
            self._workers += 1
            self._process = self.world.process(f"worker-{self._workers}")
            self._worker = self._app(worker=True)
            self._process.start(self._worker.open())

    def _app(self, *, worker: bool) -> Holdfast:
        process = self._process if worker else self._client
        boundary = Boundary(process, self._decide if worker else lambda kind, commands: None, 0.0)
        options = Options(
            FaultyStore(self.store, boundary),  # type: ignore[arg-type]
            FaultyBlobs(self._blobs, boundary),
            self._bus,
            self._documents,
            self._projections,
            worker=self._worker_options,
            works=worker,
            lease=self._lease,
            clock=self.clock,
            threads=False,
            provide=self._provide,
            on_execute=lambda run, step, key: self.executed.append((run, step, key)),
        )
        return Holdfast.from_options(options, self._pipelines)

    def _decide(self, kind: str, commands: Iterable[Any]) -> str | None:
        for command in commands:
            saved = getattr(command, "last", None) or command
            step = getattr(saved, "step", None)
            if (
                step in self._crash_after
                and getattr(saved, "key", None) == ""
                and hasattr(saved, "value")
            ):
                self._crash_after.remove(step)
                return KILL_AFTER
        return None
