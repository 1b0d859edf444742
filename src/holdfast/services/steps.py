"""The steps of a run as people see them: what is stored, what is under way, what is still to
come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
from msgspec import Struct, field

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event, EventType
from holdfast.model.keys import is_item
from holdfast.model.run import ErrorInfo, Run, RunState, StepRecord, StepStatus
from holdfast.model.usage import Usage

_decode = msgspec.json.Decoder(StepRecord).decode


class UsageView(Struct):
    """`cost` leaves out the calls counted in `unpriced`: their price is unknown, not zero."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cost: float = 0.0
    calls: int = 0
    unpriced: int = 0

    @classmethod
    def of(cls, usages: Iterable[Usage | UsageView]) -> UsageView:
        total = Usage()
        for usage in usages:
            total += Usage(
                usage.input_tokens, usage.output_tokens, usage.cost, usage.calls, usage.unpriced
            )
        return cls(
            total.input_tokens,
            total.output_tokens,
            total.total_tokens,
            total.cost,
            total.calls,
            total.unpriced,
        )


class StepView(Struct):
    """One step. `reused`: the newest attempt found its result in the store; `inherited`: another
    run made it.

    `items` counts the stored items; `done` and `total` are what the step itself said about its
    progress."""

    name: str
    status: StepStatus
    reused: bool = False
    inherited: bool = False
    attempts: int = 0
    started: datetime | None = None
    finished: datetime | None = None
    duration: float | None = None
    items: int = 0
    done: int | None = None
    total: int | None = None
    failed_items: int = 0
    validation_failures: int = 0
    usage: UsageView = field(default_factory=UsageView)
    error: ErrorInfo | None = None
    left: float | None = None
    """Seconds that a step under way will still take if it goes on like this; None if that can't be
    said."""


class Completed(Struct):
    """A step's record, the attempt that wrote it (0: another run) and the number of stored
    items."""

    record: StepRecord | None
    epoch: int = 0
    items: int = 0


def completed_steps(checkpoints: Sequence[Checkpoint]) -> dict[str, Completed]:
    """What is stored, by step. A step whose items alone are stored has no record yet."""
    completed: dict[str, Completed] = {}
    for checkpoint in checkpoints:
        step = completed.setdefault(checkpoint.step, Completed(None))
        if checkpoint.key == "":
            step.record, step.epoch = _record(checkpoint.step, checkpoint.record), checkpoint.epoch
        elif is_item(checkpoint.key):
            step.items += 1
    return completed


def finished_steps(history: Sequence[Event]) -> dict[str, Completed]:
    """The same as far as the events tell: without items, and without what was taken over from
    another run."""
    finished: dict[str, Completed] = {}
    for event in history:
        if event.type in (EventType.STEP_COMPLETED, EventType.STEP_SKIPPED):
            record = _record("", event.data)
            if record.step:
                finished[record.step] = Completed(record, record.epoch)
        elif event.type == EventType.CHECKPOINT_QUARANTINED:
            bad = msgspec.json.decode(event.data)
            if not bad["key"]:
                finished.pop(bad["step"], None)
    return finished


def _record(step: str, text: str) -> StepRecord:
    """A stored record; one that can't be read any more says only that its step has ended."""
    try:
        return _decode(text)
    except msgspec.MsgspecError:
        error = ErrorInfo("Damaged", "what is stored about it can't be read any more")
        return StepRecord(step, StepStatus.COMPLETED, error=error)


def step_views(
    run: Run,
    completed: Mapping[str, Completed],
    failures: Mapping[str, int],
    declared: Sequence[str],
    attempt: int,
    now: float,
) -> list[StepView]:
    """All steps: those that the pipeline declares in its order, then any that only the store
    knows."""
    known = {
        **completed,
        **{name: Completed(None) for name in run.progress.steps if name not in completed},
    }
    extra = sorted(
        (name for name in known if name not in declared),
        key=lambda name: _start_time(run, known[name], name),
    )
    views = [
        _view(run, name, known.get(name, Completed(None)), attempt) for name in (*declared, *extra)
    ]
    for view in views:
        view.validation_failures = failures.get(view.name, 0)
        view.left = _remaining(view, now)
    return views


def _remaining(view: StepView, now: float) -> float | None:
    """By the rule of three. Nothing is said after too little has been seen."""
    if (
        view.status != StepStatus.IN_PROGRESS
        or not view.done
        or not view.total
        or view.started is None
    ):
        return None
    elapsed = now - view.started.timestamp()
    return (
        elapsed * (view.total - view.done) / view.done
        if elapsed > 1 and view.done < view.total
        else None
    )


def _start_time(run: Run, completed: Completed, name: str) -> float:
    record = completed.record or run.progress.steps.get(name)
    return record.started if record and record.started else float("inf")


def _view(run: Run, name: str, completed: Completed, attempt: int) -> StepView:
    record = completed.record or run.progress.steps.get(name)
    if record is None:
        return StepView(name, StepStatus.PENDING, items=completed.items)
    stored = completed.record is not None
    return StepView(
        name,
        record.status if stored else _unfinished(run, record),
        reused=record.status == StepStatus.COMPLETED
        and stored
        and (completed.epoch == 0 or completed.epoch < attempt),
        inherited=stored and completed.epoch == 0,
        attempts=record.attempts,
        started=_at(record.started),
        finished=_at(record.finished),
        duration=record.took,
        items=completed.items,
        done=record.done,
        total=record.total,
        failed_items=record.failed_items,
        usage=UsageView.of([record.usage]),
        error=record.error,
    )


def _unfinished(run: Run, record: StepRecord) -> StepStatus:
    """What was under way when the last attempt ended waits for the next one."""
    if record.status == StepStatus.IN_PROGRESS and run.state != RunState.RUNNING:
        return StepStatus.PENDING
    return record.status


def _at(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
