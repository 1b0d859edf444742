"""A fleet on one server, workers and server killed all the time: each run once, none lost, no gap
in any history.

`make soak-servers` is the same with 5,000 runs on four workers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests import postgres_server, redis_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

SOAK = Path(__file__).parents[2] / "examples" / "kill_workers.py"
SMALL = (
    "--runs 100 --workers 3 --concurrency 6 --step-seconds 0.1 --strikes 4 --server-every 0.3 1.5 "
    "--server-strikes 3 "
    "--seconds-limit 100 --seed 3 --json"
)


@pytest.mark.parametrize("server", ["postgres", "redis", "redis --server-setting appendfsync=no"])
def test_runs_survive_workers_and_a_server_that_are_killed(tmp_path: Path, server: str) -> None:
    """With `appendfsync no` a power cut loses something; a server that is killed does not. (With
    `everysec` it may, while the disk is behind: then it answers before it has written.)"""
    postgres_server.executable("postgres") if server == "postgres" else redis_server.executable(
        "redis-server"
    )
    command = [sys.executable, str(SOAK), *SMALL.split(), "--server", *server.split()]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=150)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    figures = json.loads(ended.stdout)
    assert figures["problems"] == []
    assert figures["server killed"] >= 2
    assert figures["workers killed"] >= 2
