"""What the bus on Pub/Sub promises on top of the contract."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from contextlib import asynccontextmanager

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.api_core import exceptions as google_errors
from tests.emulators import PubSubEmulator, fresh_project, shared_pubsub
from tests.integration.pubsub.google import Google

from holdfast.adapters.google_credentials import ENCODED
from holdfast.adapters.pubsub.address import parse
from holdfast.adapters.pubsub.attempts import MOST, Attempts
from holdfast.adapters.pubsub.bus import PubSubBus
from holdfast.adapters.pubsub.client import explain
from holdfast.adapters.pubsub.messages import MAX_BODY
from holdfast.errors import ConfigurationError, NotFound, Permanent, Transient
from holdfast.model.filters import Filter
from holdfast.ports.bus import Message
from holdfast.testing.contracts.bus import a_message, arrival, received


@asynccontextmanager
async def opened(project: str | None = None, emulator: PubSubEmulator | None = None):
    host = (emulator or shared_pubsub()).host
    bus = PubSubBus(f"pubsub://{project or fresh_project()}?emulator={host}&ack_deadline=10s")
    await bus.open()
    try:
        yield bus
    finally:
        await bus.close()


async def begun(bus, topic="orders", group="workers", **options):
    deliveries = bus.subscribe(topic, group, **options)
    await deliveries.begun()
    return deliveries


# --- deliveries -----------------------------------------------------------------------------------


def test_no_more_is_held_than_was_asked_for():
    async def story():
        async with opened() as bus:
            deliveries = await begun(bus, most=2)
            for number in range(5):
                await bus.publish("orders", a_message(f"m{number}"))
            first, second = await arrival(deliveries), await arrival(deliveries)
            waiting = asyncio.ensure_future(anext(deliveries))
            other = await begun(bus, most=10)
            assert sorted(await received(other, 3)) == ["m2", "m3", "m4"]
            assert not waiting.done()
            await bus.publish("orders", a_message("m5"))
            assert await received(other, 1) == ["m5"]
            await other.aclose()
            await bus.publish("orders", a_message("m6"))
            await first.ack()
            await second.ack()
            assert (await asyncio.wait_for(waiting, 5)).message.id == "m6"

    asyncio.run(story())


def test_what_is_held_past_the_ack_deadline_comes_again_and_can_still_be_acknowledged():
    async def story():
        async with opened() as bus:
            deliveries = await begun(bus, most=1)
            await bus.publish("orders", a_message("m1"))
            late = await arrival(deliveries)
            again = await asyncio.wait_for(anext(deliveries), 20)
            assert (again.message.id, again.attempt) == ("m1", 2)
            await late.ack()
            await again.ack()

    asyncio.run(story())


def test_pubsub_counts_deliveries_where_there_is_a_dead_letter_topic():
    project = fresh_project()
    google = Google(shared_pubsub(), project)
    google.create("dlq", "dlq-sub")
    policy = {"dead_letter_topic": google.topic("dlq"), "max_delivery_attempts": 5}
    google.create("orders", "workers", dead_letter_policy=policy, ack_deadline_seconds=10)

    async def story():
        async with opened(project) as bus, opened(project) as other:
            members = [await begun(bus), await begun(other)]
            await bus.publish("orders", a_message("m1", b'{"poison": true}'))
            for attempt in range(1, 6):
                waiting = [asyncio.ensure_future(anext(member)) for member in members]
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in waiting:
                    task.cancel()
                [delivery] = [task.result() for task in done]
                assert delivery.attempt == attempt
                await delivery.nack()

    asyncio.run(story())
    assert google.bodies("dlq-sub", 1) == [{"poison": True}]


def test_messages_of_one_ordering_key_come_in_order():
    async def story():
        async with opened() as bus:
            deliveries = await begun(bus, most=1)
            for number in range(10):
                await bus.publish("orders", Message(f"m{number}", b"{}", {}, ordering_key="job-1"))
            assert await received(deliveries, 10) == [f"m{number}" for number in range(10)]

    asyncio.run(story())


def test_attempts_are_remembered_for_a_bounded_number_of_messages():
    attempts = Attempts()
    for number in range(MOST + 1):
        attempts.count(f"m{number}", 0)
    assert attempts.count("m0", 0) == 1  # forgotten
    assert attempts.count(f"m{MOST}", 0) == 2
    assert attempts.count("m5", 4) == 4


# --- one bad message ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        (Message("m", b"x" * (MAX_BODY + 1)), "9,000,000"),
        (Message("m", b"", {f"a{n}": "" for n in range(100)}), "101 attributes"),
        (Message("m", b"", {"kind": "ü" * 513}), "1,026 bytes in attribute 'kind'"),
        (Message("m", b"", {"n" * 257: "x"}), "1 to 256 bytes"),
        (Message("m", b"", {"": "x"}), "1 to 256 bytes"),
        (Message("m", b"", {"goog-x": "x"}), "not begin with goog"),
        (Message("m" * 1025, b""), "attribute 'holdfast-id'"),
        (Message("m", b"", {}, "k" * 1025), "ordering key"),
    ],
)
def test_what_pubsub_would_refuse_is_refused_at_once_and_the_next_one_leaves(message, limit):
    async def story():
        async with opened() as bus:
            deliveries = await begun(bus)
            with pytest.raises(Permanent, match=limit):
                await bus.publish("orders", message)
            await bus.publish("orders", a_message("good"))
            assert await received(deliveries, 1) == ["good"]

    asyncio.run(story())


def test_the_largest_message_arrives():
    async def story():
        async with opened() as bus:
            deliveries = await begun(bus)
            attributes = {f"a{n}": "x" * 1024 for n in range(99)}
            await bus.publish("orders", Message("m", b"x" * MAX_BODY, attributes))
            delivery = await arrival(deliveries)
            assert (len(delivery.message.body), delivery.message.attributes) == (
                MAX_BODY,
                attributes,
            )
            await delivery.ack()

    asyncio.run(story())


# --- other hands ----------------------------------------------------------------------------------


def test_messages_of_googles_client_arrive_with_pubsubs_id():
    project = fresh_project()
    google = Google(shared_pubsub(), project)

    async def story():
        async with opened(project) as bus:
            deliveries = await begun(bus)
            id = await asyncio.to_thread(google.publish, "orders", b"\x00", {"k": "v"}, "user-1")
            assert (await arrival(deliveries)).message == Message(id, b"\x00", {"k": "v"}, "user-1")

    asyncio.run(story())


def test_a_subscription_of_another_topic_or_filter_is_refused():
    project = fresh_project()
    google = Google(shared_pubsub(), project)
    google.create("invoices", "workers")
    google.create("orders", "filtered", filter='attributes.kind = "a"')

    async def story():
        async with opened(project) as bus:
            with pytest.raises(ConfigurationError, match="belongs to topic 'invoices'"):
                await begun(bus)
            with pytest.raises(ConfigurationError, match="use another group"):
                await begun(bus, group="filtered")
            await begun(bus, group="filtered", where=Filter('attributes.kind = "a"'))

    asyncio.run(story())


def test_what_is_missing_is_created_and_the_log_says_so(caplog):
    async def story():
        async with opened() as bus:
            await begun(bus)

    caplog.set_level(logging.WARNING, "holdfast.pubsub")
    asyncio.run(story())
    assert "topic orders did not exist in pubsub://" in caplog.text
    assert "subscription workers of topic orders did not exist" in caplog.text


def test_an_emulator_that_was_started_again_has_lost_everything_and_members_go_on():
    emulator = PubSubEmulator()
    emulator.start()

    async def story():
        async with opened("demo-project", emulator) as bus:
            deliveries = await begun(bus)
            waiting = asyncio.ensure_future(anext(deliveries))
            await asyncio.sleep(0)
            await asyncio.to_thread(emulator.kill)
            with pytest.raises(Transient):
                await bus.publish("orders", a_message("lost"))
            await asyncio.to_thread(emulator.start)
            google = Google(emulator, "demo-project")
            names = f"projects/{google.project}"
            async with asyncio.timeout(30):
                while not list(  # noqa: ASYNC110  (the member makes it when it notices)
                    google.subscriber.list_subscriptions(project=names)
                ):
                    await asyncio.sleep(0.1)
            await bus.publish("orders", a_message("m1"))
            assert (await asyncio.wait_for(waiting, 10)).message.id == "m1"

    try:
        asyncio.run(story())
    finally:
        emulator.end()


def test_a_bus_works_in_one_event_loop_after_the_other():
    bus = PubSubBus(f"pubsub://{fresh_project()}?emulator={shared_pubsub().host}")

    async def story(id):
        await bus.open()
        deliveries = await begun(bus)
        await bus.publish("orders", a_message(id))
        assert await received(deliveries, 1) == [id]
        await bus.close()
        with pytest.raises(Transient, match="closed"):
            await bus.publish("orders", a_message(id))

    asyncio.run(story("m1"))
    asyncio.run(story("m2"))


# --- addresses and errors -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("pubsub://", "names no project"),
        ("pubsub://Bad_Project", "names no project"),
        ("pubsub://my-project/topic", "names no project"),
        ("pubsub://my-project?timeot=5s", "'timeot' is not known; there are emulator, endpoint"),
        ("pubsub://my-project?timeout=0s", "can't be used"),
        ("pubsub://my-project?ack_deadline=5s", "from 10s to 10m"),
        ("pubsub://my-project?emulator=localhost", "host:port"),
    ],
)
def test_an_address_that_is_wrong_says_what_is(url, reason, monkeypatch):
    for name in ("PUBSUB_PROJECT_ID", "GOOGLE_CLOUD_PROJECT", "PUBSUB_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match=reason):
        parse(url)


def test_the_environment_names_project_and_emulator(monkeypatch):
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "other-project")
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "localhost:8085")
    assert parse("pubsub://").project == "other-project"
    assert parse("pubsub://my-project").emulator == "localhost:8085"
    assert parse("pubsub://example.com:my-project").project == "example.com:my-project"


@pytest.mark.parametrize("name", ["ab", "1orders", "google-orders", "or/ders", "x" * 256])
def test_a_name_that_pubsub_refuses_says_why(name):
    with pytest.raises(ConfigurationError, match="3 to 255 letters"):
        parse("pubsub://my-project").topic(name)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (google_errors.NotFound("x"), NotFound),
        (google_errors.InvalidArgument("x"), Permanent),
        (google_errors.PermissionDenied("x"), ConfigurationError),
        (google_errors.Unauthenticated("x"), ConfigurationError),
        (google_errors.ResourceExhausted("x"), Transient),
        (google_errors.ServiceUnavailable("x"), Transient),
        (google_errors.DeadlineExceeded("x"), Transient),
        (google_errors.InternalServerError("x"), Transient),
    ],
)
def test_errors_say_what_to_do_next(error, kind):
    assert type(explain(error, parse("pubsub://my-project"))) is kind


def test_a_subscription_that_pushes_is_not_pulled():
    project = fresh_project()
    google = Google(shared_pubsub(), project)
    push = {"push_endpoint": "http://127.0.0.1:9/pubsub"}
    google.create("orders", "workers", push_config=push)

    async def story():
        async with opened(project) as bus:
            with pytest.raises(ConfigurationError, match=r"pushes to http://127\.0\.0\.1:9/pubsub"):
                await begun(bus)

    asyncio.run(story())


def test_whoever_waits_learns_that_it_may_not_subscribe_any_more(monkeypatch):
    project = fresh_project()
    google = Google(shared_pubsub(), project)

    async def story():
        async with opened(project) as bus:
            deliveries = await begun(bus)

            async def refuse(*_):
                raise ConfigurationError("may not create subscriptions")

            monkeypatch.setattr(bus, "ensure_subscription", refuse)
            path = google.subscription("workers")
            await asyncio.to_thread(
                google.subscriber.delete_subscription, request={"subscription": path}
            )
            for _ in range(2):
                with pytest.raises(ConfigurationError, match="may not create"):
                    await arrival(deliveries)

    asyncio.run(story())


def test_closing_does_not_wait_for_a_server_that_does_not_answer():
    emulator = PubSubEmulator()
    emulator.start()

    async def story():
        loop = asyncio.get_running_loop()
        async with opened("demo-project", emulator) as bus:
            deliveries = await begun(bus)
            await bus.publish("orders", a_message("m1"))
            await arrival(deliveries)
            emulator.pause()
            began = loop.time()
            await deliveries.aclose()
            assert loop.time() - began < 3.0
            emulator.resume()

    try:
        asyncio.run(story())
    finally:
        emulator.end()


def test_real_credentials_make_a_channel_without_asking_anybody(monkeypatch):
    monkeypatch.delenv("PUBSUB_EMULATOR_HOST", raising=False)
    monkeypatch.setenv(ENCODED, encoded_account())

    async def story():
        bus = PubSubBus("pubsub://my-project?endpoint=127.0.0.1:9&timeout=1s")
        await bus.open()
        with pytest.raises(Transient, match="pubsub://my-project"):
            await bus.publish("orders", a_message())
        await bus.close()

    asyncio.run(story())


def encoded_account() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    account = {
        "type": "service_account",
        "client_email": "worker@my-project.iam.gserviceaccount.com",
        "private_key": key.decode(),
        "token_uri": "http://127.0.0.1:9/token",
    }
    return base64.b64encode(json.dumps(account).encode()).decode()
