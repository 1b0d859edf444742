"""Runs: their table, the page of one with its whole story, and the lines of its history and log."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.cli.render.steps import money, step_bars
from holdfast.cli.render.tables import (
    Cell,
    age,
    colored,
    empty,
    moment,
    table,
    took,
    traceback_lines,
)
from holdfast.model.run import StepStatus
from holdfast.services.steps import UsageView
from holdfast.services.views import EventView, LogView, RunSummary, RunView


def run_table(items: Sequence[RunSummary]) -> RenderableType:
    if not items:
        return empty("runs")
    tenants = any(run.tenant != "default" for run in items)
    headings = [
        "RUN",
        "PIPELINE",
        *(["TENANT"] if tenants else []),
        "STATE",
        "TRIES",
        "AGE",
        "TOOK",
        "WHY",
    ]
    rows = [_run_row(run, tenants) for run in items]
    return table(headings, rows, right=("TRIES", "AGE", "TOOK"), whole=("RUN",), free="WHY")


def _run_row(run: RunSummary, tenants: bool) -> list[Cell]:
    return [
        run.id,
        run.pipeline,
        *([run.tenant] if tenants else []),
        colored(_state(run)),
        f"{run.attempts}/{run.attempt_limit}",
        age(run.created),
        took(run.duration),
        run.damage or (str(run.error) if run.error else run.reason),
    ]


def _state(run: RunSummary) -> str:
    return "broken" if run.damage else run.state


def run_page(view: RunView, width: int) -> RenderableType:
    """The whole story of a run."""
    return Group(
        *_head(view), Text(), step_bars(view, width), Text(), summary_line(view), *_tail(view)
    )


def _head(view: RunView) -> list[RenderableType]:
    run = view.run
    title = Text.assemble((run.id, "bold"), "  ", run.pipeline, "  ", colored(_state(run)))
    facts = [
        f"tenant {run.tenant}",
        f"lane {run.lane}",
        f"try {run.attempts} of {run.attempt_limit}",
    ]
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
    for name, values in (("labels", run.labels), ("attributes", view.attributes)):
        if values:
            listed = ", ".join(f"{key}={value}" for key, value in sorted(values.items()))
            lines.append(Text(f"{name} {listed}", style="dim"))
    if run.parent:
        lines.append(Text(f"rerun of {run.parent}", style="dim"))
    return lines


def _tail(view: RunView) -> list[RenderableType]:
    run = view.run
    lines: list[RenderableType] = []
    if run.damage:
        lines.append(Text(f"{run.state}, and damaged: {run.damage}", style="red"))
    if run.error:
        lines.append(
            Text(f"{'failed' if run.state == 'failed' else 'last error'}: {run.error}", style="red")
        )
        lines += traceback_lines(run.error)
    if run.reason:
        lines.append(Text(f"{run.state}: {run.reason}"))
    if view.validation_failures:
        failures = ", ".join(f"{step} {count}×" for step, count in view.validation_failures.items())
        lines.append(Text(f"stored results that failed validation: {failures}", style="magenta"))
    if view.dead_letter:
        lines.append(
            Text(
                f"dead letter {view.dead_letter.id}: go on with `holdfast dlq redrive "
                f"{view.dead_letter.id}`"
            )
        )
    return lines


def summary_line(view: RunView) -> Text:
    """`3 steps executed, 2 reused · 5,400 tokens · $0.0120`."""
    totals = view.totals
    parts = [
        f"{totals.executed} {'step' if totals.executed == 1 else 'steps'} executed, "
        f"{totals.reused} reused"
    ]
    parts[0] += f", {totals.skipped} skipped" if totals.skipped else ""
    open_steps = sum(
        step.status not in (StepStatus.COMPLETED, StepStatus.SKIPPED) for step in view.steps
    )
    parts[0] += f", {open_steps} not finished" if open_steps else ""
    parts += _spent(totals.usage)
    parts += [f"of it wasted {', '.join(_spent(totals.wasted))}"] if totals.wasted.calls else []
    parts += (
        [f"saved by reuse {', '.join(_spent(totals.inherited))}"] if totals.inherited.calls else []
    )
    return Text(" · ".join(parts), style="bold")


def _spent(usage: UsageView) -> list[str]:
    if not usage.calls:
        return []
    cost = money(usage)
    return [f"{usage.total_tokens:,} tokens", *([cost] if cost else [])]


def event_line(event: EventView) -> Text:
    facts = event.data if isinstance(event.data, dict) else {}
    name = f"{facts['step']} " if "step" in facts else ""
    shown = {
        key: value
        for key, value in facts.items()
        if key in ("attempt", "worker", "epoch", "reason", "actor", "delay")
    }
    text = " ".join(f"{key}={value}" for key, value in shown.items() if value not in ("", None))
    error = facts.get("error")
    if isinstance(error, dict):
        text += f" {error.get('name')}: {error.get('message')}"
    return Text.assemble(
        (f"{event.seq:>4} {moment(event.at)}  ", "dim"), (f"{event.type:<22} ", "bold"), name, text
    )


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
