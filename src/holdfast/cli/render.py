"""What people see: tables, and the page of a run with its timeline."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.cli import timeline
from holdfast.model.duration import humanise
from holdfast.model.run import StepStatus
from holdfast.ports.store import LaneInfo
from holdfast.services.steps import StepView, UsageView
from holdfast.services.views import DeadLetterView, EventView, LockView, LogView, RunSummary, RunView

if TYPE_CHECKING:
    from holdfast.model.report.estimate import Estimate
    from holdfast.ports.health import Finding
    from holdfast.services.catalogue import DeclaredStep, PipelineView

COLOR = {
    "queued": "blue",
    "running": "yellow",
    "paused": "magenta",
    "succeeded": "green",
    "failed": "red",
    "cancelled": "dim",
    "completed": "green",
    "in_progress": "yellow",
    "skipped": "dim",
    "pending": "dim",
}
GLYPH = {
    StepStatus.COMPLETED: "✔",
    StepStatus.IN_PROGRESS: "▶",
    StepStatus.FAILED: "✘",
    StepStatus.SKIPPED: "–",
    StepStatus.PENDING: "·",
}
REUSED = "↺"


Cell = str | Text | None


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    right: Collection[str] = (),
    whole: Collection[str] = (),
    free: str = "",
) -> Table:
    """A table without lines. Columns in `whole` hold ids and are never cut; `free` gives way to the others."""
    result = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    lines = [[_cell(cell, name == free) for name, cell in zip(headings, row, strict=True)] for row in rows]
    for index, heading in enumerate(headings):
        widest = max((line[index].cell_len for line in lines), default=0)
        result.add_column(
            heading,
            justify="right" if heading in right else "left",
            no_wrap=heading != free,
            min_width=widest if heading in whole else None,
        )
    for line in lines:
        result.add_row(*line)
    return result


def _cell(value: Cell, free: bool) -> Text:
    text = value if isinstance(value, Text) else Text(value or "")
    text.no_wrap = True
    text.overflow = "ellipsis" if free else "crop"
    return text


def colored(word: str) -> Text:
    return Text(word.replace("_", " "), style=COLOR.get(word, ""))


def moment(value: datetime | None) -> str:
    return "" if value is None else value.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def age(value: datetime) -> str:
    """How long ago, in one unit: `45s`, `3m`, `2d`."""
    seconds = max(0.0, (datetime.now(UTC) - value).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f}{unit}"
    return f"{seconds:.0f}s"


def took(value: float | None) -> str:
    return "" if value is None else humanise(value)


def empty(what: str, hint: str = "") -> Text:
    return Text(f"no {what}{f'; {hint}' if hint else ''}", style="dim")


# --- runs -------------------------------------------------------------------------------------------------


def runs(items: Sequence[RunSummary]) -> RenderableType:
    if not items:
        return empty("runs")
    tenants = any(run.tenant != "default" for run in items)
    headings = ["RUN", "PIPELINE", *(["TENANT"] if tenants else []), "STATE", "TRIES", "AGE", "TOOK", "WHY"]
    rows = [_run_row(run, tenants) for run in items]
    return table(headings, rows, right=("TRIES", "AGE", "TOOK"), whole=("RUN",), free="WHY")


def _run_row(run: RunSummary, tenants: bool) -> list[Cell]:
    return [
        run.id,
        run.pipeline,
        *([run.tenant] if tenants else []),
        colored(run.state),
        f"{run.attempts}/{run.attempt_limit}",
        age(run.created),
        took(run.duration),
        str(run.error) if run.error else run.reason,
    ]


def run_page(view: RunView, width: int) -> RenderableType:
    """The whole story of a run."""
    return Group(*_head(view), Text(), steps(view, width), Text(), summary_line(view), *_tail(view))


def _head(view: RunView) -> list[RenderableType]:
    run = view.run
    title = Text.assemble((run.id, "bold"), "  ", run.pipeline, "  ", colored(run.state))
    facts = [f"tenant {run.tenant}", f"lane {run.lane}", f"try {run.attempts} of {run.attempt_limit}"]
    facts += [f"key {run.key}"] if run.key else []
    facts += [f"priority {run.priority}"] if run.priority else []
    facts += [f"worker {run.worker}"] if run.worker else []
    times = [f"created {moment(run.created)}"]
    times += [f"waited {took(run.wait)}"] if run.wait is not None else []
    times += [f"took {took(run.duration)}"] if run.duration is not None else []
    lines: list[RenderableType] = [
        title,
        Text(" · ".join(facts), style="dim"),
        Text(" · ".join(times), style="dim"),
    ]
    if run.parent:
        lines.append(Text(f"rerun of {run.parent}", style="dim"))
    return lines


def _tail(view: RunView) -> list[RenderableType]:
    run = view.run
    lines: list[RenderableType] = []
    if run.error:
        lines.append(Text(f"{'failed' if run.state == 'failed' else 'last error'}: {run.error}", style="red"))
    if run.reason:
        lines.append(Text(f"{run.state}: {run.reason}"))
    if view.validation_failures:
        told = ", ".join(f"{step} {count}×" for step, count in view.validation_failures.items())
        lines.append(Text(f"stored results that failed validation: {told}", style="magenta"))
    if view.dead_letter:
        lines.append(
            Text(f"dead letter {view.dead_letter.id}: go on with `holdfast dlq redrive {view.dead_letter.id}`")
        )
    return lines


def summary_line(view: RunView) -> Text:
    """`3 steps executed, 2 reused · 5,400 tokens · $0.0120`."""
    totals = view.totals
    parts = [f"{totals.executed} {'step' if totals.executed == 1 else 'steps'} executed, {totals.reused} reused"]
    parts[0] += f", {totals.skipped} skipped" if totals.skipped else ""
    open_steps = sum(step.status not in (StepStatus.COMPLETED, StepStatus.SKIPPED) for step in view.steps)
    parts[0] += f", {open_steps} not finished" if open_steps else ""
    parts += _spent(totals.usage)
    parts += [f"of it wasted {', '.join(_spent(totals.wasted))}"] if totals.wasted.calls else []
    parts += [f"saved by reuse {', '.join(_spent(totals.inherited))}"] if totals.inherited.calls else []
    return Text(" · ".join(parts), style="bold")


def _spent(usage: UsageView) -> list[str]:
    if not usage.calls:
        return []
    cost = money(usage)
    return [f"{usage.total_tokens:,} tokens", *([cost] if cost else [])]


def money(usage: UsageView) -> str:
    """The cost; what is unknown is called unknown."""
    if not usage.calls:
        return ""
    known = f"${usage.cost:.4f}" if usage.cost or not usage.unpriced else ""
    unknown = f"{usage.unpriced} unpriced" if usage.unpriced else ""
    return " + ".join(part for part in (known, unknown) if part)


# --- steps ------------------------------------------------------------------------------------------------


def steps(view: RunView, width: int) -> RenderableType:
    """The steps as bars on one time axis."""
    axis = timeline.axis(view)
    shown = _columns(view.steps)
    room = timeline.room(width, view.steps, shown)
    rows = [
        [_name(step), _status(step), _bar(step, axis, room), *(write(step) for write in shown.values())]
        for step in view.steps
    ]
    return table(("STEP", "STATUS", axis.label, *shown), rows, right=shown)


def _columns(found: Sequence[StepView]) -> dict[str, Any]:
    """The columns that have something to say."""
    columns: dict[str, Any] = {
        "TOOK": lambda s: "" if s.status == StepStatus.SKIPPED else took(s.duration),
        "TRIES": lambda s: str(s.attempts or ""),
    }
    if any(step.items or step.total for step in found):
        columns["ITEMS"] = _items
    if any(step.left is not None for step in found):
        columns["LEFT"] = lambda s: "" if s.left is None else f"about {humanise(round(s.left))}"
    if any(step.usage.calls for step in found):
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
    offset, length = axis.place(step, room)
    return Text(" " * offset + (timeline.REUSED if step.reused else timeline.BAR) * length, style=_color(step))


# --- events, logs, dead letters ---------------------------------------------------------------------------


def event_line(event: EventView) -> Text:
    facts = event.data if isinstance(event.data, dict) else {}
    name = f"{facts['step']} " if "step" in facts else ""
    rest = {
        key: value for key, value in facts.items() if key in ("attempt", "worker", "epoch", "reason", "actor", "delay")
    }
    told = " ".join(f"{key}={value}" for key, value in rest.items() if value not in ("", None))
    error = facts.get("error")
    if isinstance(error, dict):
        told += f" {error.get('name')}: {error.get('message')}"
    return Text.assemble((f"{event.seq:>4} {moment(event.at)}  ", "dim"), (f"{event.type:<22} ", "bold"), name, told)


def dead_letters(items: Sequence[DeadLetterView]) -> RenderableType:
    if not items:
        return empty("dead letters")
    headings = ("DEAD LETTER", "FROM", "TENANT", "AGE", "STATUS", "REASON")
    rows = [[one.id, _source(one), one.tenant, age(one.created), one.resolution or "open", one.reason] for one in items]
    return table(headings, rows, right=("AGE",), whole=("DEAD LETTER",), free="REASON")


def _source(letter: DeadLetterView) -> str:
    return letter.attributes.get("pipeline", "") if letter.run else letter.source


def dead_letter(letter: DeadLetterView, body: dict[str, Any]) -> RenderableType:
    head = Text.assemble((letter.id, "bold"), "  ", letter.resolution or "open")
    facts = [f"from {letter.source}", f"tenant {letter.tenant}", f"since {moment(letter.created)}"]
    facts += [f"{name} {value}" for name, value in letter.attributes.items()]
    shown = body["body"] if body["encoding"] != "json" else json.dumps(body["body"], indent=2, ensure_ascii=False)
    hint = f"`holdfast dlq redrive {letter.id}` sends it on its way again" if letter.closed is None else ""
    return Group(head, Text(" · ".join(facts), style="dim"), Text(letter.reason, style="red"), Text(shown), Text(hint))


def log_line(line: LogView) -> Text:
    style = {"warning": "yellow", "error": "red", "debug": "dim"}.get(line.level, "")
    fields = "".join(f" {name}={value}" for name, value in line.fields.items())
    return Text.assemble(
        (f"{moment(line.at)}  ", "dim"),
        (f"{line.level:<7} ", style),
        (f"{line.step}: ", "bold"),
        line.message,
        (fields, "dim"),
    )


# --- reports ----------------------------------------------------------------------------------------------


def estimate(found: Estimate) -> RenderableType:
    """What a report would cost, step by step."""
    lines = [(one.step, one.calls, one.input_tokens, one.output_tokens, one.cost) for one in found.steps]
    lines.append(("in all", found.calls, found.input_tokens, found.output_tokens, found.cost))
    rows: list[list[Cell]] = [
        [name, f"{calls:,}", f"{given:,}", f"{said:,}", _dollars(cost)] for name, calls, given, said, cost in lines
    ]
    head = Text(f"{found.comments:,} comments with {found.model}, if no answer is known yet", style="bold")
    return Group(head, table(("STEP", "CALLS", "TOKENS IN", "TOKENS OUT", "COST"), rows, right=ESTIMATED))


ESTIMATED = ("CALLS", "TOKENS IN", "TOKENS OUT", "COST")


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"


# --- locks, lanes, pipelines, settings --------------------------------------------------------------------


def locks(items: Sequence[LockView]) -> RenderableType:
    if not items:
        return empty("locks are held")
    headings = ("LOCK", "HOLDER", "EPOCH", "SINCE", "LEFT")
    rows = [[one.name, one.holder, str(one.epoch), moment(one.acquired), took(one.remaining)] for one in items]
    return table(headings, rows, right=("EPOCH", "LEFT"), whole=("LOCK",))


def lanes(items: Sequence[LaneInfo]) -> RenderableType:
    if not items:
        return empty("lanes", "a worker defines them when it starts")
    headings = ("LANE", "ORDER", "AT FAILURE", "QUEUED", "RUNNING", "LEADER", "TERM", "BLOCKED BY")
    return table(
        headings,
        map(_lane_row, items),
        right=("QUEUED", "RUNNING", "TERM"),
        whole=("LANE", "BLOCKED BY"),
        free="LEADER",
    )


def _lane_row(lane: LaneInfo) -> list[Cell]:
    fifo = lane.order == "fifo"
    leader = lane.leader or ("nobody" if fifo else "")
    counts = [str(lane.queued), str(lane.running)]
    return [
        lane.name,
        lane.order,
        lane.head if fifo else "",
        *counts,
        leader,
        str(lane.term or ""),
        lane.blocked_by,
    ]


def pipelines(items: Sequence[PipelineView]) -> RenderableType:
    headings = ("PIPELINE", "INPUT", "LANE", "TRIES", "TIMEOUT", "FROM", "STEPS")
    return table(headings, map(_pipeline_row, items), right=("TRIES",), whole=("PIPELINE",), free="STEPS")


def _pipeline_row(view: PipelineView) -> list[Cell]:
    lane = f"{view.lane} (fifo)" if view.order == "fifo" else view.lane
    names = " ".join(step.name for step in view.steps)
    return [view.name, view.input, lane, str(view.max_attempts), took(view.timeout), view.origin, names]


def graph(view: PipelineView) -> RenderableType:
    """Each step below what it waits for."""
    headings = ("STEP", "WAITS FOR", "FOLLOWS ITEMS OF", "GIVES", "TRIES", "TIMEOUT")
    return table(headings, map(_declared_row, view.steps), right=("TRIES",), whole=("STEP", "WAITS FOR"))


def _declared_row(step: DeclaredStep) -> list[Cell]:
    name = f"{step.name} (optional)" if step.optional else step.name
    needs = " ".join([*(["input"] if step.takes_input else []), *step.needs])
    return [name, needs, " ".join(step.streams), step.result, str(step.max_attempts), took(step.timeout)]


MARKS = {"ok": ("✔", "green"), "warn": ("!", "yellow bold"), "fail": ("✘", "red bold")}


def findings(items: Sequence[Finding]) -> RenderableType:
    """One line for each check, and the whole of each problem: nobody should have to ask twice."""
    ordered = sorted(items, key=lambda one: one.status != "ok")
    marks = [Text.assemble(MARKS[one.status], " ", (f"{one.check:<10} ", "bold"), one.seen) for one in ordered]
    return Group(*marks)


def finding(one: Finding, is_first: bool, width: int) -> Text:
    """What was seen and, unless all is well, why it matters and how to fix it. The first of an area names it."""
    mark, color = MARKS[one.status]
    lead = (f"{one.area if is_first else '':<9}", "bold")
    line = Text.assemble(lead, (f"{mark} ", color), f"{one.check:<18} ", no_wrap=True)
    parts = [("", one.seen, "" if one.status == "ok" else color)]
    if one.status != "ok":
        parts += [(label, text, "") for label, text in (("why  ", one.why), ("fix  ", one.fix)) if text]
    indent = line.cell_len
    for label, text, style in parts:
        room = max(20, width - indent - len(label))
        wrapped = wrap(text, room, break_long_words=False, break_on_hyphens=False)
        rest = "\n" + " " * (indent + len(label))
        line.append("\n" + " " * indent if label else "").append(label, "dim").append(rest.join(wrapped), style)
    return line


def sum_of_findings(findings: Sequence[Finding]) -> Text:
    def number(status: str, name: str) -> str:
        count = sum(one.status == status for one in findings)
        return f"{count or 'no'} {name}{'' if count == 1 else 's'}"

    worst = next((status for status in ("fail", "warn") if any(one.status == status for one in findings)), "ok")
    text = f"{len(findings)} checks: {number('fail', 'problem')}, {number('warn', 'warning')}"
    return Text(f"\n{text}", style=MARKS[worst][1])


def settings(items: Sequence[Any], origin: bool) -> RenderableType:
    headings = ("SETTING", "VALUE", "FROM") if origin else ("SETTING", "VALUE")
    rows = [[one.name, one.value, Text(one.origin, style=_faint(one.origin))][: len(headings)] for one in items]
    return table(headings, rows, whole=("SETTING", "VALUE"), free="FROM")


def _faint(origin: str) -> str:
    return "dim" if origin == "default" else ""
