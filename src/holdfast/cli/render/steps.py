"""The steps of a run: bars on one time axis, with what each took, tried and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from holdfast.cli.render import timeline
from holdfast.cli.render.tables import COLOR, table, took
from holdfast.model.duration import humanise
from holdfast.model.run import StepStatus
from holdfast.services.steps import StepView, UsageView
from holdfast.services.views import RunView

GLYPH = {
    StepStatus.COMPLETED: "✔",
    StepStatus.IN_PROGRESS: "▶",
    StepStatus.FAILED: "✘",
    StepStatus.SKIPPED: "–",
    StepStatus.PENDING: "·",
}
REUSED = "↺"


def step_bars(view: RunView, width: int) -> RenderableType:
    """The steps as bars on one time axis."""
    axis = timeline.axis(view)
    shown = _columns(view.steps)
    room = timeline.room(width, view.steps, shown)
    rows = [
        [
            _name(step),
            _status(step),
            _bar(step, axis, room),
            *(write(step) for write in shown.values()),
        ]
        for step in view.steps
    ]
    return table(("STEP", "STATUS", axis.label, *shown), rows, right=shown)


def _columns(steps: Sequence[StepView]) -> dict[str, Any]:
    """The columns that have something to say."""
    columns: dict[str, Any] = {
        "TOOK": lambda s: "" if s.status == StepStatus.SKIPPED else took(s.duration),
        "TRIES": lambda s: str(s.attempts or ""),
    }
    if any(step.items or step.total for step in steps):
        columns["ITEMS"] = _items
    if any(step.left is not None for step in steps):
        columns["LEFT"] = lambda s: "" if s.left is None else f"about {humanise(round(s.left))}"
    if any(step.usage.calls for step in steps):
        columns["TOKENS"] = lambda s: f"{s.usage.total_tokens:,}" if s.usage.calls else ""
        columns["COST"] = lambda s: money(s.usage)
    return columns


def _items(step: StepView) -> str:
    done = step.items or step.done
    failed = f" ({step.failed_items} failed)" if step.failed_items else ""
    if step.total and step.status == StepStatus.IN_PROGRESS:
        return f"{step.done or 0:,}/{step.total:,}{failed}"
    return f"{done:,}{failed}" if done else ""


def _name(step: StepView) -> Text:
    glyph = REUSED if step.reused else GLYPH[step.status]
    return Text(f"{glyph} {step.name}", style=_color(step))


def _color(step: StepView) -> str:
    return "cyan" if step.reused else COLOR[step.status]


def _status(step: StepView) -> Text:
    if step.inherited and step.reused:
        return Text("reused", style="cyan")
    word = step.status.replace("_", " ")
    return Text(f"{word}, reused" if step.reused else word, style=_color(step))


def _bar(step: StepView, axis: timeline.Axis, room: int) -> Text:
    if step.inherited and step.reused:
        return Text("taken over from the earlier run", style="dim")
    offset, length = axis.position(step, room)
    return Text(
        " " * offset + (timeline.REUSED if step.reused else timeline.BAR) * length,
        style=_color(step),
    )


def money(usage: UsageView) -> str:
    """The cost; what is unknown is called unknown."""
    if not usage.calls:
        return ""
    known = f"${usage.cost:.4f}" if usage.cost or not usage.unpriced else ""
    unknown = f"{usage.unpriced} unpriced" if usage.unpriced else ""
    return " + ".join(part for part in (known, unknown) if part)
