"""Bars on a common time axis: where a step begins and how long it is, in characters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from holdfast.model.duration import humanise
from holdfast.model.run import RunState, StepStatus
from holdfast.services.steps import StepView
from holdfast.services.views import RunView

BAR = "█"
REUSED = "▒"
LEAST, MOST = 12, 60


class Axis(Struct, frozen=True):
    """From the first start to the end, or to now while the run goes on."""

    start: datetime | None
    end: datetime | None
    now: datetime

    @property
    def span(self) -> float:
        return (self.end - self.start).total_seconds() if self.start and self.end else 0.0

    @property
    def label(self) -> str:
        return f"0 … {humanise(self.span)}" if self.start else ""

    def position(self, step: StepView, room: int) -> tuple[int, int]:
        """Offset and length of a step's bar. Clocks may have jumped: nothing ever leaves the
        axis."""
        if (
            self.start is None
            or step.started is None
            or step.status in (StepStatus.PENDING, StepStatus.SKIPPED)
        ):
            return 0, 0
        end = step.finished or self.now
        first = self._column(step.started, room)
        last = self._column(end, room)
        return min(first, room - 1), max(1, last - first)

    def _column(self, moment: datetime, room: int) -> int:
        if self.start is None or self.span <= 0:
            return 0
        part = (moment - self.start).total_seconds() / self.span
        return round(max(0.0, min(1.0, part)) * room)


def axis(view: RunView) -> Axis:
    own = [step for step in view.steps if not step.inherited]
    starts = [step.started for step in own if step.started] + (
        [view.run.started] if view.run.started else []
    )
    ends = [step.finished for step in own if step.finished] + (
        [view.run.finished] if view.run.finished else []
    )
    now = datetime.now(UTC)
    if view.state == RunState.RUNNING:
        ends.append(now)
    return Axis(min(starts, default=None), max(ends, default=None), now)


def room(width: int, steps: Sequence[StepView], columns: Collection[str]) -> int:
    """How many characters the bars may take beside the other columns."""
    names = max((len(step.name) for step in steps), default=0) + 4
    statuses = 20 if any(step.reused and not step.inherited for step in steps) else 13
    return max(LEAST, min(MOST, width - names - statuses - 9 * len(columns) - 2))
