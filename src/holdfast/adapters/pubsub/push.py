"""What Pub/Sub posts: a JSON envelope around a message or, if the subscription is set so, the
message's data alone, with the rest in headers.

    {"message": {"data": "eyJ…", "attributes": {…}, "messageId": "1", "orderingKey": "k"},
     "subscription": "projects/p/subscriptions/s", "deliveryAttempt": 2}"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.adapters.pubsub.address import last_part
from holdfast.adapters.pubsub.messages import ID
from holdfast.errors import InvalidInput
from holdfast.ports.bus import Message

SUBSCRIPTION: Final = "x-goog-pubsub-subscription-name"
MESSAGE_ID: Final = "x-goog-pubsub-message-id"
ORDERING_KEY: Final = "x-goog-pubsub-ordering-key"
OF_HTTP: Final = frozenset(
    (
        *("accept", "accept-encoding", "accept-language", "authorization", "connection"),
        *("content-length", "cookie", "expect", "forwarded", "from", "host", "keep-alive"),
        *("te", "trailer", "transfer-encoding", "upgrade", "user-agent", "via"),
    )
)
"""Headers that are no attributes of a message."""
OF_PROXIES: Final = ("x-goog-", "x-forwarded-", "x-cloud-trace-", "x-serverless-", "x-request-id")


class Push(NamedTuple):
    """A message, the subscription that it came by, and the number of its delivery."""

    subscription: str
    message: Message
    attempt: int


class Inner(msgspec.Struct):
    """A message inside its envelope; both spellings of names occur."""

    data: str = ""
    attributes: dict[str, str] = {}
    messageId: str = ""  # noqa: N815  (as Pub/Sub writes it)
    message_id: str = ""
    orderingKey: str = ""  # noqa: N815  (as Pub/Sub writes it)
    ordering_key: str = ""


class Envelope(msgspec.Struct):
    message: Inner
    subscription: str
    deliveryAttempt: int = 1  # noqa: N815  (as Pub/Sub writes it)


_decode = msgspec.json.Decoder(Envelope).decode


def decode(body: bytes, headers: Mapping[str, str]) -> Push:
    """`headers` are in lower case. Raises InvalidInput."""
    push = _unwrapped(body, headers) if SUBSCRIPTION in headers else _wrapped(body)
    if not push.message.id:
        raise InvalidInput("the push has no message id")
    if not push.subscription:
        raise InvalidInput("the push names no subscription")
    return push


def _wrapped(body: bytes) -> Push:
    try:
        envelope = _decode(body)
        data = b64decode(envelope.message.data, validate=True)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the push is no envelope of Pub/Sub: {error}") from error
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(f"the data of the push is not base64: {error}") from error
    inner = envelope.message
    message = _message(
        inner.messageId or inner.message_id,
        data,
        inner.attributes,
        inner.orderingKey or inner.ordering_key,
    )
    return Push(last_part(envelope.subscription), message, max(envelope.deliveryAttempt, 1))


def _unwrapped(body: bytes, headers: Mapping[str, str]) -> Push:
    attributes = {name: text for name, text in headers.items() if _is_attribute(name)}
    id, key = headers.get(MESSAGE_ID, ""), headers.get(ORDERING_KEY, "")
    return Push(last_part(headers[SUBSCRIPTION]), _message(id, body, attributes, key), 1)


def _is_attribute(name: str) -> bool:
    return name not in OF_HTTP and not name.startswith(OF_PROXIES)


def _message(id: str, data: bytes, attributes: Mapping[str, Any], ordering_key: str) -> Message:
    """Ours carry their own id."""
    remaining = dict(attributes)
    return Message(remaining.pop(ID, "") or id, data, remaining, ordering_key)
