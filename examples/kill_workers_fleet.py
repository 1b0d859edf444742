"""The workers of kill_workers.py: their number stays the same, whatever happens to them."""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from kill_workers_pipeline import TRACES

TTL = 2.0
LEASE = {"TTL": f"{TTL}s", "RENEW": "500ms", "MARGIN": "500ms", "SWEEP": "300ms"}
PAUSE = (TTL + 0.5, TTL + 1.5)
PAUSE_EVERY = 5
"""One interruption in so many is a pause rather than a kill."""
EARLY_SHARE = 0.1
"""The share of interruptions that may hit a worker that has not executed anything yet."""
DRAIN = 20.0


class Worker:
    """A worker process that we started."""

    def __init__(self, folder: Path, number: int, environment: dict[str, str], store: str) -> None:
        command = [sys.executable, "-m", "holdfast", "--store", store]
        command += [
            "--app",
            str(Path(__file__).resolve().with_name("kill_workers_pipeline.py")),
            "worker",
        ]
        self._log = folder / f"worker-{number:04}.log"
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=log
            )
        self.wakes_at: float | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_up(self) -> bool:
        """It has logged its first line: from then on it handles signals."""
        return self._log.stat().st_size > 0

    @property
    def found_no_server(self) -> bool:
        """It was started while the store's server was down, and ended with an error that says so:
        a supervisor would start it again."""
        last = self._log.read_text().strip().rpartition("\n")[2]
        is_a_bug = last.startswith("holdfast: unexpected ")
        return self.process.returncode == 1 and last.startswith("holdfast: ") and not is_a_bug

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
        """Stop it with SIGTERM, so that it hands its runs over. The exit code."""
        self.wake()
        self.process.terminate()
        try:
            return self.process.wait(DRAIN)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL


class Fleet:
    """A fixed number of workers; those that end are replaced."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.kills = self.pauses = self.ended_without_server = 0
        self.problems: list[str] = []
        self._folder = folder
        self._store: str = options.store
        self._size: int = options.workers
        self._chance = random.Random(options.seed)
        self._strikes: int | None = options.strikes
        self._every: tuple[float, float] = tuple(options.every)
        self._environment = environment_of(options)
        self._workers: list[Worker] = []
        self._started = 0
        self._next_interruption = 0.0
        self._traces = TraceReader(folder / TRACES)

    def step(self) -> None:
        """Keep the fleet complete, continue paused workers, and interrupt one when it is time."""
        now = time.monotonic()
        self._remove_ended()
        while len(self._workers) < self._size:
            self._started += 1
            self._workers.append(
                Worker(self._folder, self._started, self._environment, self._store)
            )
        for worker in self._workers:
            if worker.wakes_at is not None and worker.wakes_at <= now:
                worker.wake()
        enough = self._strikes is not None and self.kills + self.pauses >= self._strikes
        if not enough and now >= self._next_interruption and self._interrupt():
            self._next_interruption = now + self._chance.uniform(*self._every)

    @property
    def is_at_work(self) -> bool:
        """Whether anybody has executed anything yet."""
        return bool(self._traces.pids())

    def _remove_ended(self) -> None:
        for worker in [worker for worker in self._workers if worker.process.poll() is not None]:
            if worker.found_no_server:
                self.ended_without_server += 1
            else:
                self.problems.append(
                    f"worker {worker.pid} ended by itself with code {worker.process.returncode}"
                )
            self._workers.remove(worker)

    def _interrupt(self) -> bool:
        """Kill or pause a worker that is executing: killing processes that only start proves
        little. False if there is none."""
        busy = self._traces.pids()
        early = self._chance.random() < EARLY_SHARE
        awake = [worker for worker in self._workers if worker.wakes_at is None]
        candidates = [worker for worker in awake if early or worker.pid in busy]
        if not candidates:
            return False
        target = self._chance.choice(candidates)
        if (self.kills + self.pauses) % PAUSE_EVERY == PAUSE_EVERY // 2:
            self.pauses += 1
            target.pause(self._chance.uniform(*PAUSE))
        else:
            self.kills += 1
            self._workers.remove(target)
            target.kill()
        return True

    def drain(self) -> None:
        """Stop all workers; each must end with code 0."""
        for worker in self._workers:
            was_up = worker.is_up
            if (code := worker.stop()) != 0 and was_up:
                self.problems.append(
                    f"L4: worker {worker.pid} was told to stop and ended with code {code}"
                )
        self._workers.clear()

    def leases_given_up(self) -> int:
        """How often a worker noticed that its lease was gone, and wrote nothing."""
        return sum(
            log.read_text().count(": lease lost") for log in self._folder.glob("worker-*.log")
        )

    def kill_all(self) -> None:
        for worker in self._workers:
            worker.kill()


class TraceReader:
    """The processes that have executed something. Reads on from where it stopped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._pids: set[int] = set()

    def pids(self) -> set[int]:
        if self._path.exists():
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                lines = file.read().splitlines(keepends=True)
            for line in lines:
                if line.endswith(b"\n"):
                    self._offset += len(line)
                    self._pids.add(int(line.split()[2]))
        return self._pids


def environment_of(options: argparse.Namespace) -> dict[str, str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")
    }
    environment |= {f"HOLDFAST_LEASE_{name}": value for name, value in LEASE.items()}
    return environment | {
        "HOLDFAST_CONCURRENCY": str(options.concurrency),
        "SOAK_STEPS": str(options.steps),
        "SOAK_STEP_SECONDS": str(options.step_seconds),
    }
