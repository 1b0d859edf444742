"""Publishing what message projections make of committed events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.engine.runtime import Runtime
from holdfast.engine.tracing import send_span
from holdfast.model.event import Event, EventType
from holdfast.model.projection import CommittedEvent, MessageProjection, body_bytes
from holdfast.model.run import Run
from holdfast.model.trace_context import of_attributes
from holdfast.ports.bus import Message, Publisher

_decode = msgspec.json.Decoder().decode


class MessageTarget:
    """A message projection and where its messages go."""

    kind = "messages"

    def __init__(
        self, projection: MessageProjection, publisher: Publisher, runtime: Runtime
    ) -> None:
        self.name = projection.name
        self.history = projection.history
        self._projection = projection
        self._publisher = publisher
        self._runtime = runtime
        self._runs: dict[str, Run | None] = {}

    def select(self, events: Sequence[Event]) -> list[Event]:
        self._runs.clear()  # read anew for each page of events: only then is a result surely there
        return [event for event in events if self._projection.concerns(event)]

    async def deliver(self, event: Event, generation: int) -> None:
        committed = await self._committed(event)
        if committed is None:
            return
        for id, outgoing in self._projection.messages(committed):
            body = body_bytes(outgoing.body)
            attributes = {**_cause(committed), **outgoing.attributes}
            message = Message(id, body, attributes, outgoing.ordering_key)
            with send_span(self._runtime, outgoing.topic, message):
                await self._publisher.publish(outgoing.topic, message)
            if outgoing.on_published is not None:
                outgoing.on_published()

    # --- what the function sees -------------------------------------------------------------------

    async def _committed(self, event: Event) -> CommittedEvent | None:
        """The event with what belongs to it; None if its run or dead letter was deleted."""
        if not self._projection.loads_run:
            return committed_event(event)
        if event.type == EventType.MESSAGE_DEAD_LETTERED:
            letter = await self._runtime.store.dead_letter(event.run)
            if letter is None:
                return None
            return committed_event(event, attributes=letter.attributes, body=letter.body)
        run = await self._run(event.run)
        return None if run is None else await self._with_run(event, run)

    async def _run(self, id: str) -> Run | None:
        if id not in self._runs:
            self._runs[id] = await self._runtime.store.run(id)
        return self._runs[id]

    async def _with_run(self, event: Event, run: Run) -> CommittedEvent:
        is_result = event.type == EventType.COMPLETED
        payloads = self._runtime.payloads
        return committed_event(
            event,
            key=run.key,
            labels=run.labels,
            attributes=run.attributes,
            input=_decode(await payloads.input_of(run)),
            result=_decode(await payloads.result_of(run)) if is_result else None,
        )


def _cause(event: CommittedEvent) -> dict[str, str]:
    """The trace context that the run was submitted with: the same in every copy."""
    context = of_attributes(event.attributes)
    return context.attributes if context else {}


def committed_event(event: Event, **more: Any) -> CommittedEvent:
    """An event as functions of projections see it, with `more` of what belongs to it."""
    before, after = event.transition
    return CommittedEvent(
        id=event.id,
        type=event.type,
        seq=event.seq,
        at=event.at,
        data=_decode(event.data),
        text=event.data,
        before=before,
        after=after,
        run=event.run,
        tenant=event.tenant,
        pipeline=event.pipeline,
        **more,
    )
