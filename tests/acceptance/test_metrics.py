"""`/metrics` of real processes: a worker with a port of its own, and the service."""

from __future__ import annotations

import re
import signal
import subprocess
from urllib.request import urlopen

import pytest
from tests.acceptance.conftest import HOLDFAST


def first_match(process: subprocess.Popen[str], pattern: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if match := re.search(pattern, line):
            return match[1]
    raise AssertionError(f"the process ended with {process.wait()}")


@pytest.mark.parametrize(
    ("words", "pattern", "has_cluster"),
    [
        (["worker", "--metrics-port", "0"], r"answers (http://[^/]+)/metrics", False),
        (["serve", "--port", "0"], r"serves (http://\S+) from", True),
    ],
    ids=["worker", "serve"],
)
def test_prometheus_can_read(cli, words, pattern, has_cluster):
    process = subprocess.Popen(
        [*HOLDFAST, *words], cwd=cli.folder, env=cli.env, stderr=subprocess.PIPE, text=True
    )
    try:
        address = first_match(process, pattern)
        with urlopen(f"{address}/metrics", timeout=10) as answer:
            text = answer.read().decode()
            assert answer.headers["content-type"].startswith("text/plain; version=")
        assert "holdfast_build_info{" in text
        assert ("pipeline_dlq_messages 0.0" in text) == has_cluster
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 0
