"""Events as CloudEvents 1.0 in binary mode: the payload stays as it is, metadata goes into
attributes."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.model.event import Event

TYPE_PREFIX = "dev.holdfast"


def to_attributes(event: Event, deployment: str) -> dict[str, str]:
    """The `ce-*` attributes of an event; the id is derived, so every copy of it carries the same
    one."""
    return {
        "ce-specversion": "1.0",
        "ce-id": event.id,
        "ce-source": f"/holdfast/{deployment}/{event.tenant}/{event.pipeline}",
        "ce-type": f"{TYPE_PREFIX}.{event.type}.v1",
        "ce-subject": event.run,
        "ce-time": datetime.fromtimestamp(event.at, UTC).isoformat().replace("+00:00", "Z"),
        "ce-sequence": str(event.seq),
        "ce-partitionkey": event.run,
        "ce-tenantid": event.tenant,
        "ce-pipelineid": event.pipeline,
        "content-type": "application/json",
    }
