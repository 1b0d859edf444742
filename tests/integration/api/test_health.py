"""Probes tell the truth: about the process, the store and the leases."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.integration.api.live import LiveApi
from tests.postgres_server import PostgresServer
from tests.redis_server import RedisServer

Server = Any
"""A server that can be killed and started again."""


def test_health_has_the_fields_that_load_balancers_know(memory_api: LiveApi) -> None:
    for path in ("/health", "/", "/healthz", "/health/live", "/livez", "/health/startup"):
        answer = memory_api.get(path)
        assert answer.status_code == 200
        assert answer.json()["status"] == "ok"
        assert answer.json()["active_messages"] == 0
        assert answer.json()["uptime_seconds"] >= 0


def test_it_is_ready_while_the_store_answers(api: LiveApi) -> None:
    assert api.get("/health/ready").json() == {"ready": True, "reasons": []}


def test_a_draining_process_is_alive_and_not_ready() -> None:
    with LiveApi() as api:
        api.app.state.health.drain()
        assert api.get("/health").json()["status"] == "draining"
        assert api.get("/health/live").status_code == 200
        answer = api.get("/readyz")
        assert (answer.status_code, answer.json()["reasons"]) == (503, ["the process is draining"])


def test_renewals_that_are_late_make_it_unready() -> None:
    with LiveApi() as api:
        api.holdfast.runtime.keeper.renewed_at -= 100
        answer = api.get("/health/ready")
        assert answer.status_code == 503
        assert "renewed" in answer.json()["reasons"][0]


def a_redis() -> tuple[Server, str]:
    server = RedisServer("--appendonly", "yes", "--appendfsync", "always")
    server.start()
    return server, server.url(prefix="away:") + "&timeout=1"


def a_postgres() -> tuple[Server, str]:
    server = PostgresServer("full_page_writes=off", "autovacuum=off").create()
    return server, server.url("away") + "&timeout=1"


@pytest.mark.parametrize("make", [a_redis, a_postgres])
def test_a_store_that_is_away_is_503_and_nothing_is_accepted(make) -> None:
    server, url = make()
    submits = {
        "/v1/pipelines/greet/runs": {"input": {"name": "Bob"}},
        "/v1/pipelines/greet/runs/batch": {"inputs": [{"name": "Bob"}]},
        "/pipelines/run/greet": {"name": "Bob"},
        "/api/v1/enqueue/greet": {"name": "Bob"},
    }
    try:
        with LiveApi(url, worker=False) as api:
            api.submit("Ada")
            server.kill()
            for path, body in submits.items():
                refused = api.post(path, body)
                assert refused.status_code == 503, path
                assert refused.json()["code"] in ("store-unavailable", "lock-unavailable")
                assert int(refused.headers["retry-after"]) >= 1
            assert api.get("/v1/runs").status_code == 503
            assert api.get("/health/ready").status_code == 503
            assert api.get("/health/live").status_code == 200
            server.start()
            deadline = time.monotonic() + 30
            while api.get("/health/ready").status_code != 200:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            [run] = api.get("/v1/runs").json()["items"]  # Ada's, and nobody else's
            assert run["id"] == api.get("/v1/runs?state=queued").json()["items"][0]["id"]
    finally:
        server.end()
