"""A message as it arrived, and as it may be kept: without secrets."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Collection
from functools import cached_property
from typing import Any

import msgspec

from holdfast.model import secret_fields
from holdfast.model.cloudevent import identity, is_structured, unwrap
from holdfast.model.limits import storable
from holdfast.ports.bus import Message

MAX_ATTRIBUTES = 100
MAX_ATTRIBUTE_NAME = 100
MAX_ATTRIBUTE = 1024
"""Characters of an attribute's value that are kept, as many as Pub/Sub allows."""

MESSAGE_ID = "message-id"
MESSAGE_TOPIC = "message-topic"
DELIVERY_ATTEMPT = "delivery-attempt"
SECRETS = "message-secrets"
"""Attributes of runs: which message it came from, and which of its fields were secret."""


class Incoming:
    """`message` is the message without secrets, `secrets` are those that it had, by their paths.

    Reading never fails: what is wrong with a message is found when its `data` is asked for."""

    def __init__(self, message: Message, more: Collection[str] = ()) -> None:
        document = _document(message.body)
        inner = _inner(document) if is_structured(message.attributes) else None
        in_body = secret_fields.collect(document, more) | secret_fields.collect(inner, more)
        in_attributes = secret_fields.collect(dict(message.attributes), more)
        self.secrets = in_attributes | in_body
        body = self._masked_body(message.body, document, inner)
        attributes = secret_fields.masked_attributes(
            message.attributes, self.secrets.values(), more
        )
        self.message = Message(message.id, body, attributes)

    def _masked_body(self, body: bytes, document: Any, inner: Any) -> bytes:
        if document is None:
            return secret_fields.masked_bytes(body)
        body = secret_fields.without(body, self.secrets.values())
        if inner is None:
            return body
        data = secret_fields.without(b64decode(document["data_base64"]), self.secrets.values())
        event = {**msgspec.json.decode(body), "data_base64": b64encode(data).decode()}
        return msgspec.json.encode(event)

    @cached_property
    def _unwrapped(self) -> tuple[bytes, dict[str, str]]:
        return unwrap(self.message.body, self.message.attributes)

    @property
    def data(self) -> bytes:
        """What the message says. Raises InvalidInput if it is a CloudEvent that can't be read."""
        return self._unwrapped[0]

    @property
    def attributes(self) -> dict[str, str]:
        """As they came, those of a structured CloudEvent included."""
        return self._unwrapped[1]

    @cached_property
    def value(self) -> Any:
        """The JSON of the data; None if it is something else."""
        return _document(self.data)

    @property
    def id(self) -> str:
        """What names it, however often it is published."""
        return identity(self.message.id, self.attributes)

    def kept_attributes(self, topic: str, attempt: int) -> dict[str, str]:
        """What is kept with the run: bounded, however much came."""
        kept = {
            storable(name)[:MAX_ATTRIBUTE_NAME]: storable(value)[:MAX_ATTRIBUTE]
            for name, value in list(self.attributes.items())[:MAX_ATTRIBUTES]
        }
        kept |= {
            MESSAGE_ID: storable(self.id)[:MAX_ATTRIBUTE],
            MESSAGE_TOPIC: topic,
            DELIVERY_ATTEMPT: str(attempt),
        }
        if self.secrets:
            kept[SECRETS] = ", ".join(self.secrets)[:MAX_ATTRIBUTE]
        return kept


def _document(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _inner(document: Any) -> Any:
    """The JSON inside `data_base64` of a structured CloudEvent."""
    encoded = document.get("data_base64") if isinstance(document, dict) else None
    try:
        return _document(b64decode(encoded, validate=True)) if isinstance(encoded, str) else None
    except ValueError:
        return None
