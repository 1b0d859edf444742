"""`holdfast serve` and `holdfast worker --port` as real processes: probes, signals, refusals."""

from __future__ import annotations

import re
import signal
import time
from typing import Any

import httpx2
from tests.acceptance.conftest import Cli, Started


def address(started: Started, words: str) -> str:
    """Where it says that it listens."""
    started.until(words)
    match = re.search(r"http://[\d.:]+", started.output[-1])
    assert match is not None
    return match[0]


def stopped(started: Started, within: float) -> Any:
    begun = time.monotonic()
    started.tell(signal.SIGTERM)
    ended = started.end()
    assert ended.code == 0, ended
    assert time.monotonic() - begun < within
    return ended


def test_a_run_by_http_and_a_clean_end(cli: Cli) -> None:
    served = cli.start("serve", "--port", "0", "--worker", "2")
    url = address(served, "serves http")
    answer = httpx2.post(
        f"{url}/v1/pipelines/greet/runs",
        json={"input": {"name": "Ada"}},
        headers={"Prefer": "wait=20"},
        timeout=30,
    )
    assert answer.json()["result"] == {"greeting": "Hello Ada!"}
    stopped(served, within=8)
    assert cli.state(answer.json()["run"]["id"]) == "succeeded"


def test_the_demo_makes_a_report_and_says_where_it_is(cli: Cli) -> None:
    served = cli.start("serve", "--demo", "--port", "0")
    served.until("a report of sample comments")
    report = served.output[-1].split()[-1]
    deadline = time.monotonic() + 60
    while (state := httpx2.get(report).json())["status"] != "finished":
        assert time.monotonic() < deadline, state
        time.sleep(0.1)
    page = httpx2.get(report, headers={"Accept": "text/html"})
    assert "What Riverside wants" in page.text
    assert (cli.folder / "holdfast-demo" / "comments.csv").stat().st_size > 10_000
    assert not (cli.folder / "runs.db").exists()
    stopped(served, within=8)


def test_open_streams_and_unfinished_runs_do_not_keep_it(cli: Cli) -> None:
    """A stream is open and a run waits for an hour: gone within 8 s, and the stream has ended."""
    served = cli.start("serve", "--port", "0", "--worker", "2")
    url = address(served, "serves http")
    body = {"input": {"name": "Ada"}, "delay": 3600}
    run = httpx2.post(f"{url}/v1/pipelines/greet/runs", json=body).json()["run"]["id"]
    headers = {"Accept": "text/event-stream"}
    with httpx2.stream("GET", f"{url}/v1/runs/{run}/events", headers=headers, timeout=30) as events:
        lines = events.iter_lines()
        assert next(lines).startswith("retry")
        stopped(served, within=8)
        assert list(lines)[-1] == ""
    assert cli.state(run) == "queued"


def test_beyond_this_machine_it_wants_keys(cli: Cli) -> None:
    refused = cli("serve", "--host", "0.0.0.0", "--port", "0", code=2)
    assert "holdfast tenants keys create --first" in refused.err
    key = cli.here("tenants", "keys", "create", "--first").out.strip()
    served = cli.start("serve", "--host", "0.0.0.0", "--port", "0")
    url = address(served, "serves http").replace("0.0.0.0", "127.0.0.1")
    assert httpx2.get(f"{url}/v1/runs").status_code == 401
    assert httpx2.get(f"{url}/v1/runs", headers={"X-Api-Key": key}).json()["items"] == []
    stopped(served, within=8)


def test_a_port_that_is_taken_is_said(cli: Cli) -> None:
    served = cli.start("serve", "--port", "0")
    port = address(served, "serves http").rpartition(":")[2]
    assert "--port" in cli("serve", "--port", port, code=2).err
    assert "--port" in cli("worker", "--port", port, code=2).err
    stopped(served, within=8)


def test_a_worker_answers_probes_on_the_port_of_the_environment(cli: Cli) -> None:
    worker = cli.start("worker", PORT="0")
    worker.until("answers /health on port")
    url = f"http://127.0.0.1:{worker.output[-1].split()[-1]}"
    worker.until("Ctrl-C drains")
    assert httpx2.get(f"{url}/health/ready").json() == {"ready": True, "reasons": []}
    stopped(worker, within=8)
