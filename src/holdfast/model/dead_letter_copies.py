"""Copies of dead letters for other systems: `dead_letter_topic` of a `[[receive]]`."""

from __future__ import annotations

from holdfast.model.event import EventType
from holdfast.model.names import path_part
from holdfast.model.projection import CommittedEvent, MessageProjection, Outgoing
from holdfast.model.receive import Receive

TOPIC_OF_RUN = "message-topic"
"""The attribute of a run that says which topic its message came from."""


def dead_letter_copies(receive: Receive) -> MessageProjection:
    """What a topic brought and can't go on: messages that could not become runs, with their bytes,
    and the inputs of runs that failed. `dead-letter-reason` and `dead-letter-id` in the attributes
    say why, and what it is called here."""

    def copies(event: CommittedEvent) -> Outgoing | None:
        if event.type == EventType.MESSAGE_DEAD_LETTERED:
            source, reason, id = event.data.get("source"), event.data.get("reason"), event.run
            body = event.body
        else:
            error = event.data.get("error") or {}
            source, id = event.attributes.get(TOPIC_OF_RUN), f"run:{event.run}"
            reason, body = error.get("message"), event.input
        if source != receive.topic:
            return None
        why = {"dead-letter-reason": str(reason)[:1024], "dead-letter-id": id}
        return Outgoing(receive.dead_letter_topic, body, {**event.attributes, **why}, event.subject)

    events = frozenset({EventType.MESSAGE_DEAD_LETTERED, EventType.FAILED})
    return MessageProjection(name=copies_name(receive), function=copies, events=events)


def copies_name(receive: Receive) -> str:
    return f"dead_letters.{path_part(receive.topic)}"[:128]
