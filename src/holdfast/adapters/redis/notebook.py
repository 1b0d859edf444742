"""The steps that this process saves, noted until their run is over: its state document is then made
here.

The server could look them up, and does for runs that others have worked on before. But it has one
thread for everybody and spent a third of it on that. Times are the server's: that of the claim, and
how long ago that was."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from operator import attrgetter
from time import monotonic

import msgspec
from msgspec import Raw, Struct

from holdfast.model.commands import SaveCheckpoint, SaveProgress, Settle
from holdfast.model.usage import Usage

MOST = 10_000
"""Runs in the notebook."""

LARGE = 4096
"""Characters of a value that is not worth keeping, nor sending twice."""


class Record(Struct, gc=False):
    """What is needed of a `StepRecord`, to be read thousands of times a second: no enum, and times
    as they are told."""

    status: str
    started: datetime
    finished: datetime
    duration: float | None = None
    usage: Usage | None = None
    error: Raw | None = None


class StepAnalytics(Struct, rename="camel", gc=False):
    """That of `model.analytics`, of a step that was completed or skipped."""

    step_name: str
    status: str
    started_at: datetime
    completed_at: datetime
    duration_ms: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    cost: float


class Document(Struct, rename="camel"):
    """The state document of a run that has succeeded."""

    version: str
    report_id: str
    user_id: str
    created_at: datetime
    step_analytics: dict[str, StepAnalytics]
    completed_results: dict[str, Raw | str]
    updated_at: datetime
    status: str
    validation_failures: dict[str, int]
    total_tokens: int
    total_cost: float
    total_duration_ms: int


_recorded = msgspec.json.Decoder(Record, strict=False).decode  # not strict: times are numbers
_at = datetime.fromtimestamp
NONE: dict[str, int] = {}
_json = msgspec.json.Encoder().encode


def owner(tenant: str, pipeline: str, lane: str) -> str:
    """Whose a run is, as the scripts are told."""
    return f"{tenant}\0{pipeline}\0{lane}"


class Summary(Struct):
    """What the server need not look up of a run that has succeeded."""

    owner: str
    is_plain: bool
    """Whether nothing was to be shown of it before."""
    steps: int
    document: bytes
    """JSON of its `Document`."""


class Page(Struct):
    """One run: what its document begins with, and the steps that were saved."""

    epoch: int
    owner: str
    name: str
    tenant: str
    created: float
    started: float
    since: float
    """When it was started by our own clock, which only measures how long ago that was."""
    steps: dict[str, SaveCheckpoint]
    is_shown: bool = False
    """Whether progress was sent, so that the server has something to tidy up."""


class Notebook:
    """Has the steps of runs that began in this process, and are not over. What it does not know is
    no loss.

    The keeper of leases forgets pages from its own thread: a page may be gone between two looks at
    it."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._pages: dict[str, Page] = {}

    def __len__(self) -> int:
        return len(self._pages)

    def begin(
        self,
        run: str,
        epoch: int,
        owner: str,
        key: str | None,
        tenant: str,
        created: float,
        started: float,
    ) -> None:
        """Note a run that nobody has worked on before, and that was started just now."""
        self._pages[run] = Page(epoch, owner, key or run, tenant, created, started, monotonic(), {})
        if len(self._pages) > self._most:
            self._pages.pop(next(iter(self._pages)), None)

    def note(self, saved: SaveCheckpoint) -> None:
        page = self._pages.get(saved.run)
        if page is None or page.epoch != saved.epoch or saved.key:
            return
        if len(saved.value) > LARGE:
            self._pages.pop(saved.run, None)
        else:
            page.steps[saved.step] = saved

    def show(self, progress: SaveProgress) -> None:
        page = self._pages.get(progress.run)
        if page is not None:
            page.is_shown = True

    def forget(self, lost: Iterable[tuple[str, int]]) -> None:
        for run, epoch in lost:
            self._tear_out(run, epoch)

    def close(self, settled: Settle) -> Summary | None:
        """Forget a run, and sum it up if it has succeeded and all is known of it."""
        if settled.last is not None:
            self.note(settled.last)
        page = self._tear_out(settled.run, settled.epoch)
        if page is None or settled.outcome != "succeeded" or settled.progress != "{}":
            return None
        return sum_up(page)

    def _tear_out(self, run: str, epoch: int) -> Page | None:
        page = self._pages.get(run)
        return self._pages.pop(run, None) if page is not None and page.epoch == epoch else None


def sum_up(page: Page) -> Summary | None:
    """None if there is a record of another making: the server shows what it finds in it."""
    steps: dict[str, StepAnalytics] = {}
    results: dict[str, Raw | str] = {}
    tokens, cost = 0, 0.0
    for step, saved in page.steps.items():
        told = _analytics(step, saved.record)
        if told is None:
            return None
        steps[step] = told
        tokens, cost = tokens + told.total_tokens, cost + told.cost
        if (
            not saved.skipped
        ):  # a value that is too large to be here is shown as the name of where it is
            results[step] = saved.value if saved.value.startswith("@") else Raw(saved.value)
    if len(steps) > 1:
        steps = {
            each.step_name: each for each in sorted(steps.values(), key=attrgetter("started_at"))
        }
    spent = monotonic() - page.since
    created, updated = _at(page.created, UTC), _at(page.started + spent, UTC)
    took = int(1000 * spent + 0.5)
    document = Document(
        "1.0",
        page.name,
        page.tenant,
        created,
        steps,
        results,
        updated,
        "completed",
        NONE,
        tokens,
        cost,
        took,
    )
    return Summary(page.owner, not page.is_shown, len(steps), _json(document))


def _analytics(step: str, text: str) -> StepAnalytics | None:
    try:
        record = _recorded(text)
    except msgspec.DecodeError:
        return None
    if record.duration is None or record.error is not None:
        return None
    took = int(1000 * record.duration + 0.5) or 1  # a step that was executed took some time
    usage = record.usage
    if usage is None:
        return StepAnalytics(
            step, record.status, record.started, record.finished, took, 0, 0, 0, 0.0
        )
    inputs, outputs = usage.input_tokens, usage.output_tokens
    return StepAnalytics(
        step,
        record.status,
        record.started,
        record.finished,
        took,
        inputs,
        outputs,
        inputs + outputs,
        usage.cost,
    )
