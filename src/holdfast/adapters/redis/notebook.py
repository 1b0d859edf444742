"""The steps that this process saves, noted until their run is over: most of its state document is then made here.

The server could look them up, and does for runs that others have worked on before. But it has one thread for everybody
and spent a third of it on that.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from operator import itemgetter

import msgspec
from msgspec import Struct

from holdfast.model.analytics import StepAnalytics, analytics, moment
from holdfast.model.run import StepRecord
from holdfast.ports.commands import SaveCheckpoint, Settle

MOST = 10_000
"""Runs in the notebook."""

LARGE = 4096
"""Characters of a value that is not worth keeping, nor sending twice."""

_record = msgspec.json.Decoder(StepRecord).decode
_json = msgspec.json.Encoder().encode


class Beginning(Struct, rename="camel"):
    """A state document up to its results."""

    version: str
    report_id: str
    user_id: str
    created_at: datetime | None
    step_analytics: dict[str, StepAnalytics]
    completed_results: dict[str, msgspec.Raw | str]


class Summary(Struct):
    """What the server need not look up of a run that has succeeded."""

    steps: int
    document: bytes
    """Its state document up to the results, JSON."""
    tokens: int
    cost: float


class Page(Struct):
    """One run: what its document begins with, and the steps that were saved."""

    name: str
    tenant: str
    created: float
    steps: dict[str, SaveCheckpoint]


class Notebook:
    """Has the steps of runs that began in this process, and are not over. What it does not know is no loss."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._pages: dict[tuple[str, int], Page] = {}

    def __len__(self) -> int:
        return len(self._pages)

    def begin(self, run: str, epoch: int, key: str | None, tenant: str, created: float) -> None:
        """Note a run that nobody has worked on before."""
        self._pages[run, epoch] = Page(key or run, tenant, created, {})
        while len(self._pages) > self._most:
            self._pages.pop(next(iter(self._pages)), None)

    def note(self, saved: SaveCheckpoint) -> None:
        if saved.key:
            return
        if len(saved.value) > LARGE:
            self.forget([(saved.run, saved.epoch)])
        elif (page := self._pages.get((saved.run, saved.epoch))) is not None:
            page.steps[saved.step] = saved

    def forget(self, lost: Iterable[tuple[str, int]]) -> None:
        for run, epoch in lost:
            self._pages.pop((run, epoch), None)

    def close(self, settled: Settle) -> Summary | None:
        """Forget a run, and sum it up if it has succeeded and all is known of it."""
        if settled.last is not None:
            self.note(settled.last)
        page = self._pages.pop((settled.run, settled.epoch), None)
        if page is None or settled.outcome != "succeeded" or settled.progress != "{}":
            return None
        try:
            return sum_up(page)
        except msgspec.DecodeError:  # a record of another making: the server shows what it finds in it
            return None


def sum_up(page: Page) -> Summary:
    told: list[tuple[float, StepAnalytics]] = []
    results: dict[str, msgspec.Raw | str] = {}
    tokens, cost = 0, 0.0
    for step, saved in page.steps.items():
        record = _record(saved.record)
        told.append((record.started or 0.0, analytics(step, record)))
        tokens, cost = tokens + record.usage.total_tokens, cost + record.usage.cost
        if not saved.skipped:  # a value that is too large to be here is shown as the name of where it is
            results[step] = saved.value if saved.value.startswith("@") else msgspec.Raw(saved.value.encode())
    told.sort(key=itemgetter(0))
    steps = {each.step_name: each for _, each in told}
    beginning = Beginning("1.0", page.name, page.tenant, moment(page.created), steps, results)
    return Summary(len(steps), _json(beginning)[:-1], tokens, cost)
