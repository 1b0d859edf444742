"""Both forms in which Pub/Sub posts a message."""

from __future__ import annotations

import base64
import json

import pytest

from holdfast.adapters.pubsub.push import decode
from holdfast.errors import InvalidInput
from holdfast.ports.bus import Message

SUBSCRIPTION = "projects/my-project/subscriptions/workers"


def envelope(**changes):
    message = {
        "data": base64.b64encode(b'{"job_id": 1}').decode(),
        "attributes": {"worker-type": "transcription"},
        "messageId": "136969346945",
        "message_id": "136969346945",
        "publishTime": "2026-11-18T12:00:00Z",
        "publish_time": "2026-11-18T12:00:00Z",
        "orderingKey": "user-1",
    } | changes
    message = {name: value for name, value in message.items() if value is not None}
    return json.dumps({"message": message, "subscription": SUBSCRIPTION}).encode()


def test_an_envelope():
    push = decode(envelope(), {"content-type": "application/json"})
    assert push.subscription == "workers"
    assert push.attempt == 1
    assert push.message == Message(
        "136969346945", b'{"job_id": 1}', {"worker-type": "transcription"}, "user-1"
    )


def test_both_spellings_of_names():
    push = decode(envelope(messageId=None, orderingKey=None, ordering_key="user-2"), {})
    assert (push.message.id, push.message.ordering_key) == ("136969346945", "user-2")


def test_a_message_without_data_or_attributes():
    push = decode(envelope(data=None, attributes=None), {})
    assert (push.message.body, push.message.attributes) == (b"", {})


def test_the_number_of_the_delivery():
    body = json.loads(envelope()) | {"deliveryAttempt": 4}
    assert decode(json.dumps(body).encode(), {}).attempt == 4


def test_our_own_id_comes_first():
    push = decode(envelope(attributes={"holdfast-id": "run:3", "a": "b"}), {})
    assert (push.message.id, push.message.attributes) == ("run:3", {"a": "b"})


def test_data_alone_with_the_rest_in_headers():
    headers = {
        "host": "worker.example.org",
        "authorization": "Bearer x",
        "user-agent": "APIs-Google",
        "content-type": "application/json",
        "x-forwarded-for": "127.0.0.1",
        "x-goog-pubsub-subscription-name": SUBSCRIPTION,
        "x-goog-pubsub-message-id": "7",
        "x-goog-pubsub-publish-time": "2026-11-18T12:00:00Z",
        "worker-type": "transcription",
        "ce-id": "e-1",
    }
    push = decode(b"\x00raw", headers)
    assert push == (
        "workers",
        Message(
            "7",
            b"\x00raw",
            {"content-type": "application/json", "worker-type": "transcription", "ce-id": "e-1"},
        ),
        1,
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "no envelope"),
        (b"{}", "no envelope"),
        (b"\xff", "no envelope"),
        (b"[" * 100_000, "no envelope"),
        (b'{"message": 1, "subscription": "s"}', "no envelope"),
        (envelope(data="not base64!"), "not base64"),
        (envelope(data="YWJj\nZGVm"), "not base64"),
        (envelope(attributes={"a": 1}), "no envelope"),
        (envelope(messageId="", message_id=""), "no message id"),
        (envelope().replace(SUBSCRIPTION.encode(), b""), "names no subscription"),
    ],
)
def test_what_is_no_push_says_why(body, reason):
    with pytest.raises(InvalidInput, match=reason):
        decode(body, {})
