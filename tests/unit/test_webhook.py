"""Webhooks as Standard Webhooks 1.0 describes them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from holdfast.errors import ConfigurationError
from holdfast.model.event import Event
from holdfast.model.webhook import (
    RETRY_DELAYS,
    Endpoint,
    endpoint_secret,
    event_body,
    retry_delay,
    signature,
)
from holdfast.settings import load


def test_the_signature_is_that_of_the_specification() -> None:
    """The example of the specification's own reference implementations."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    id, timestamp = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330
    signed = signature([secret], id, timestamp, b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_two_secrets_sign_while_one_is_rotated() -> None:
    endpoint = Endpoint("wh-1", "https://example.org/", 0.0, generation=2, overlap_until=100.0)
    new, old = (endpoint_secret("key", "wh-1", generation) for generation in (2, 1))
    assert endpoint.secrets("key", 99.0) == [new, old]
    assert endpoint.secrets("key", 100.0) == [new]
    assert new != old != endpoint_secret("key", "wh-2", 1)


def test_an_endpoint_hears_of_its_own_tenant_and_events_only() -> None:
    endpoint = Endpoint("wh-1", "https://example.org/", 0.0, "acme", ("run.failed",))
    assert endpoint.concerns(Event("r", 1, "run.failed", 0.0, tenant="acme"))
    assert not endpoint.concerns(Event("r", 1, "run.failed", 0.0, tenant="bolt"))
    assert not endpoint.concerns(Event("r", 1, "run.queued", 0.0, tenant="acme"))


def test_tries_follow_the_schedule_and_end() -> None:
    assert [retry_delay(n, None, 0.5) for n in range(1, 10)] == list(RETRY_DELAYS)
    assert retry_delay(10, None, 0.5) is None
    assert retry_delay(1, 60.0, 0.5) == 60.0
    assert retry_delay(2, None, 0.0) == pytest.approx(270.0)


def test_a_large_event_leaves_as_a_notice() -> None:
    attributes = {"ce-id": "r:1", "ce-time": "2026-01-01T00:00:00Z", "content-type": "x"}
    body = msgspec.json.decode(event_body(attributes, {"error": "x" * 30_000}))
    assert body["id"] == "r:1"
    assert body["timestamp"] == "2026-01-01T00:00:00Z"
    assert body["data"]["omitted"] > 30_000


def test_the_key_is_a_secret_that_is_long_enough(tmp_path: Path) -> None:
    long = "a key that is long enough for a test"
    loaded = load(
        env={"HOLDFAST_WEBHOOKS_KEY": long, "HOLDFAST_WEBHOOKS_ALLOW": "a,b"}, cwd=tmp_path
    )
    assert loaded.settings.webhooks.key == long
    assert loaded.settings.webhooks.allow == ("a", "b")
    assert loaded.shown("webhooks.key") == "***"
    with pytest.raises(ConfigurationError, match="can be guessed"):
        load(env={"HOLDFAST_WEBHOOKS_KEY": "short"}, cwd=tmp_path)
