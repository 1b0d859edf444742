"""Events posted to real endpoints: signed, once each in effect, whatever the endpoint does."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, Permanent, Pipeline
from holdfast.adapters.records import StoreRecords
from holdfast.bootstrap import Options
from holdfast.engine import webhooks
from holdfast.engine.cursors import registered
from holdfast.model.webhook import signature
from holdfast.services.audit import entries
from holdfast.services.webhooks import WebhookService
from holdfast.settings.values import Webhooks

KEY = "a key that is long enough for a test"
ALLOW = ("127.0.0.1",)


class Receiver:
    """An endpoint that answers as it is told, and keeps what it gets."""

    def __init__(self) -> None:
        self.received: list[tuple[dict[str, str], dict[str, Any], bytes]] = []
        self.answers: list[int] = []
        self.url = ""

    def answer(self, headers: dict[str, str], body: bytes) -> int:
        status = self.answers.pop(0) if self.answers else 204
        self.received.append((headers, json.loads(body), body))
        return status

    @property
    def types(self) -> list[str]:
        return [event["type"] for _, event, _ in self.received]


@contextmanager
def a_receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(receiver.answer(headers, body))
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_port}/hooks"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "POLL_INTERVAL", 0.05)


def echo() -> Pipeline[Any]:
    pipeline: Pipeline[Any] = Pipeline("echo", input=str)

    @pipeline.step
    async def say(input: str) -> str:
        if input == "no":
            raise Permanent("it said no")
        return input

    return pipeline


def an_app(folder: Path) -> Holdfast:
    options = Options(f"sqlite:///{folder / 'h.db'}", webhooks=Webhooks(KEY, ALLOW))
    return Holdfast.from_options(options, [echo()])


def a_service(app: Holdfast, tenant: str | None = None) -> WebhookService:
    return WebhookService(app.store, StoreRecords(app.store), KEY, ALLOW, tenant)


async def until(condition: Callable[[], bool | Awaitable[bool]], description: str) -> None:
    """Poll, with a deadline."""
    for _ in range(1500):
        reply = condition()
        if await reply if isinstance(reply, Awaitable) else reply:
            return
        await asyncio.sleep(0.02)
    pytest.fail(f"not within 30 s: {description}")


async def following(app: Holdfast, id: str) -> None:
    """Until the endpoint has a cursor: from then on it is told everything."""

    async def has_cursor() -> bool:
        cursors = await registered(StoreRecords(app.store))
        return any(cursor.name == f"webhook.{id}" for cursor in cursors)

    await until(has_cursor, "it is followed")


def test_events_arrive_signed_and_in_order(tmp_path: Path) -> None:
    async def story() -> None:
        with a_receiver() as receiver:
            async with an_app(tmp_path) as app:
                service = a_service(app)
                hook = await service.add(receiver.url, tenant=None, actor="ada")
                await following(app, hook.id)
                run = await app.submit("echo", "hello")
                await run.result(30)
                await until(lambda: "dev.holdfast.run.completed.v1" in receiver.types, "arrived")
                assert receiver.types[:2] == [
                    "dev.holdfast.run.queued.v1",
                    "dev.holdfast.run.started.v1",
                ]
                for headers, event, body in receiver.received:
                    assert headers["webhook-id"] == event["id"]
                    at = int(headers["webhook-timestamp"])
                    expected = signature([hook.secret or ""], event["id"], at, body)
                    assert headers["webhook-signature"] == expected
                log = await service.deliveries(hook.id)
                assert {delivery.state for delivery in log} == {"delivered"}
                audit = await entries(app.store)
                assert [(e.actor, e.action) for e in audit] == [("ada", "webhook.add")]

    asyncio.run(story())


def test_an_event_that_fails_is_tried_again_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "retry_delay", lambda tries, *_: 0.1 if tries < 5 else None)

    async def story() -> None:
        with a_receiver() as receiver, a_receiver() as dead:
            dead.answers = [500] * 100
            receiver.answers = [500, 302]
            async with an_app(tmp_path) as app:
                service = a_service(app)
                hooks = [
                    await service.add(
                        endpoint.url, events=["run.completed"], tenant=None, actor="ada"
                    )
                    for endpoint in (receiver, dead)
                ]
                for hook in hooks:
                    await following(app, hook.id)
                runs = [await app.submit("echo", text) for text in ("a", "b")]
                for run in runs:
                    await run.result(30)

                async def all_arrived() -> bool:
                    log = await service.deliveries(hooks[0].id, state="delivered")
                    return len(log) == 2

                async def given_up() -> bool:
                    return len(await service.deliveries(hooks[1].id, state="failed")) == 2

                await until(all_arrived, "the living endpoint has both")
                await until(given_up, "the dead one was given up")
                ids = [event["id"] for _, event, _ in receiver.received]
                assert len(ids) == 4
                assert len(set(ids)) == 2
                bodies = {(event["id"], body) for _, event, body in receiver.received}
                assert len(bodies) == 2  # the same bytes in every copy
                [failed, _] = await service.deliveries(hooks[1].id)
                assert [attempt.status for attempt in failed.attempts] == [500] * 5
                dead.answers = []
                await service.replay(hooks[1].id, failed.event, actor="ada")

                async def replayed() -> bool:
                    return len(await service.deliveries(hooks[1].id, state="delivered")) == 1

                await until(replayed, "the replay arrived")

    asyncio.run(story())


def test_an_endpoint_that_is_gone_is_disabled_and_holds_nothing_back(tmp_path: Path) -> None:
    async def story() -> None:
        with a_receiver() as receiver:
            receiver.answers = [410]
            async with an_app(tmp_path) as app:
                service = a_service(app)
                hook = await service.add(receiver.url, tenant=None, actor="ada")
                await following(app, hook.id)
                await (await app.submit("echo", "x")).result(30)

                async def is_disabled() -> bool:
                    [view] = await service.list()
                    cursors = await registered(StoreRecords(app.store))
                    return bool(view.disabled) and not cursors

                await until(is_disabled, "it is disabled and retention waits for nobody")
                await service.enable(hook.id, actor="ada")
                await following(app, hook.id)
                await service.remove(hook.id, actor="ada")
                assert await service.list() == []

    asyncio.run(story())


def test_a_tenant_hears_of_its_own_runs_and_sees_its_own_endpoints(tmp_path: Path) -> None:
    async def story() -> None:
        with a_receiver() as receiver:
            async with an_app(tmp_path) as app:
                acme, bolt = a_service(app, "acme"), a_service(app, "bolt")
                hook = await acme.add(receiver.url, tenant="acme", actor="ada")
                assert await bolt.list() == []
                await following(app, hook.id)
                await (await app.submit("echo", "theirs", tenant="bolt")).result(30)
                await (await app.submit("echo", "ours", tenant="acme")).result(30)
                await until(lambda: "dev.holdfast.run.completed.v1" in receiver.types, "arrived")
                assert {event["tenantid"] for _, event, _ in receiver.received} == {"acme"}

    asyncio.run(story())


def whole(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def test_no_store_holds_a_secret(tmp_path: Path) -> None:
    async def story() -> None:
        with a_receiver() as receiver:
            async with an_app(tmp_path) as app:
                service = a_service(app)
                hook = await service.add(receiver.url, tenant=None, actor="ada")
                rotated = await service.rotate(hook.id, actor="ada")
                content = await asyncio.to_thread(whole, tmp_path)
                assert re.search(rb"wh-[0-9a-z]{12}", content)
                for secret in (hook.secret, rotated.secret, KEY):
                    assert secret is not None
                    assert secret.removeprefix("whsec_").encode() not in content

    asyncio.run(story())
