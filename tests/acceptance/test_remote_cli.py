"""The same commands on a store and on a service: the same output, the same exit codes."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.acceptance.conftest import Cli, Started


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Service(Cli):
    """A folder whose store is served; `remote` asks the service, `here` opens the store."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.key = ""
        self.url = f"http://127.0.0.1:{free_port()}"
        self.process: Started | None = None

    def serve(self, *words: str) -> None:
        port = self.url.rpartition(":")[2]
        self.process = self.start("serve", "--port", port, "--worker", "4", *words)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                if httpx2.get(f"{self.url}/health/ready").status_code == 200:
                    return
            except httpx2.TransportError:
                time.sleep(0.05)
        raise AssertionError("the service did not start")

    def remote(self, *words: str, code: int | None = 0):
        """From a folder that has neither the store nor the pipelines."""
        folder = self.folder / "elsewhere"
        folder.mkdir(exist_ok=True)
        there = Cli.__new__(Cli)
        there.folder, there.env = folder, self.env
        return there.here(*words, code=code, HOLDFAST_URL=self.url, HOLDFAST_API_KEY=self.key)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("service"))
    service.key = service.here("tenants", "keys", "create", "--first").out.strip()
    service.serve()
    assert service.process is not None
    try:
        yield service
    finally:
        service.process.process.terminate()
        ended = service.process.end()
        assert ended.code == 0, ended


def test_a_run_is_submitted_watched_and_printed(service: Service) -> None:
    result = service.remote("run", "greet", "-i", "name=Ada")
    assert json.loads(result.out) == {"greeting": "Hello Ada!"}
    result = service.remote(
        "run", "greet", "-i", "name=Bob", "-i", "trouble=fail", "--json", code=5
    )
    assert result.json["state"] == "failed"
    assert "resume" in result.err


def test_the_same_is_shown_here_and_there(service: Service) -> None:
    run = service.remote("run", "greet", "-i", "name=Eve", "--idempotency-key", "same", "--json")
    id = run.json["run"]
    for words in (
        ("runs", "show", "same", "--json"),
        ("runs", "list", "--key", "same", "--json"),
        ("runs", "result", id),
        ("runs", "events", id, "--json"),
        ("runs", "logs", id, "--json"),
        ("runs", "watch", id, "--json"),
        ("runs", "show", id, "--format", "state"),
        ("lanes", "list", "--json"),
        ("locks", "list", "--json"),
        ("tenants", "keys", "list", "--json"),
        ("projections", "list", "--json"),
        ("pipelines", "schema", "greet"),
        ("pipelines", "graph", "greet", "--mermaid"),
    ):
        here, there = service.here(*words), service.remote(*words)
        assert _steady(there.out) == _steady(here.out), words


def _steady(text: str) -> str:
    """Without what is different a moment later."""
    moving = ("remaining", "last_used", "silent", "behind", "position", "oldest", "held_for")
    return "\n".join(line for line in text.splitlines() if not any(w in line for w in moving))


def test_changes_and_their_refusals_are_the_same(service: Service) -> None:
    run = service.remote("run", "greet", "-i", "name=Kay", "--delay", "1h", "--no-wait").out.strip()
    assert service.remote("runs", "pause", run, "--json").json == {"run": run, "state": "paused"}
    assert service.remote("runs", "result", run, code=3).err
    assert service.remote("runs", "cancel", run).out == f"{run} cancelled\n"
    for cli in (service.here, service.remote):
        assert cli("runs", "cancel", run, code=6).err == (
            f"holdfast: run {run} is cancelled and can't be cancelled\n"
        )
        assert cli("runs", "show", "nobody", code=7).err.startswith("holdfast: no run 'nobody'")
        assert cli("run", "grete", code=7).err.startswith("holdfast: there is no pipeline 'grete'")
        assert cli("lanes", "step-down", "nothing", "--yes", code=7).err


def test_dead_letters_are_redriven_from_elsewhere(service: Service) -> None:
    fail = ("run", "greet", "-i", "name=Max", "-i", "trouble=fail", "--json")
    run = service.remote(*fail, code=5).json["run"]
    assert run in service.remote("dlq", "list").out
    assert service.remote("dlq", "show", run, "--json").json["dead_letter"]["run"] == run
    dry = service.remote("dlq", "redrive", run, "--dry-run", "--json").json["items"]
    assert [item["run"] for item in dry] == [run]
    items = service.remote("dlq", "discard", run, "--reason", "test", "--json").json["items"]
    assert items[0]["changed"]


def test_tenants_and_their_keys_are_made_from_elsewhere(service: Service) -> None:
    service.remote("tenants", "create", "acme", "--per-minute", "7")
    key = service.remote("tenants", "keys", "create", "acme", "--json").json
    assert service.remote("tenants", "show", "acme", "--json").json["quotas"]["per_minute"] == 7
    admin, service.key = service.key, key["text"]
    try:
        assert service.remote("runs", "list", "--json").json["items"] == []
        assert service.remote("tenants", "list", code=4).err
        assert service.remote("run", "greet", "--tenant", "other", code=4).err
    finally:
        service.key = admin
    service.remote("tenants", "keys", "revoke", key["key"]["id"], "--yes")
    audit = service.remote("audit", "list", "--json").json["items"]
    assert {"tenant.create", "key.create", "key.revoke"} <= {entry["action"] for entry in audit}


def test_what_works_on_the_store_says_so(service: Service) -> None:
    result = service.here("worker", "--once", "--url", service.url, code=2)
    assert "works on the store itself" in result.err
    assert service.here("runs", "list", "--local", "--json", HOLDFAST_URL="http://127.0.0.1:1")
    assert (
        "does not answer" in service.here("runs", "list", "--url", "http://127.0.0.1:1", code=1).err
    )


def test_a_wrong_key_is_refused(service: Service) -> None:
    admin, service.key = service.key, service.key[:-1] + "x"
    try:
        assert "not accepted" in service.remote("runs", "list", code=4).err
    finally:
        service.key = admin
