"""Webhooks over HTTP: a tenant manages its own, and nobody sees a secret twice."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.integration.api.live import LiveApi

from holdfast import Client, Holdfast
from holdfast.api import create_app
from holdfast.errors import ConfigurationError, NotFound


def until(condition: Callable[[], object]) -> None:
    """Ask until it is so: what another process sends can't be waited for otherwise."""
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[dict]]]:
    """The address of an endpoint, and what it has received."""
    received: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hooks", received
    finally:
        server.shutdown()
        server.server_close()


def test_an_endpoint_is_added_tested_told_replayed_and_forgotten(
    receiver: tuple[str, list[dict]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.webhooks.POLL_INTERVAL", 0.05)
    url, received = receiver
    with LiveApi() as api, Client(api.url) as client:
        hook = client.webhooks.add(url, events=["run.completed"])
        assert hook.secret is not None
        assert hook.secret.startswith("whsec_")
        [listed] = client.webhooks.list()
        assert (listed.id, listed.tenant, listed.secret) == (hook.id, "default", None)
        assert client.webhooks.rotate(hook.id).secret not in (None, hook.secret)

        tested = client.webhooks.test(hook.id)
        assert (tested.state, tested.attempts[0].status) == ("delivered", 204)
        assert received.pop()["type"] == "dev.holdfast.webhook.test.v1"

        run = api.submit("Ada")
        until(lambda: received)
        completed = received[0]
        assert completed["subject"] == run
        event = completed["id"]
        delivered = partial(client.webhooks.deliveries, hook.id, state="delivered")
        until(lambda: event in {delivery.event for delivery in delivered()})
        assert client.webhooks.replay(hook.id, event).state == "waiting"
        until(lambda: received.count(completed) == 2)

        client.webhooks.remove(hook.id)
        assert client.webhooks.list() == []
        with pytest.raises(NotFound, match="no webhook"):
            client.webhooks.deliveries(hook.id)


def test_what_happens_right_after_it_was_added_is_told(receiver: tuple[str, list[dict]]) -> None:
    """Before a worker has looked for endpoints again."""
    url, received = receiver
    with LiveApi() as api, Client(api.url) as client:
        api.ended(api.submit("before"))
        client.webhooks.add(url, events=["run.completed"])
        run = api.submit("after")
        api.ended(run)
        until(lambda: received)
        assert [event["subject"] for event in received] == [run]


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1/", "https://169.254.169.254/latest", "file:///etc/passwd", ""]
)
def test_an_address_inside_is_refused(memory_api: LiveApi, url: str) -> None:
    answer = memory_api.post("/v1/webhooks", {"url": url})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-input")


def test_without_a_key_for_secrets_the_remedy_is_said() -> None:
    def make(_: Holdfast):
        return create_app(Holdfast("memory:"))

    with LiveApi(make=make) as api, Client(api.url) as client:
        with pytest.raises(ConfigurationError, match="HOLDFAST_WEBHOOKS_KEY"):
            client.webhooks.add("https://example.org/hooks")
        answer = api.post("/v1/webhooks", {"url": "https://example.org/hooks"})
        assert (answer.status_code, answer.json()["code"]) == (409, "not-configured")


def test_a_tenant_has_only_so_many(memory_api: LiveApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.services.webhooks.MOST_ENDPOINTS", 1)
    body = {"url": "https://example.org/hooks"}
    assert memory_api.post("/v1/webhooks", body).status_code == 201
    refused = memory_api.post("/v1/webhooks", body)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
