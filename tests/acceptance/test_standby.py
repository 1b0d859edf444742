"""Workers that stand by on Redis are killed while runs are given to them one by one: each is done,
none is lost."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.acceptance import lone_pipeline
from tests.redis_server import RedisServer

from holdfast import Holdfast
from holdfast.ports.store import RunFilter
from holdfast.testing.invariants import check_store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

LEASE = {"TTL": "2s", "RENEW": "500ms", "MARGIN": "500ms", "SWEEP": "300ms"}
WORKERS, RUNS, STRIKE_EVERY = 3, 300, 40
GIVEN_OUT = 1_000_000
"""Epochs of runs that were given out are above it."""


def a_worker(folder: Path, store: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "holdfast",
        "--store",
        store,
        "--app",
        lone_pipeline.__file__,
        "worker",
    ]
    times = {f"HOLDFAST_LEASE_{name}": value for name, value in LEASE.items()}
    return subprocess.Popen(
        command, cwd=folder, env={**os.environ, **times}, stderr=subprocess.DEVNULL
    )


def test_runs_that_are_given_to_workers_which_are_killed_are_done_once(tmp_path: Path) -> None:
    chance, done = random.Random(4), tmp_path / lone_pipeline.TRACES
    done.touch()

    async def play(url: str, workers: list[subprocess.Popen[bytes]]) -> None:
        async with Holdfast(url, [lone_pipeline.lone], worker=False) as app:
            handles = [await app.submit(lone_pipeline.lone, 0)]
            await handles[0].result(60)
            for number in range(1, RUNS):
                handles.append(await app.submit(lone_pipeline.lone, number))
                if number % STRIKE_EVERY == 0:
                    unlucky = workers.pop(0)
                    unlucky.kill()
                    unlucky.wait()
                    workers.append(a_worker(tmp_path, url))
                elif chance.random() < 0.9:  # most come when nobody has anything to do
                    await handles[-1].wait(60)
            assert [await handle.result(60) for handle in handles] == list(range(RUNS))
            runs = await app.store.runs(RunFilter(), limit=RUNS + 1)
            assert len(runs) == RUNS
            assert sum(run.epoch > GIVEN_OUT for run in runs) > RUNS / 10
            assert await check_store(app.store) == []
            executed = Counter(done.read_text().split())
            repeated = {run: count for run, count in executed.items() if count > 1}
            assert repeated.keys() <= {run.id for run in runs if run.attempts > 1}

    server = RedisServer("--appendonly", "yes", "--appendfsync", "always").start()
    workers = [a_worker(tmp_path, server.url()) for _ in range(WORKERS)]
    try:
        asyncio.run(play(server.url(), workers))
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
        server.end()
