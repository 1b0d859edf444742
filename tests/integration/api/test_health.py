"""Probes tell the truth: about the process, the store and the leases."""

from __future__ import annotations

from tests.integration.api.live import LiveApi
from tests.redis_server import RedisServer


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


def test_a_store_that_is_away_is_503_and_nothing_is_accepted() -> None:
    server = RedisServer("--appendonly", "no")
    server.start()
    try:
        with LiveApi(server.url(prefix="away:") + "&timeout=1", worker=False) as api:
            api.submit("Ada")
            server.kill()
            refused = api.post("/v1/pipelines/greet/runs", {"input": {"name": "Bob"}})
            assert (refused.status_code, refused.json()["code"]) == (503, "store-unavailable")
            assert int(refused.headers["retry-after"]) >= 1
            assert api.get("/v1/runs").status_code == 503
            assert api.get("/health/ready").status_code == 503
            assert api.get("/health/live").status_code == 200
    finally:
        server.end()
