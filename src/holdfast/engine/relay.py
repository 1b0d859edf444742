"""The relay carries committed events from the store to the bus, in order, at least once."""

from __future__ import annotations

import asyncio
import logging

from holdfast.engine import cursors
from holdfast.engine.locks import Lock
from holdfast.engine.runtime import Runtime
from holdfast.errors import Transient
from holdfast.model.cloudevent import to_attributes
from holdfast.model.event import Event
from holdfast.ports.bus import Bus, Message

log = logging.getLogger("holdfast.relay")

NAME = "events"
EVENTS_TOPIC = "holdfast-events"
POLL_INTERVAL = 1.0
"""Between two looks at the outbox, in seconds, when nothing wakes us in between."""
RETRY_DELAY = 1.0
"""After a failure, in seconds; the outbox drains well within 5 s of the bus returning."""


class Relay:
    """One relay at a time works, by lock; a second one publishing the same events would do no harm:
    same id, same bytes, every copy."""

    def __init__(
        self, runtime: Runtime, bus: Bus, owner: str, *, deployment: str = "local"
    ) -> None:
        self._runtime = runtime
        self._bus = bus
        self._deployment = deployment
        self._lock = Lock(runtime, "relay", owner=owner, internal=True)

    async def run(self) -> None:
        change = 0
        try:
            while True:
                try:
                    sent = await self.drain() if await self._leads() else 0
                except Transient as error:
                    log.warning("can't relay events: %s", error)
                    await asyncio.sleep(RETRY_DELAY)
                    continue
                if not sent:
                    change = await self._runtime.store.wait(change, POLL_INTERVAL)
        finally:
            await self._lock.release()

    async def drain(self) -> int:
        """Publish everything behind the cursor. It moves on only after the bus has the events."""
        count = 0
        cursor = await cursors.load(self._runtime.records, NAME)
        while events := await self._runtime.store.outbox(cursor.position):
            for event in events:
                await self._bus.publish(EVENTS_TOPIC, self._message(event))
            count += len(events)
            moved = await cursors.move(self._runtime.records, cursor, events[-1].position)
            if moved is None:
                break  # somebody else has moved it: go on from there the next time
            cursor = moved
        return count

    async def _leads(self) -> bool:
        return self._lock.held or await self._lock.try_acquire()

    def _message(self, event: Event) -> Message:
        return Message(event.id, event.data.encode(), to_attributes(event, self._deployment))
