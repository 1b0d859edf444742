"""`make demo`: a run, its worker killed in the middle, another worker that goes on, and the proof.

Everything happens in ./holdfast-demo: one SQLite file, the traces that the steps leave, the logs of the workers.
The exit code is 0 only if every promise was kept.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from demo_pipeline import EFFECTS, demo
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from holdfast import Holdfast, RunHandle
from holdfast.model.event import Event, history_gaps

FOLDER = Path("holdfast-demo")
COMMENTS = 24
KILL_AT = 10
"""The worker dies when so many items of step 3 are stored."""
PATIENCE = 25.0
POLL = 0.02
LEASE = {"TTL": "3s", "RENEW": "1s", "MARGIN": "500ms", "SWEEP": "500ms"}
"""Short, so that nobody has to wait: the default lease lasts 30 s."""

Place = tuple[str, str]
"""A step and the key of its item; "" is the step itself."""


class Broken(Exception):
    """A promise that was not kept."""


class Effect(NamedTuple):
    """One line of effects.log: something was executed."""

    at: float
    pid: int
    attempt: int
    place: Place


class Promise(NamedTuple):
    kept: bool
    text: str


# --- the two workers --------------------------------------------------------------------------------------


def start_worker(number: int) -> subprocess.Popen[bytes]:
    """`holdfast worker` as anybody would start it, in the folder of the demo."""
    command = [sys.executable, "-m", "holdfast", "--store", "sqlite:///holdfast.db"]
    command += ["--app", str(Path(__file__).with_name("demo_pipeline.py")), "worker"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    environment |= {f"HOLDFAST_LEASE_{name}": value for name, value in LEASE.items()}
    with open(FOLDER / f"worker-{number}.log", "wb") as log:
        return subprocess.Popen(command, cwd=FOLDER, env=environment, stdout=log, stderr=log)


# --- the story --------------------------------------------------------------------------------------------


class Demo:
    """Plays the story and tells it while it happens."""

    def __init__(self, app: Holdfast, run: RunHandle, console: Console) -> None:
        self.app = app
        self.run = run
        self.console = console
        self.began = time.time()
        self.killed = 0.0
        self.stored: set[Place] = set()
        """What had a checkpoint when the first worker died."""
        self._workers: list[subprocess.Popen[bytes]] = []
        self._told = 0

    async def play(self) -> None:
        try:
            self._say(f"run {self.run.id} is accepted: it is in the file, no worker needed yet")
            self._start()
            await self._watch(self._reached_the_middle, f"{KILL_AT} stored items")
            await self._kill()
            self._start()
            await self._watch(self._is_over, "the end of the run")
        finally:
            for worker in self._workers:
                worker.kill()
                worker.wait()

    def _start(self) -> None:
        number = len(self._workers) + 1
        self._workers.append(start_worker(number))
        waits = f" and waits for the lease of worker {number - 1} ({LEASE['TTL']}) to end" if number > 1 else ""
        self._say(f"worker {number} starts (pid {self._workers[-1].pid}){waits}")

    async def _kill(self) -> None:
        """SIGKILL: no handler, no clean-up, no goodbye."""
        worker = self._workers[0]
        worker.kill()
        worker.wait()
        self.killed = time.time()
        found = await self.app.store.checkpoints(self.run.id)
        self.stored = {(checkpoint.step, checkpoint.key) for checkpoint in found}
        items = sum(bool(key) for _, key in self.stored)
        self._say(
            f"✘ kill -9 {worker.pid} in the middle of step 3 of 5: {items} of {COMMENTS} items are stored",
            "bold red",
        )

    async def _reached_the_middle(self) -> bool:
        return len(await self.app.store.checkpoints(self.run.id, "opinions")) >= KILL_AT

    async def _is_over(self) -> bool:
        return bool(await self.app.store.over([self.run.id]))

    async def _watch(self, reached: Callable[[], Awaitable[bool]], what: str) -> None:
        """Tell each new event until the story has come to this point."""
        deadline = time.monotonic() + PATIENCE
        while not await reached():
            await self._tell_news()
            if time.monotonic() > deadline:
                raise Broken(f"waited {PATIENCE:.0f} s for {what}; look at {FOLDER}/worker-*.log")
            await asyncio.sleep(POLL)
        await self._tell_news()

    async def _tell_news(self) -> None:
        for event in (await self.app.store.history(self.run.id))[self._told :]:
            self._told += 1
            told, style = in_words(event, len(self._workers))
            if told:
                self._say(told, style, event.at)

    def _say(self, text: str, style: str = "", at: float | None = None) -> None:
        moment = max(0.0, (at or time.time()) - self.began)
        self.console.print(Text.assemble((f"{moment:5.1f} s  ", "dim"), (text, style)))


def in_words(event: Event, worker: int) -> tuple[str, str]:
    """What an event of the history means to people, and its colour."""
    facts = msgspec.json.decode(event.data)
    match event.type:
        case "run.started":
            return f"worker {worker} has the run: attempt {facts['attempt']}", ""
        case "run.worker_lost":
            return "the lease has ended: the run is queued again, with all that is stored", "yellow"
        case "step.completed":
            return f"✔ {facts['step']} is stored", "green"
        case "run.completed":
            return "✔ the run has succeeded", "bold green"
        case _:
            return "", ""


# --- the proof --------------------------------------------------------------------------------------------


def read_effects() -> list[Effect]:
    lines = (line.split(" ", 3) for line in (FOLDER / EFFECTS).read_text().splitlines())
    return [Effect(float(at), int(pid), int(attempt), place_of(name)) for at, pid, attempt, name in lines]


def place_of(idempotency_key: str) -> Place:
    """`run:step` or `run:step:key`."""
    _, step, *key = idempotency_key.split(":")
    return step, key[0] if key else ""


def promises(story: Demo, effects: Sequence[Effect], history: Sequence[Event], result: str) -> list[Promise]:
    times = Counter(effect.place for effect in effects)
    again = sorted(place for place in story.stored if times[place] > 1 and place in times)
    unstored = sorted(place for place, count in times.items() if count > 1 and place not in story.stored)
    steps, items = sum(not key for _, key in story.stored), sum(bool(key) for _, key in story.stored)
    ended = [event for event in history if event.type == "run.completed"]
    right = ", ".join(f"{COMMENTS // 3} {mood}" for mood in ("delighted", "doubtful", "furious"))
    return [
        Promise(not again, f"{steps} steps and {items} items were stored before the kill: none ran again {again or ''}"),
        Promise(len(unstored) <= 5, f"{len(unstored)} ran twice: in flight at the kill, nothing stored yet"),
        Promise(max(times.values()) <= 2, f"nothing ran more than twice, {len(times)} things ran at all"),
        Promise(len(ended) == 1, "one end: the run succeeded once"),
        Promise(not history_gaps(list(history)), f"one history: {len(history)} events, no number missing"),
        Promise(result == right, f"one result: {result}"),
    ]


# --- the summary ------------------------------------------------------------------------------------------


class Chart:
    """Rows of bars on one time axis, with the kill as a line through all of them."""

    def __init__(self, story: Demo, effects: Sequence[Effect], history: Sequence[Event], room: int) -> None:
        self._story = story
        self._effects = effects
        self._history = history
        self._room = room
        self._end = history[-1].at
        self._resumed = next(e.at for e in reversed(history) if e.type == "run.started")

    @property
    def axis(self) -> Text:
        line = Text("0 s".ljust(self._room))
        mark = "✘ killed"
        at = min(self._column(self._story.killed), self._room - len(mark))
        end = f"{self._end - self._story.began:.1f} s"
        text = (line.plain[:at] + mark).ljust(self._room - len(end)) + end
        return Text(text[: self._room], style="dim")

    def bar(self, step: str) -> Text:
        line = Text(" " * self._room)
        cells: list[tuple[str, str]] = [(" ", "")] * self._room
        for attempt, style in ((1, "cyan"), (2, "green")):
            for column in self._columns(step, attempt):
                cells[column] = ("█", style)
        if (step, "") in self._story.stored:
            cells[self._column(self._resumed)] = ("↺", "cyan")
        killed = self._column(self._story.killed)
        if cells[killed][0] == " ":
            cells[killed] = ("│", "red")
        line = Text.assemble(*cells)
        return line

    def _columns(self, step: str, attempt: int) -> range:
        begun = [e.at for e in self._effects if e.place[0] == step and e.attempt == attempt]
        if not begun:
            return range(0)
        ended = self._ended(step) if attempt == 2 or (step, "") in self._story.stored else self._story.killed
        return range(self._column(min(begun)), max(self._column(min(begun)) + 1, self._column(ended)))

    def _ended(self, step: str) -> float:
        return next(
            event.at
            for event in self._history
            if event.type == "step.completed" and msgspec.json.decode(event.data)["step"] == step
        )

    def _column(self, at: float) -> int:
        part = (at - self._story.began) / max(0.001, self._end - self._story.began)
        return min(self._room - 1, max(0, int(part * self._room)))


def attempts_table(story: Demo, effects: Sequence[Effect], chart: Chart) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("STEP", no_wrap=True)
    table.add_column(chart.axis, no_wrap=True)
    table.add_column("ATTEMPT 1", no_wrap=True)
    table.add_column("ATTEMPT 2", no_wrap=True)
    for step in demo.steps:
        table.add_row(step, chart.bar(step), first_try(story, effects, step), second_try(story, effects, step))
    return table


def first_try(story: Demo, effects: Sequence[Effect], step: str) -> Text:
    if (step, "") in story.stored:
        return Text("✔ executed", style="cyan")
    begun = {e.place for e in effects if e.attempt == 1 and e.place[0] == step}
    stored = len(begun & story.stored)
    return Text(f"{stored} items, {len(begun) - stored} cut off" if begun else "–", style="cyan" if begun else "dim")


def second_try(story: Demo, effects: Sequence[Effect], step: str) -> Text:
    executed = [e for e in effects if e.attempt == 2 and e.place[0] == step]
    reused = sum(1 for name, key in story.stored if name == step and key)
    if (step, "") in story.stored:
        return Text("executed AGAIN", style="bold red") if executed else Text("↺ reused", style="cyan")
    if reused:
        return Text.assemble((f"↺ {reused} reused", "cyan"), ", ", (f"{len(executed)} executed", "green"))
    return Text("✔ executed", style="green")


def proof(kept: Sequence[Promise]) -> Group:
    lines = [
        Text.assemble(("✔ " if one.kept else "✘ ", "green" if one.kept else "bold red"), one.text) for one in kept
    ]
    return Group(Text(f"PROOF  from {FOLDER / EFFECTS}, a line per execution", style="bold"), *lines)


def next_steps(run_id: str) -> Group:
    store = f"--store sqlite:///{FOLDER}/holdfast.db"
    tips = [
        (f"holdfast {store} runs show {run_id}", "the same run, as the command line shows it"),
        (f"cat {FOLDER / EFFECTS}", "what was executed: time, pid, attempt, idempotency key"),
        ("holdfast --app examples/comments.py run comments", "a realistic pipeline"),
        ("python examples/own_tests.py", "how to test yours against crashes"),
        ("make soak", "2,000 runs, workers killed all the time"),
    ]
    lines = [Text.assemble((f"{command}\n", ""), (f"    {why}", "dim")) for command, why in tips]
    return Group(Text("TRY NEXT", style="bold"), *lines)


# --- all of it --------------------------------------------------------------------------------------------


async def main() -> int:
    console = make_console()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    console.print(Text("holdfast: five steps, one SQLite file, one kill -9\n", style="bold"))
    async with Holdfast(f"sqlite:///{FOLDER}/holdfast.db", pipelines=[demo], worker=False) as app:
        story = Demo(app, await app.submit(demo, COMMENTS, key="demo"), console)
        try:
            await story.play()
            return await conclude(story)
        except Broken as broken:
            console.print(Text(f"✘ {broken}", style="bold red"))
            return 1


async def conclude(story: Demo) -> int:
    """Show what happened, and whether it was what was promised."""
    history = await story.app.store.history(story.run.id)
    result = await story.run.result(timeout=5)
    effects = read_effects()
    kept = promises(story, effects, history, result)
    chart = Chart(story, effects, history, max(20, story.console.width - 60))
    for part in (attempts_table(story, effects, chart), proof(kept), next_steps(story.run.id)):
        story.console.print()
        story.console.print(part)
    return 0 if all(one.kept for one in kept) else 1


def make_console() -> Console:
    """At most 100 columns; plain text when nobody looks at a terminal."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal without Unicode
    console = Console(highlight=False)
    console.width = min(100, console.width) if console.is_terminal else 100
    return console


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
