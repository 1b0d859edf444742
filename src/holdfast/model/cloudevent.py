"""CloudEvents 1.0: events leave in binary mode, the payload as it is and metadata in attributes;
messages are understood in binary and in structured mode."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from holdfast.errors import InvalidInput
from holdfast.model.event import EVENTS_TOPIC
from holdfast.model.projection import CommittedEvent, MessageProjection, Outgoing

TYPE_PREFIX = "dev.holdfast"
STRUCTURED = "application/cloudevents"
_DATA = ("data", "data_base64")
EVENTS = "events"
"""The name of the projection that publishes every event."""


def events_projection(topic: str = EVENTS_TOPIC, deployment: str = "local") -> MessageProjection:
    """The first of all projections: every event as it is stored, to one topic."""

    def events(event: CommittedEvent) -> Outgoing:
        return Outgoing(topic, event.text, to_attributes(event, deployment), event.run)

    return MessageProjection(name=EVENTS, function=events, loads_run=False)


def to_attributes(event: CommittedEvent, deployment: str) -> dict[str, str]:
    """The `ce-*` attributes of an event; the id is derived, so every copy of it carries the same
    one. `ce-statefrom` and `ce-stateto` are there when the event changed the run's state."""
    states = {"ce-statefrom": event.before, "ce-stateto": event.after}
    return {
        "ce-specversion": "1.0",
        "ce-id": event.id,
        "ce-source": f"/holdfast/{deployment}/{quote(event.tenant, safe='')}/{event.pipeline}",
        "ce-type": f"{TYPE_PREFIX}.{event.type}.v1",
        "ce-subject": event.run,
        "ce-time": event.time.isoformat().replace("+00:00", "Z"),
        "ce-sequence": str(event.seq),
        "ce-partitionkey": event.run,
        "ce-tenantid": event.tenant,
        "ce-pipelineid": event.pipeline,
        "content-type": "application/json",
        **{name: state for name, state in states.items() if state is not None},
    }


def is_structured(attributes: Mapping[str, str]) -> bool:
    """Whether the whole event is in the body of a message."""
    return attributes.get("content-type", "").lower().startswith(STRUCTURED)


def unwrap(body: bytes, attributes: Mapping[str, str]) -> tuple[bytes, dict[str, str]]:
    """A message in binary mode, whatever mode it came in: its data and its attributes. What is no
    CloudEvent stays as it is."""
    if not is_structured(attributes):
        return body, dict(attributes)
    event = _decoded(body)
    metadata = {f"ce-{name}": _text(value) for name, value in event.items() if name not in _DATA}
    content_type = metadata.pop("ce-datacontenttype", "application/json")
    return _data(event), {**attributes, **metadata, "content-type": content_type}


def identity(message_id: str, attributes: Mapping[str, str]) -> str:
    """What names a message: a CloudEvent is the same one by its source and id, however often it is
    published."""
    if "ce-id" in attributes and "ce-source" in attributes:
        return f"{attributes['ce-source']}#{attributes['ce-id']}"
    return message_id


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        event = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the message is no structured CloudEvent: {error}") from error
    missing = [name for name in ("specversion", "id", "source", "type") if not event.get(name)]
    if missing:
        raise InvalidInput(f"the CloudEvent has no {' and no '.join(missing)}")
    return event


def _data(event: dict[str, Any]) -> bytes:
    if "data_base64" in event:
        try:
            return b64decode(event["data_base64"], validate=True)
        except (ValueError, TypeError) as error:
            raise InvalidInput(f"data_base64 of the CloudEvent is not base64: {error}") from error
    return msgspec.json.encode(event.get("data"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
