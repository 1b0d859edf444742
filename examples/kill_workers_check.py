"""What must hold when kill_workers.py has finished: the traces of the steps agree with the store.

Why this proves that nothing with a checkpoint ran again: a checkpoint is written under an epoch,
and only while that epoch holds the lease. So it was durable before any later epoch began, and a
trace that carries a later epoch than the step's first `step.completed` event is an execution after
the checkpoint. Traces are written before a step returns, so every execution has one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from kill_workers_pipeline import HOSTILE_ACTIONS

from holdfast.model.event import Event
from holdfast.model.run import Run
from holdfast.ports.store import RunFilter, Store
from holdfast.testing.invariants import check_store

PROMISES = {
    "I1": "under each epoch only the worker worked that the store had given the run to",
    "I2": "every run that was accepted is there, once, and succeeded",
    "I3": "no step ran again after its checkpoint was stored, and none was stored twice",
    "I4": "every run ended once, with the right result",
    "I10": "every history is gap-free and follows the declared transitions",
    "I11": "what the histories say is what really happened",
    "I12": "no dead letter appears twice",
    "I23": "runs that did what no store can hold ended for that reason, and delayed no other",
    "L1": "work went on by itself until all of it was done",
    "L4": "workers that were told to stop went in time",
}
"""What is looked at; problems begin with these names."""


class Trace(NamedTuple):
    """One execution of a step."""

    run: str
    step: str
    pid: int
    epoch: int


class Figures(NamedTuple):
    executions: int
    repeated: int
    """Executions beyond one per step: work that was cut off before it had a checkpoint."""
    takeovers: int
    """Attempts that began where a vanished worker had stopped."""
    events: int


def read_traces(path: Path) -> list[Trace]:
    lines = (line.split() for line in path.read_text().splitlines())
    return [Trace(run, step, int(pid), int(epoch)) for run, step, pid, epoch in lines]


async def check(
    store: Store, traces: Sequence[Trace], runs: int, steps: int
) -> tuple[Figures, list[str]]:
    """The figures, and every promise that was broken."""
    by_run: dict[str, list[Trace]] = defaultdict(list)
    for trace in traces:
        by_run[trace.run].append(trace)
    stored_runs = await store.runs(RunFilter(pipeline="soak"), limit=runs + 1)
    problems = (
        []
        if len(stored_runs) == runs
        else [f"I2: {runs} runs were accepted, the store has {len(stored_runs)}"]
    )
    lost = events = 0
    for run in stored_runs:
        story = Story(run, await store.history(run.id), by_run[run.id], steps)
        problems += story.problems()
        events += len(story.history)
        lost += sum(event.type == "run.worker_lost" for event in story.history)
    problems += await check_store(store)
    return Figures(
        len(traces), len(traces) - len({(t.run, t.step) for t in traces}), lost, events
    ), problems


async def check_hostile(
    store: Store, runs: int, hostile: int, server_is_killed: bool
) -> tuple[int, list[str]]:
    """How many valid runs were retried, and problems with hostile runs or caused by them. A run may
    be tried again when its server was away, and for nothing else."""
    problems: list[str] = []
    acts = await store.runs(RunFilter(pipeline="hostile"), limit=hostile + 1)
    if len(acts) != hostile:
        problems.append(f"I23: {hostile} hostile runs were accepted, the store has {len(acts)}")
    for run in acts:
        expected = HOSTILE_ACTIONS[msgspec.json.decode(run.input)][1]
        error = run.error.name if run.error else None
        if (run.state, error) != ("failed" if expected else "succeeded", expected):
            problems.append(f"I23: {run.input} is {run.state} with {error} (run {run.id})")
    retried = 0
    for run in await store.runs(RunFilter(pipeline="soak"), limit=runs):
        history = await store.history(run.id)
        causes = [msgspec.json.decode(e.data)["error"] for e in history if e.type == "run.retrying"]
        retried += bool(causes)
        problems += [
            f"I23: it was retried because of {cause} (run {run.id})"
            for cause in causes
            if not server_is_killed or cause["name"] != "StoreUnavailable"
        ]
    return retried, problems


class Story:
    """One run: its history, and the traces of its steps."""

    def __init__(self, run: Run, history: list[Event], traces: list[Trace], steps: int) -> None:
        self.run = run
        self.history = history
        self.traces = traces
        self.steps = steps
        self.workers = {fact["epoch"]: fact["worker"] for fact in self._facts("run.started")}

    def problems(self) -> list[str]:
        violations = [*self._ending(), *self._stored(), *self._holders(), *self._repeats()]
        return [f"{problem} (run {self.run.id})" for problem in violations]

    def _facts(self, kind: str) -> list[dict[str, int | str]]:
        return [msgspec.json.decode(event.data) for event in self.history if event.type == kind]

    def _ending(self) -> list[str]:
        """I2, I4: it succeeded, once, with the right result."""
        expected = str(int(self.run.input) + self.steps)
        problems = [] if self.run.state == "succeeded" else [f"I2: it is {self.run.state}"]
        problems += (
            [] if self.run.result == expected else [f"I4: result {self.run.result}, not {expected}"]
        )
        ends = len(self._facts("run.completed"))
        return problems if ends == 1 else [*problems, f"I4: it succeeded {ends} times"]

    def _stored(self) -> list[str]:
        """I3: every step was stored once, by an execution, and never executed under a later
        epoch."""
        stored: dict[str, list[int]] = defaultdict(list)
        for fact in self._facts("step.completed"):
            stored[str(fact["step"])].append(int(fact["epoch"]))
        problems = [
            f"I3: {step} was stored {len(es)} times" for step, es in stored.items() if len(es) > 1
        ]
        if len(stored) != self.steps:
            problems.append(f"I11: {len(stored)} of {self.steps} steps were stored")
        executed = {(trace.step, trace.epoch) for trace in self.traces}
        for step, epochs in stored.items():
            if (step, min(epochs)) not in executed:
                problems.append(
                    f"I11: {step} was stored under epoch {min(epochs)} without being executed"
                )
            late = [epoch for name, epoch in executed if name == step and epoch > min(epochs)]
            problems += [
                f"I3: {step} ran under epoch {epoch}, stored by {min(epochs)}" for epoch in late
            ]
        return problems

    def _holders(self) -> list[str]:
        """I1: under each epoch only the worker that held it executed steps."""
        problems = []
        for trace in self.traces:
            worker = str(self.workers.get(trace.epoch))
            if f"-{trace.pid}-" not in worker:
                problems.append(
                    f"I1: pid {trace.pid} ran {trace.step} under epoch {trace.epoch} of {worker}"
                )
        return problems

    def _repeats(self) -> list[str]:
        """A chain has one step in flight: each attempt that was lost explains one repetition and no
        more."""
        problems = [
            f"I3: {step} ran {count} times under epoch {epoch}"
            for (step, epoch), count in Counter(
                (trace.step, trace.epoch) for trace in self.traces
            ).items()
            if count > 1
        ]
        repeated = len(self.traces) - len({trace.step for trace in self.traces})
        if repeated > len(self.workers) - 1:
            problems.append(f"I3: {repeated} repetitions in {len(self.workers)} attempts")
        return problems
