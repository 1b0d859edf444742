"""`make crash`: a run, its worker killed in the middle, another worker that goes on, and the proof.

Everything happens in ./holdfast-crash: an SQLite file, the traces of the steps, the logs of the
workers. The exit code is 0 only if every promise was kept."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
from crash_pipeline import MOODS, demo
from crash_summary import (
    CheckpointName,
    CrashRecord,
    next_steps,
    promises,
    proof,
    read_effects,
    timeline,
)
from rich.console import Console
from rich.text import Text

from holdfast import Holdfast, RunHandle
from holdfast.model.event import Event

FOLDER = Path("holdfast-crash")
COMMENTS = 24
KILL_AT = 10
"""The worker dies when so many items of step 3 are stored."""
EXPECTED = ", ".join(f"{COMMENTS // len(MOODS)} {mood}" for mood in MOODS)
LEASE = {"TTL": "3s", "RENEW": "1s", "MARGIN": "500ms", "SWEEP": "500ms"}
"""Short, so that nobody has to wait: the default lease lasts 30 s."""
TIMEOUT = 20.0
POLL = 0.02


class Overdue(Exception):
    """Something that was expected did not happen in time."""


def start_worker(number: int) -> subprocess.Popen[bytes]:
    """`holdfast worker` as anybody would start it, in its own folder."""
    command = [sys.executable, "-m", "holdfast", "--store", "sqlite:///holdfast.db"]
    command += ["--app", str(Path(__file__).resolve().with_name("crash_pipeline.py")), "worker"]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")
    }
    environment |= {f"HOLDFAST_LEASE_{name}": value for name, value in LEASE.items()}
    with open(FOLDER / f"worker-{number}.log", "wb") as log:
        return subprocess.Popen(command, cwd=FOLDER, env=environment, stdout=log, stderr=log)


class Demo:
    """Runs the demonstration and prints what happens."""

    def __init__(self, app: Holdfast, run: RunHandle, console: Console) -> None:
        self.app = app
        self.run = run
        self.began = time.time()
        self.killed = 0.0
        self.stored: set[CheckpointName] = set()
        self._console = console
        self._workers: list[subprocess.Popen[bytes]] = []
        self._events_printed = 0

    async def execute(self) -> None:
        try:
            self._print(f"run {self.run.id} is durable, whatever happens now")
            self._start("worker 1 starts")
            await self._watch(self._is_in_the_middle, f"{KILL_AT} stored items")
            await self._kill()
            self._start("worker 2 starts; the lease of worker 1 goes on for a while")
            await self._watch(self._is_over, "the end of the run")
        finally:
            for worker in self._workers:
                worker.kill()
                worker.wait()

    async def record(self) -> CrashRecord:
        """What the summary is made of."""
        history = await self.app.store.history(self.run.id)
        result = await self.run.result(timeout=5)
        return CrashRecord(
            self.began, self.killed, self.stored, history, read_effects(FOLDER), result, EXPECTED
        )

    def _start(self, announcement: str) -> None:
        worker = start_worker(len(self._workers) + 1)
        self._workers.append(worker)
        self._print(f"{announcement} (pid {worker.pid})")

    async def _kill(self) -> None:
        """SIGKILL: no handler runs, nothing is cleaned up."""
        worker = self._workers[0]
        worker.kill()
        worker.wait()
        self.killed = time.time()
        checkpoints = await self.app.store.checkpoints(self.run.id)
        self.stored = {(checkpoint.step, checkpoint.key) for checkpoint in checkpoints}
        items = sum(bool(key) for _, key in self.stored)
        self._print(
            f"✘ kill -9 {worker.pid}: step 3 of 5, {items} of {COMMENTS} items are stored",
            "bold red",
        )

    async def _is_in_the_middle(self) -> bool:
        return len(await self.app.store.checkpoints(self.run.id, "opinions")) >= KILL_AT

    async def _is_over(self) -> bool:
        return bool(await self.app.store.over([self.run.id]))

    async def _watch(self, reached: Callable[[], Awaitable[bool]], description: str) -> None:
        """Print each new event until this condition holds."""
        deadline = time.monotonic() + TIMEOUT
        while not await reached():
            await self._print_new_events()
            if time.monotonic() > deadline:
                raise Overdue(
                    f"waited {TIMEOUT:.0f} s for {description}; look at {FOLDER}/worker-*.log"
                )
            await asyncio.sleep(POLL)
        await self._print_new_events()

    async def _print_new_events(self) -> None:
        for event in (await self.app.store.history(self.run.id))[self._events_printed :]:
            self._events_printed += 1
            text, style = in_words(event, len(self._workers))
            if text:
                self._print(text, style, event.at)

    def _print(self, text: str, style: str = "", at: float | None = None) -> None:
        moment = max(0.0, (at or time.time()) - self.began)
        self._console.print(Text.assemble((f"{moment:5.1f} s  ", "dim"), (text, style)))


def in_words(event: Event, worker: int) -> tuple[str, str]:
    """What an event of the history means to people, and its colour."""
    facts = msgspec.json.decode(event.data)
    match event.type:
        case "run.started":
            return f"worker {worker} has the run: attempt {facts['attempt']}", ""
        case "run.worker_lost":
            return "the lease has ended: the run is queued again, nothing is lost", "yellow"
        case "step.completed":
            return f"✔ {facts['step']} is stored", "green"
        case "run.completed":
            return "✔ the run has succeeded", "bold green"
        case _:
            return "", ""


def empty_folder() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()


async def main() -> int:
    console = make_console()
    empty_folder()
    console.print(Text("holdfast: five steps, one SQLite file, one kill -9\n", style="bold"))
    async with Holdfast(f"sqlite:///{FOLDER}/holdfast.db", pipelines=[demo], worker=False) as app:
        demonstration = Demo(app, await app.submit(demo, COMMENTS, key="demo"), console)
        try:
            await demonstration.execute()
        except Overdue as overdue:
            console.print(Text(f"✘ {overdue}", style="bold red"))
            return 1
        return conclude(await demonstration.record(), demonstration.run.id, console)


def conclude(record: CrashRecord, run_id: str, console: Console) -> int:
    """Show what happened, and whether it was what was promised."""
    results = promises(record)
    for part in (
        timeline(record, console.width),
        proof(results, FOLDER),
        next_steps(run_id, FOLDER),
    ):
        console.print()
        console.print(part, soft_wrap=True)
    return 0 if all(promise.kept for promise in results) else 1


def make_console() -> Console:
    """At most 100 columns wide; plain text when it is not a terminal."""
    # A terminal may have no Unicode.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    console = Console(highlight=False)
    console.width = min(100, console.width) if console.is_terminal else 100
    return console


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
