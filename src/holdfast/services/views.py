"""What people see of a run, gathered from the store: the shapes behind `runs list`, `runs show` and
the API.

Times are UTC; they are written as RFC 3339. Durations are seconds.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from holdfast.model.event import Event, EventType
from holdfast.model.limits import storable
from holdfast.model.run import ErrorInfo, Run, RunState, StepStatus
from holdfast.ports.store import DeadLetter, Store, StoredLog
from holdfast.services.steps import StepView, UsageView, completed_steps, finished_steps, step_views


class RunSummary(Struct):
    """One line of `runs list`. `wait` is the time from acceptance to the first start."""

    id: str
    tenant: str
    pipeline: str
    lane: str
    state: str
    priority: int
    key: str | None
    parent: str | None
    attempts: int
    attempt_limit: int
    worker: str | None
    created: datetime
    started: datetime | None
    finished: datetime | None
    wait: float | None
    duration: float | None
    error: ErrorInfo | None
    reason: str | None
    labels: dict[str, str]
    damage: str | None = None
    """What of it can't be read any more."""


class Totals(Struct):
    """`usage` is what this run consumed, `wasted` included; `inherited` was paid for by the run it
    reruns."""

    executed: int
    reused: int
    skipped: int
    usage: UsageView
    wasted: UsageView
    inherited: UsageView


class EventView(Struct):
    id: str
    seq: int
    type: str
    at: datetime
    data: Any


class LogView(Struct):
    at: datetime
    level: str
    step: str
    message: str
    fields: dict[str, Any]


class DeadLetterView(Struct):
    id: str
    source: str
    reason: str
    tenant: str
    run: str | None
    created: datetime
    attributes: dict[str, str]
    closed: datetime | None
    resolution: str | None


class DeadLetterPage(Struct):
    """Everything `dlq show` knows. `body` are the original bytes, as readable as they are: what
    JSON says, text, or base64."""

    dead_letter: DeadLetterView
    error: ErrorInfo | None
    """How its run failed; None for a message, and for a run that has gone on."""
    encoding: Literal["json", "text", "base64"]
    body: Any


class RunView(Struct):
    """Everything `runs show` knows."""

    run: RunSummary
    input: Any
    attributes: dict[str, str]
    """What came with the request: the attributes of its message, for example."""
    steps: list[StepView]
    totals: Totals
    validation_failures: dict[str, int]
    dead_letter: DeadLetterView | None
    history: list[EventView]

    @property
    def state(self) -> RunState:
        return RunState(self.run.state)


def at(seconds: float | None) -> datetime | None:
    """A stored time as a date."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def summary(run: Run, now: float, *, traceback: bool = False) -> RunSummary:
    """A run in one line. A traceback is a page, so it has to be asked for."""
    error = run.error
    if error is not None and not traceback:
        error = msgspec.structs.replace(error, traceback=None)
    return RunSummary(
        run.id,
        run.tenant,
        run.pipeline,
        run.lane,
        str(run.state),
        run.priority,
        run.key,
        run.parent,
        run.attempts,
        run.attempt_limit,
        run.worker if run.state == RunState.RUNNING else None,
        datetime.fromtimestamp(run.created, UTC),
        at(run.started),
        at(run.finished),
        None if run.started is None else max(0.0, run.started - run.created),
        None if run.started is None else max(0.0, (run.finished or now) - run.started),
        error,
        run.reason,
        run.labels,
        run.damage,
    )


def readable(text: str) -> Any:
    """What stored JSON says; or, if it is damaged, that it is."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError):
        return {"unreadable": storable(text[:200])}


def event_view(event: Event) -> EventView:
    return EventView(
        event.id,
        event.seq,
        event.type,
        datetime.fromtimestamp(event.at, UTC),
        readable(event.data),
    )


def log_view(line: StoredLog) -> LogView:
    return LogView(
        datetime.fromtimestamp(line.at, UTC),
        line.level,
        line.step,
        line.message,
        readable(line.fields),
    )


def dead_letter_view(letter: DeadLetter) -> DeadLetterView:
    return DeadLetterView(
        letter.id,
        letter.source,
        letter.reason,
        letter.tenant,
        letter.run,
        datetime.fromtimestamp(letter.created, UTC),
        letter.attributes,
        at(letter.closed),
        letter.resolution,
    )


async def dead_letter_page(store: Store, letter: DeadLetter) -> DeadLetterPage:
    run = await store.run(letter.run) if letter.run is not None else None
    error = run.error if run is not None and run.state == RunState.FAILED else None
    return DeadLetterPage(dead_letter_view(letter), error, *_readable_body(letter.body))


def _readable_body(body: bytes) -> tuple[Literal["json", "text", "base64"], Any]:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return "base64", b64encode(body).decode()
    try:
        return "json", msgspec.json.decode(text)
    except msgspec.DecodeError:
        return "text", text


async def run_view(store: Store, run: Run, now: float, declared: Sequence[str] = ()) -> RunView:
    """Everything about a run. `declared` are the steps of its pipeline in order, where that is
    known."""
    history = await store.history(run.id)
    completed = completed_steps(await store.checkpoints(run.id))
    letter = await store.dead_letter(f"run:{run.id}")
    failures = _count([step for step, _, _ in await store.quarantined(run.id)])
    order = declared or list(
        finished_steps(history)
    )  # without the code, the order in which they ended
    steps = step_views(run, completed, failures, order, last_attempt(history), now)
    return _assembled(run, now, steps, failures, history, letter)


async def live_view(store: Store, run: Run, now: float, declared: Sequence[str] = ()) -> RunView:
    """The same, cheap enough to be drawn twice a second: without looking at items and stored
    values."""
    history = await store.history(run.id)
    steps = step_views(run, finished_steps(history), {}, declared, last_attempt(history), now)
    return _assembled(run, now, steps, {}, history, None)


def _assembled(
    run: Run,
    now: float,
    steps: list[StepView],
    failures: dict[str, int],
    history: list[Event],
    letter: DeadLetter | None,
) -> RunView:
    return RunView(
        summary(run, now, traceback=True),
        _input(run),
        run.attributes,
        steps,
        _totals(run, steps),
        failures,
        dead_letter_view(letter) if letter and letter.closed is None else None,
        [event_view(event) for event in history],
    )


def last_attempt(history: Sequence[Event]) -> int:
    """The epoch of the newest attempt. The run's own epoch may be higher: cancelling and pausing
    raise it."""
    started = [event for event in history if event.type == EventType.STARTED]
    return readable(started[-1].data).get("epoch", 0) if started else 0


def _input(run: Run) -> Any:
    """The input, or where it is when it is too large to be kept with the run."""
    return run.input if run.input.startswith("@") else readable(run.input)


def _totals(run: Run, steps: list[StepView]) -> Totals:
    done = [step for step in steps if step.status == StepStatus.COMPLETED]
    wasted = run.progress.wasted
    return Totals(
        sum(not step.reused for step in done),
        sum(step.reused for step in done),
        sum(step.status == StepStatus.SKIPPED for step in steps),
        UsageView.of([wasted, *(step.usage for step in steps if not step.inherited)]),
        UsageView.of([wasted]),
        UsageView.of(step.usage for step in steps if step.inherited),
    )


def _count(names: Sequence[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts
