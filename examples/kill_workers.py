"""Thousands of runs on one store while their workers are killed and paused at random, and then the proof.

    python examples/kill_workers.py --runs 2000
    python examples/kill_workers.py --runs 2000 --store redis://localhost:6379/9

Two `holdfast worker` processes share a SQLite file, or the store that is named. Every 0.3 to 1.5 s one of them is
killed with SIGKILL and replaced, or stopped with SIGSTOP for longer than its lease and then continued: it wakes up
believing in a lease that is gone. The exit code is 0 only if every promise was kept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kill_workers_check import Figures, check, read_traces
from kill_workers_pipeline import TRACES, soak

from holdfast import Holdfast, Transient
from holdfast.ports.store import RunFilter

TTL = 2.0
LEASE = {"TTL": f"{TTL}s", "RENEW": "500ms", "MARGIN": "500ms", "SWEEP": "300ms"}
OVERSLEEP = (TTL + 0.5, TTL + 1.5)
PAUSE_EVERY = 5
"""One strike in so many is a pause rather than a kill."""
EARLY_SHARE = 0.1
"""How many strikes may hit a worker that has not done anything yet."""
DRAIN = 20.0
LOOK = 0.1


class Worker:
    """A worker process of ours."""

    def __init__(self, folder: Path, number: int, environment: dict[str, str], store: str) -> None:
        command = [sys.executable, "-m", "holdfast", "--store", store]
        command += ["--app", str(Path(__file__).resolve().with_name("kill_workers_pipeline.py")), "worker"]
        self._log = folder / f"worker-{number:03}.log"
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        self.wakes_at: float | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_up(self) -> bool:
        """It has said hello: from then on it listens to signals."""
        return self._log.stat().st_size > 0

    @property
    def found_nobody(self) -> bool:
        """It was started while the store's server was away, and left: whoever watches over it starts it again."""
        return "can't be reached" in self._log.read_text()[:1000]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def pause(self, seconds: float) -> None:
        self.process.send_signal(signal.SIGSTOP)
        self.wakes_at = time.monotonic() + seconds

    def wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.wakes_at = None

    def stop(self) -> int:
        """Ask it to hand everything over and to go. The exit code."""
        self.wake()
        self.process.terminate()
        try:
            return self.process.wait(DRAIN)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL


class Fleet:
    """So many workers, whatever happens to them."""

    def __init__(self, folder: Path, asked: argparse.Namespace) -> None:
        self.kills = self.pauses = 0
        self.problems: list[str] = []
        self._folder = folder
        self._store: str = asked.store
        self._size: int = asked.workers
        self._chance = random.Random(asked.seed)
        self._strikes: int | None = asked.strikes
        self._every: tuple[float, float] = tuple(asked.every)
        self._environment = environment_of(asked)
        self._workers: list[Worker] = []
        self._started = 0
        self._next_strike = 0.0
        self._at_work = Witness(folder / TRACES)

    def step(self) -> None:
        """Keep the fleet complete, wake those who overslept, and strike when it is time."""
        now = time.monotonic()
        self._bury_the_dead()
        while len(self._workers) < self._size:
            self._started += 1
            self._workers.append(Worker(self._folder, self._started, self._environment, self._store))
        for worker in self._workers:
            if worker.wakes_at is not None and worker.wakes_at <= now:
                worker.wake()
        calm = self._strikes is not None and self.kills + self.pauses >= self._strikes
        if not calm and now >= self._next_strike and self._strike():
            self._next_strike = now + self._chance.uniform(*self._every)

    def _bury_the_dead(self) -> None:
        for worker in [worker for worker in self._workers if worker.process.poll() is not None]:
            if not worker.found_nobody:
                self.problems.append(f"worker {worker.pid} ended by itself with code {worker.process.returncode}")
            self._workers.remove(worker)

    def _strike(self) -> bool:
        """Hit somebody who is at work: killing processes that only start proves little. False: not now."""
        busy = self._at_work.pids()
        early = self._chance.random() < EARLY_SHARE
        awake = [worker for worker in self._workers if worker.wakes_at is None]
        victims = [worker for worker in awake if early or worker.pid in busy]
        if not victims:
            return False
        victim = self._chance.choice(victims)
        if (self.kills + self.pauses) % PAUSE_EVERY == PAUSE_EVERY // 2:
            self.pauses += 1
            victim.pause(self._chance.uniform(*OVERSLEEP))
        else:
            self.kills += 1
            self._workers.remove(victim)
            victim.kill()
        return True

    def drain(self) -> None:
        """The end: everybody is asked to go, and must."""
        for worker in self._workers:
            was_up = worker.is_up
            if (code := worker.stop()) != 0 and was_up:
                self.problems.append(f"L4: worker {worker.pid} was told to stop and ended with code {code}")
        self._workers.clear()

    def leases_given_up(self) -> int:
        """How often a worker noticed that its lease was gone, and wrote nothing."""
        return sum(log.read_text().count(": lease lost") for log in self._folder.glob("worker-*.log"))

    def kill_all(self) -> None:
        for worker in self._workers:
            worker.kill()


class Witness:
    """Knows which processes have executed something, by reading on where it stopped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._pids: set[int] = set()

    def pids(self) -> set[int]:
        if self._path.exists():
            with open(self._path, "rb") as file:
                file.seek(self._read)
                lines = file.read().splitlines(keepends=True)
            for line in lines:
                if line.endswith(b"\n"):
                    self._read += len(line)
                    self._pids.add(int(line.split()[2]))
        return self._pids


def environment_of(asked: argparse.Namespace) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    environment |= {f"HOLDFAST_LEASE_{name}": value for name, value in LEASE.items()}
    return environment | {
        "HOLDFAST_CONCURRENCY": str(asked.concurrency),
        "SOAK_STEPS": str(asked.steps),
        "SOAK_STEP_SECONDS": str(asked.step_seconds),
    }


# --- the soak ---------------------------------------------------------------------------------------------


async def rage(app: Holdfast, fleet: Fleet, runs: int, limit: float) -> float:
    """Strike until all runs are over. The seconds it took."""
    began = time.monotonic()
    try:
        while await unfinished(app):
            if time.monotonic() - began > limit:
                fleet.problems.append(f"L1: {await unfinished(app)} of {runs} runs not over after {limit:g} s")
                break
            fleet.step()
            await asyncio.sleep(LOOK)
        took = time.monotonic() - began
        fleet.drain()
        return took
    finally:
        fleet.kill_all()


async def unfinished(app: Holdfast) -> int:
    while True:
        try:
            counts = await app.store.count(RunFilter(pipeline="soak"))
        except Transient:  # somebody kills the server too
            await asyncio.sleep(LOOK)
        else:
            return sum(counts.get(state, 0) for state in ("queued", "running", "paused"))


async def submit(app: Holdfast, runs: int) -> None:
    await asyncio.gather(*(app.submit(soak, number, key=f"soak-{number}") for number in range(runs)))


async def play(folder: Path, asked: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """The figures, and every promise that was broken."""
    async with Holdfast(asked.store, pipelines=[soak], worker=False) as app:
        await submit(app, asked.runs)
        fleet = Fleet(folder, asked)
        took = await rage(app, fleet, asked.runs, asked.seconds_limit)
        figures, problems = await check(app.store, read_traces(folder / TRACES), asked.runs, asked.steps)
    return summary(asked, fleet, figures, took), fleet.problems + problems


def summary(asked: argparse.Namespace, fleet: Fleet, figures: Figures, took: float) -> dict[str, Any]:
    return {
        "runs": asked.runs,
        "steps each": asked.steps,
        "seconds": round(took, 1),
        "runs per second": round(asked.runs / took, 1),
        "workers killed": fleet.kills,
        "workers paused past their lease": fleet.pauses,
        "runs taken over": figures.takeovers,
        "leases given up by workers that woke too late": fleet.leases_given_up(),
        "step executions": figures.executions,
        "of them repeated (cut off, nothing stored yet)": figures.repeated,
    }


# --- the command ------------------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=16, help="runs in flight per worker")
    parser.add_argument("--step-seconds", type=float, default=0.05, help="how long a step takes, on average")
    parser.add_argument("--every", type=float, nargs=2, default=(0.3, 1.5), help="seconds between two strikes")
    parser.add_argument("--strikes", type=int, default=None, help="leave them alone after so many strikes")
    parser.add_argument("--seconds-limit", type=float, default=300)
    parser.add_argument("--seed", type=int, default=None, help="of the strikes; what they hit is up to the machine")
    parser.add_argument("--store", help="a URL; what is there must be empty (default: a new SQLite file)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser.parse_args()


def report(figures: dict[str, Any], problems: Iterable[str], as_json: bool) -> None:
    problems = list(problems)
    if as_json:
        print(json.dumps({**figures, "problems": problems}))
        return
    for name, value in figures.items():
        print(f"{value:>10,}  {name}")
    print(f"{len(problems):>10}  promises broken")
    for problem in problems[:20]:
        print(f"            ✘ {problem}")


def main() -> int:
    asked = arguments()
    asked.seed = random.randrange(10**6) if asked.seed is None else asked.seed
    os.environ["SOAK_STEPS"] = str(asked.steps)
    folder = Path(tempfile.mkdtemp(prefix="holdfast-soak-"))
    asked.store = asked.store or f"sqlite:///{folder}/holdfast.db"
    print(f"seed {asked.seed}, in {folder}", file=sys.stderr)
    figures, problems = asyncio.run(play(folder, asked))
    report(figures, problems, asked.json)
    if problems:
        print(f"everything is kept in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
