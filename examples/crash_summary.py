"""What `make crash` shows at the end: the steps on a time axis, the proof, and what to try next."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from crash_pipeline import AT_ONCE, EFFECTS, demo
from rich.console import Group
from rich.table import Table
from rich.text import Text

from holdfast.model.event import Event, history_gaps

CheckpointName = tuple[str, str]
"""A step and the key of its item; "" is the step itself."""


class Effect(NamedTuple):
    """One line of effects.log: something was executed."""

    at: float
    pid: int
    attempt: int
    name: CheckpointName


class CrashRecord(NamedTuple):
    """What happened. `stored` is what had a checkpoint when the first worker died."""

    began: float
    killed: float
    stored: set[CheckpointName]
    history: list[Event]
    effects: list[Effect]
    result: str
    expected: str


class Promise(NamedTuple):
    kept: bool
    text: str


def read_effects(folder: Path) -> list[Effect]:
    lines = (line.split(" ", 3) for line in (folder / EFFECTS).read_text().splitlines())
    return [
        Effect(float(at), int(pid), int(attempt), checkpoint_name(name))
        for at, pid, attempt, name in lines
    ]


def checkpoint_name(idempotency_key: str) -> CheckpointName:
    """`run:step` or `run:step:key`."""
    _, step, *key = idempotency_key.split(":")
    return step, key[0] if key else ""


# --- the proof ------------------------------------------------------------------------------------


def promises(record: CrashRecord) -> list[Promise]:
    """What holdfast promises, compared with what really happened."""
    times = Counter(effect.name for effect in record.effects)
    twice = {name for name, count in times.items() if count > 1}
    again = sorted(f"{step} {key}".rstrip() for step, key in twice & record.stored)
    steps, items = (
        sum(not key for _, key in record.stored),
        sum(bool(key) for _, key in record.stored),
    )
    ends = sum(event.type == "run.completed" for event in record.history)
    return [
        Promise(
            not again,
            f"{steps} steps and {items} items were stored before the kill: "
            + (f"AGAIN ran {', '.join(again)}" if again else "none of them ran again"),
        ),
        Promise(
            len(twice - record.stored) <= AT_ONCE and max(times.values()) <= 2,
            f"{len(twice - record.stored)} items ran twice: in flight at the kill, nothing stored "
            "of them yet",
        ),
        Promise(ends == 1, "one end: the run succeeded once"),
        Promise(
            not history_gaps(record.history),
            f"one history: {len(record.history)} events, no number is missing",
        ),
        Promise(record.result == record.expected, f"one result: {record.result}"),
    ]


# --- the steps on a time axis ---------------------------------------------------------------------


class Chart:
    """Bars on one time axis, with the kill as a line through all of them."""

    def __init__(self, record: CrashRecord, room: int) -> None:
        self._record = record
        self._room = room
        self._end = record.history[-1].at
        self._resumed = next(
            event.at for event in reversed(record.history) if event.type == "run.started"
        )

    @property
    def axis(self) -> Text:
        killed = "✘ killed" if self._room > 30 else "✘"
        end = f"{self._end - self._record.began:.1f} s"
        text = "0 s".ljust(self._column(self._record.killed)) + killed
        return Text(text.ljust(self._room - len(end)) + end, style="dim")

    def bar(self, step: str) -> Text:
        cells: list[tuple[str, str]] = [(" ", "")] * self._room
        cells[self._column(self._record.killed)] = ("│", "red")
        if (step, "") in self._record.stored:
            cells[self._column(self._resumed)] = ("↺", "cyan")
        for attempt, style in ((1, "cyan"), (2, "green")):
            for column in self._columns(step, attempt):
                cells[column] = ("█", style)
        return Text.assemble(*cells)

    def _columns(self, step: str, attempt: int) -> range:
        begun = [e.at for e in self._record.effects if e.name[0] == step and e.attempt == attempt]
        if not begun:
            return range(0)
        cut_off = attempt == 1 and (step, "") not in self._record.stored
        ended = self._record.killed if cut_off else self._stored_at(step)
        first = self._column(min(begun))
        return range(first, max(first + 1, self._column(ended)))

    def _stored_at(self, step: str) -> float:
        completed = (event for event in self._record.history if event.type == "step.completed")
        return next(
            event.at for event in completed if msgspec.json.decode(event.data)["step"] == step
        )

    def _column(self, at: float) -> int:
        part = (at - self._record.began) / max(0.001, self._end - self._record.began)
        return min(self._room - 1, max(0, int(part * self._room)))


def timeline(record: CrashRecord, width: int) -> Table:
    chart = Chart(record, max(20, width - 60))
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for heading in ("STEP", chart.axis, "ATTEMPT 1", "ATTEMPT 2"):
        table.add_column(heading, no_wrap=True)
    for step in demo.steps:
        table.add_row(
            step, chart.bar(step), _first_attempt(record, step), _second_attempt(record, step)
        )
    return table


def _first_attempt(record: CrashRecord, step: str) -> Text:
    if (step, "") in record.stored:
        return Text("✔ executed", style="cyan")
    begun = {
        effect.name for effect in record.effects if effect.attempt == 1 and effect.name[0] == step
    }
    if not begun:
        return Text("–", style="dim")
    stored = len(begun & record.stored)
    return Text.assemble(
        (f"{stored} items", "cyan"), ", ", (f"{len(begun) - stored} cut off", "red")
    )


def _second_attempt(record: CrashRecord, step: str) -> Text:
    executed = sum(effect.attempt == 2 and effect.name[0] == step for effect in record.effects)
    if (step, "") in record.stored:
        return (
            Text("executed AGAIN", style="bold red") if executed else Text("↺ reused", style="cyan")
        )
    reused = sum(name == step and bool(key) for name, key in record.stored)
    if reused:
        return Text.assemble(
            (f"↺ {reused} reused", "cyan"), ", ", (f"{executed} executed", "green")
        )
    return Text("✔ executed", style="green")


# --- all of it ------------------------------------------------------------------------------------


def proof(promises: Sequence[Promise], folder: Path) -> Group:
    heading = Text.assemble(
        ("PROOF", "bold"), (f"  {folder / EFFECTS}: a line per execution", "dim")
    )
    return Group(heading, *(_verdict(entry) for entry in promises))


def _verdict(promise: Promise) -> Text:
    return Text.assemble(("✔ ", "green") if promise.kept else ("✘ ", "bold red"), promise.text)


def next_steps(run_id: str, folder: Path) -> Group:
    holdfast, store = _command("holdfast"), f"sqlite:///{folder}/holdfast.db"
    tips = {
        f"{holdfast} --store {store} runs show {run_id[:8]}": "this run in detail",
        f"cat {folder / EFFECTS}": "what was executed: time, pid, attempt, idempotency key",
        f"{holdfast} --app examples/comments.py run comments": "a realistic pipeline",
        f"{_command('python')} examples/own_tests.py": "how to test your own against crashes",
        "make soak": "2,000 runs, two workers, killed and paused all the time",
    }
    lines = [Text.assemble(command, "\n", (f"    {why}", "dim")) for command, why in tips.items()]
    return Group(Text("TRY NEXT", style="bold"), *lines)


def _command(name: str) -> str:
    """How to call a program of this environment from here."""
    path = Path(sys.executable).with_name(name)
    if shutil.which(name) == str(path):
        return name
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
