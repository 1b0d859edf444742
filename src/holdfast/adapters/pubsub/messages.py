"""Messages as Pub/Sub has them, and its limits, which the emulator does not check.

Pub/Sub names messages itself, and a copy of a message gets another name. Ours is sent in an
attribute, so that every copy keeps the id that it was published with."""

from __future__ import annotations

from typing import Any, Final

from holdfast.errors import Permanent
from holdfast.ports.bus import Message

ID: Final = "holdfast-id"
"""The attribute that carries the id of a message of ours."""

MAX_MESSAGE: Final = 10_000_000
"""Bytes of a request, in which a message is alone."""
MAX_BODY: Final = 9_000_000
"""What fits with as many attributes as there may be, and leaves room for the request itself."""
MAX_ATTRIBUTES: Final = 100
MAX_ATTRIBUTE_NAME: Final = 256
MAX_ATTRIBUTE: Final = 1024
MAX_ORDERING_KEY: Final = 1024


def to_pubsub(message: Message) -> dict[str, Any]:
    """Raises Permanent for what Pub/Sub would refuse, with the limit that it passes."""
    attributes = {**message.attributes, ID: message.id}
    _check(message, attributes)
    return {
        "data": message.body,
        "attributes": attributes,
        "ordering_key": message.ordering_key,
    }


def from_pubsub(message: Any) -> Message:
    """`message` is a PubsubMessage of the protocol."""
    attributes = dict(message.attributes)
    id = attributes.pop(ID, "") or message.message_id
    return Message(id, message.data, attributes, message.ordering_key)


def _check(message: Message, attributes: dict[str, str]) -> None:
    if len(attributes) > MAX_ATTRIBUTES:
        raise _too_much(
            message, f"{len(attributes)} attributes, with {ID}; there may be {MAX_ATTRIBUTES}"
        )
    for name, value in attributes.items():
        if not name or len(name.encode()) > MAX_ATTRIBUTE_NAME or name.startswith("goog"):
            raise _too_much(
                message,
                f"an attribute {name[:40]!r}; a name has 1 to {MAX_ATTRIBUTE_NAME} bytes and does "
                "not begin with goog",
            )
        if len(value.encode()) > MAX_ATTRIBUTE:
            raise _too_much(
                message,
                f"{len(value.encode()):,} bytes in attribute {name!r}; there may be "
                f"{MAX_ATTRIBUTE:,}",
            )
    if len(message.ordering_key.encode()) > MAX_ORDERING_KEY:
        raise _too_much(message, f"an ordering key of more than {MAX_ORDERING_KEY:,} bytes")
    if len(message.body) > MAX_BODY:
        raise _too_much(
            message,
            f"{len(message.body):,} bytes; there may be {MAX_BODY:,}, and what is larger goes "
            "through the blob store, if `blobs` is set",
        )


def _too_much(message: Message, problem: str) -> Permanent:
    return Permanent(f"message {message.id[:100]} can't be published to Pub/Sub: it has {problem}")
