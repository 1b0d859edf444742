"""Runs go on while workers and the server are killed: each once, none lost, no gap in any history."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.integration.redis.scene import a_server
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

SOAK = Path(__file__).parents[3] / "examples" / "kill_workers.py"
RUNS = int(os.environ.get("HOLDFAST_TEST_CHAOS_RUNS", "150"))
KILLS = int(os.environ.get("HOLDFAST_TEST_CHAOS_KILLS", "4"))


def soak(redis: RedisServer, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(SOAK), "--store", redis.url(timeout="1"), "--json", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def figures_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = process.communicate(timeout=150)
    assert process.returncode == 0, out + errors
    return json.loads(out)


def kill_and_start(redis: RedisServer, process: subprocess.Popen[str], chance: Random) -> int:
    """Strike as often as planned, and only while runs are under way. How often that was."""
    kills = 0
    while kills < KILLS and process.poll() is None:
        time.sleep(chance.uniform(0.3, 1.5))
        if redis.call("SCARD", "holdfast:leases:default") != "0":
            redis.kill()
            time.sleep(chance.uniform(0.0, 0.5))
            redis.start()
            kills += 1
    return kills


@pytest.mark.parametrize("fsync", ["always", "everysec"])
def test_runs_survive_a_server_that_is_killed_and_started_again(tmp_path: Path, fsync: str) -> None:
    arguments = f"--runs {RUNS} --strikes 4 --concurrency 8 --step-seconds 0.15 --seconds-limit 120 --seed 3"
    with a_server("--appendonly", "yes", "--appendfsync", fsync) as redis:
        process = soak(redis, tmp_path, *arguments.split())
        try:
            kills = kill_and_start(redis, process, Random(3))
            figures = figures_of(process)
        finally:
            process.kill()
    assert figures["problems"] == []
    assert kills >= 2
