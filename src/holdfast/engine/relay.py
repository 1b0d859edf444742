"""The relay brings committed events to one projection: in order, at least once.

Each projection has a relay of its own, with its own lock and its own cursor in `Records`, so that
one dead endpoint stops no other. The cursor moves only after the events behind it were delivered:
whoever crashes in between delivers them again, with the same ids and the same bytes.

What can be tried again (`Transient`, or a setting that is missing) is, with growing delays, and the
cursor stays where it is. What fails for good becomes a dead letter, and the projection goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from holdfast.engine import cursors
from holdfast.engine.cursors import Cursor
from holdfast.engine.failures import describe, error_info
from holdfast.engine.locks import Lock
from holdfast.engine.outbox import end_of_outbox
from holdfast.engine.runtime import Runtime
from holdfast.engine.supervision import end
from holdfast.engine.tracebacks import log_error
from holdfast.errors import ConfigurationError, Transient
from holdfast.model.commands import Bury
from holdfast.model.event import Event, EventType
from holdfast.model.keys import MAX_WHOLE, stored_key
from holdfast.model.limits import storable

log = logging.getLogger("holdfast.relay")

POLL_INTERVAL = 1.0
"""Between two looks at the outbox, in seconds, when nothing wakes us in between."""
LAST_TIMEOUT = 0.5
"""For the last delivery of a process that stops, in seconds."""
STANDBY_INTERVAL = 2.0
"""Between two tries to get the lock that another process has, in seconds."""
MAX_DELAY = 2.0
"""Between two tries, in seconds: what has waited is sent within 5 s of its endpoint returning."""
PROJECTION = "projection:"
"""What the names of the relays' locks begin with, and the sources of their dead letters."""


class Target(Protocol):
    """What a relay delivers to: a projection, with the messages or documents that it makes."""

    name: str
    kind: str
    history: bool

    def select(self, events: Sequence[Event]) -> list[Event]:
        """The events that have to be delivered, in order."""
        ...

    async def deliver(self, event: Event, generation: int) -> None: ...


class Relay:
    """Follows the outbox for one projection. One relay at a time works, by lock; a second one that
    delivers the same would do no harm."""

    def __init__(self, runtime: Runtime, target: Target, owner: str) -> None:
        self._runtime = runtime
        self._target = target
        self._lock = Lock(runtime, f"{PROJECTION}{target.name}", owner=owner, internal=True)

    async def run(self) -> None:
        change, failures = 0, 0
        try:
            while True:
                try:
                    if not await self._leads():
                        await asyncio.sleep(STANDBY_INTERVAL)
                    elif not await self.drain():
                        change = await self._runtime.store.wait(change, POLL_INTERVAL)
                    failures = 0
                except (Transient, ConfigurationError) as error:
                    failures += 1
                    await self._retry_later(error, failures)
                except Exception:  # a projection that is broken must not end the worker
                    failures += 1
                    log.exception("projection %s: the relay failed", self._target.name)
                    await asyncio.sleep(MAX_DELAY)
        finally:
            await self._finish()

    async def _finish(self) -> None:
        """The process stops: deliver what its last runs left behind, if that is quickly done."""
        if self._lock.held:
            last = asyncio.create_task(self.drain())
            await asyncio.wait({last}, timeout=LAST_TIMEOUT)
            await end([last])
        await self._lock.release()

    async def drain(self) -> int:
        """Deliver everything behind the cursor; how many events that were."""
        count = 0
        cursor = await self.register()
        while events := await self._runtime.store.outbox(cursor.position):
            moved = await self._deliver_all(events, cursor)
            count += len(events)
            if moved is None:
                break  # somebody else has moved it: go on from there the next time
            cursor = moved
        return count

    async def register(self) -> Cursor:
        """The cursor. From the first time on retention waits for it."""
        records, target = self._runtime.records, self._target
        cursor = await cursors.load(records, target.name)
        if cursor is None:
            position = 0 if target.history else await end_of_outbox(self._runtime.store)
            cursor = await cursors.register(records, target.name, target.kind, position)
        return cursor

    async def _leads(self) -> bool:
        return self._lock.held or await self._lock.try_acquire()

    # --- delivering -------------------------------------------------------------------------------

    async def _deliver_all(self, events: Sequence[Event], cursor: Cursor) -> Cursor | None:
        """The cursor behind all events, or behind those that were delivered when one can't be."""
        records = self._runtime.records
        failure: dict[str, Any] = {}
        for event in self._target.select(events):
            try:
                error = await self._deliver(event, cursor.state.generation)
            except Exception:
                before = [e.position for e in events if e.position < event.position]
                if before:
                    await cursors.move(records, cursor, before[-1], **failure)
                raise
            if error is not None:
                failure = {"error": error, "failed": self._runtime.clock.now()}
        return await cursors.move(records, cursor, events[-1].position, **failure)

    async def _deliver(self, event: Event, generation: int) -> str | None:
        """What went wrong for good, if anything did: the event is a dead letter then."""
        try:
            await self._target.deliver(event, generation)
        except (Transient, ConfigurationError):
            raise
        except Exception as error:
            return await self._bury(event, error)
        return None

    # --- failing ----------------------------------------------------------------------------------

    async def _bury(self, event: Event, error: Exception) -> str:
        """Keep the event as a dead letter. That is an event itself: one about a projection's own
        dead letter becomes none, or two broken projections would feed one another for ever."""
        name, info = self._target.name, error_info(error)
        log_error(
            log,
            "projection %s: event %s failed for good: %s",
            (name, event.id, info),
            info.traceback,
        )
        if not is_about_projection(event):
            await self._runtime.committer.send(
                Bury(
                    dead_letter_id(name, event.id),
                    f"{PROJECTION}{name}",
                    storable(f"{info.name}: {info.message}"),
                    msgspec.json.encode(event),
                    {
                        "event": event.id,
                        "type": str(event.type),
                        "traceback": storable(info.traceback or ""),
                    },
                    event.tenant,
                )
            )
        return info.message

    async def _retry_later(self, error: Exception, failures: int) -> None:
        retry_after = getattr(error, "retry_after", None) or 0.0
        delay = max(retry_after, min(MAX_DELAY, 2.0 ** (failures - 1)))
        message = describe(error)
        log.warning(
            "projection %s: can't go on, next try in %g s: %s", self._target.name, delay, message
        )
        try:
            await self._note(message)
        except Transient:  # then it is the store that is away
            pass
        await asyncio.sleep(delay)

    async def _note(self, message: str) -> None:
        """Show what keeps it from going on, once for the same trouble."""
        records, now = self._runtime.records, self._runtime.clock.now()
        cursor = await cursors.load(records, self._target.name)
        is_known = cursor is None or (cursor.state.failing and cursor.state.error == message)
        if cursor is not None and not is_known:
            await cursors.change(records, cursor, error=message, failed=now, failing=True)


def dead_letter_id(projection: str, event: str) -> str:
    return stored_key(f"{PROJECTION}{projection}:{event}", MAX_WHOLE)


def is_about_projection(event: Event) -> bool:
    """Whether an event says that something could not be delivered to a projection."""
    if event.type != EventType.MESSAGE_DEAD_LETTERED:
        return False
    return msgspec.json.decode(event.data).get("source", "").startswith(PROJECTION)
