"""Real processes, real signals: what is promised about killed, paused and stopped workers."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.harness import SHORT_LEASE, Harness, notes

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_example(
    name: str, *arguments: str, cwd: Path, timeout: float
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False
    )


# --- killed ---------------------------------------------------------------------------------------


def test_runs_survive_workers_that_are_killed_at_random(tmp_path: Path) -> None:
    arguments = (
        "--runs 150 --strikes 12 --concurrency 4 --step-seconds 0.08 --seconds-limit 60 "
        "--seed 2 --json"
    )
    ended = run_example("kill_workers.py", *arguments.split(), cwd=tmp_path, timeout=110)
    figures: dict[str, Any] = json.loads(ended.stdout)
    assert figures["problems"] == [], ended.stderr
    assert ended.returncode == 0
    assert figures["workers killed"] >= 5
    assert figures["runs taken over"] > 0


def test_the_crash_example_keeps_its_promises(tmp_path: Path) -> None:
    ended = run_example("crash.py", cwd=tmp_path, timeout=60)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "none of them ran again" in ended.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["holdfast-crash"]


# --- paused ---------------------------------------------------------------------------------------


def test_a_worker_that_sleeps_through_its_lease_wakes_up_and_writes_nothing(tmp_path: Path) -> None:
    asyncio.run(pause_past_the_lease(tmp_path))


async def pause_past_the_lease(folder: Path) -> None:
    async with Harness(folder) as harness:
        sleeper = harness.start_worker(lease=SHORT_LEASE)
        run = await harness.run_in_slow_step(sleeper, "blocking")
        sleeper.send(signal.SIGSTOP)

        successor = harness.start_worker(lease=SHORT_LEASE)
        successor.open_gate()
        await harness.until(lambda: harness.is_over(run), "the successor finishes the run")
        finished = await harness.everything_about(run)

        sleeper.open_gate()
        sleeper.send(signal.SIGCONT)
        await harness.until(
            lambda: sleeper.noted("returns slow"), "the sleeper returns its result all the same"
        )
        sleeper.send(signal.SIGTERM)
        assert await harness.exit_code(sleeper) == 0

        assert await harness.everything_about(run) == finished
        by = successor.pid
        assert await run.result() == f"before by {sleeper.pid}, slow by {by}, after by {by}"
        assert await harness.story_of(run) == [
            "run.queued",
            "run.started",
            "step.completed",
            "run.worker_lost",
            "run.started",
            "step.completed",
            "step.completed",
            "run.completed",
        ]
        assert not sleeper.noted("begins after")
        assert "lease lost" in sleeper.log


# --- told to stop ---------------------------------------------------------------------------------

HANDED_OVER_IN_SLOW = [
    "run.queued",
    "run.started",
    "step.completed",
    "run.handed_over",
    "run.started",
    "step.completed",
    "step.completed",
    "run.completed",
]
HANDED_OVER_AFTER_SLOW = [
    "run.queued",
    "run.started",
    "step.completed",
    "step.completed",
    "run.handed_over",
    "run.started",
    "step.completed",
    "run.completed",
]


def test_a_worker_told_to_stop_hands_its_run_over_at_once(tmp_path: Path) -> None:
    """The lease would last 30 s; nobody waits for it, and the attempt does not count."""
    asyncio.run(hand_over(tmp_path))


async def hand_over(folder: Path) -> None:
    async with Harness(folder) as harness:
        leaving = harness.start_worker(grace="100ms")
        run = await harness.run_in_slow_step(leaving, "patient")
        staying = harness.start_worker()
        staying.open_gate()
        await harness.until(lambda: staying.is_up, "the other worker is up")

        leaving.send(signal.SIGTERM)
        assert await harness.exit_code(leaving) == 0
        await harness.until(lambda: harness.is_over(run), "the other worker finishes the run")

        assert await harness.story_of(run) == HANDED_OVER_IN_SLOW
        info = await run.info()
        assert (info.attempts, info.epoch) == (1, 2)
        assert notes(folder).count(f"{staying.pid} begins before") == 0


def test_steps_under_way_may_end_before_the_run_is_handed_over(tmp_path: Path) -> None:
    asyncio.run(hand_over_after_the_step(tmp_path))


async def hand_over_after_the_step(folder: Path) -> None:
    async with Harness(folder) as harness:
        leaving = harness.start_worker(grace="25s")
        run = await harness.run_in_slow_step(leaving, "patient")
        staying = harness.start_worker()
        await harness.until(lambda: staying.is_up, "the other worker is up")

        leaving.send(signal.SIGTERM)
        await harness.until(lambda: "draining 1 run" in leaving.log, "it drains")
        leaving.open_gate()
        assert await harness.exit_code(leaving) == 0
        await harness.until(lambda: harness.is_over(run), "the other worker finishes the run")

        assert await harness.story_of(run) == HANDED_OVER_AFTER_SLOW
        first, second = leaving.pid, staying.pid
        assert await run.result() == f"before by {first}, slow by {first}, after by {second}"
        assert not staying.noted("begins slow")
