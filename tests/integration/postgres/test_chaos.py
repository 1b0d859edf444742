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
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

SOAK = Path(__file__).parents[3] / "examples" / "kill_workers.py"
RUNS = int(os.environ.get("HOLDFAST_TEST_CHAOS_RUNS", "150"))
KILLS = int(os.environ.get("HOLDFAST_TEST_CHAOS_KILLS", "4"))
WORKERS = os.environ.get("HOLDFAST_TEST_CHAOS_WORKERS", "2")


def soak(server: PostgresServer, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(SOAK), "--store", server.url(timeout="2s"), "--json", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def figures_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = process.communicate(timeout=150)
    assert process.returncode == 0, out + errors
    return json.loads(out)


def is_busy(server: PostgresServer) -> bool:
    try:
        return server.execute("SELECT count(*) FROM open_runs WHERE state = 'running'", "holdfast") != "0"
    except RuntimeError:  # the schema is not there yet
        return False


def kill_and_start(server: PostgresServer, process: subprocess.Popen[str], chance: Random) -> int:
    """Strike as often as planned while the runs are under way. How often that was."""
    while not is_busy(server) and process.poll() is None:
        time.sleep(0.05)
    kills = 0
    while kills < KILLS and process.poll() is None:
        time.sleep(chance.uniform(0.3, 1.5))
        server.kill()
        time.sleep(chance.uniform(0.0, 0.5))
        server.start()
        kills += 1
    return kills


def test_runs_survive_a_server_that_is_killed_and_started_again(tmp_path: Path) -> None:
    """With fsync on: what was answered is there after the crash."""
    arguments = f"--runs {RUNS} --strikes 4 --concurrency 8 --step-seconds 0.15 --seconds-limit 120 --seed 3"
    server = PostgresServer().create()
    try:
        process = soak(server, tmp_path, *arguments.split(), "--workers", WORKERS)
        try:
            kills = kill_and_start(server, process, Random(3))
            figures = figures_of(process)
        finally:
            process.kill()
    finally:
        server.end()
    assert figures["problems"] == []
    assert kills >= 2
