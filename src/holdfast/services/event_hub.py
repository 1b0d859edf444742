"""Committed events to many who follow them: one reader of the outbox for all of a process.

Who follows gets every event behind a moment, each once and in order. It registers first and reads
what is stored afterwards: the hub has handed out, or will hand out, whatever that does not show. A
follower that does not keep up loses its place (`Lagging`) and reads the store again; it never makes
another one wait."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.errors import Transient
from holdfast.model.event import Event
from holdfast.ports.store import RunFilter, Store

log = logging.getLogger("holdfast.events")

PAGE = 500
POLL_INTERVAL = 1.0
"""Between two looks at the outbox, in seconds, when nothing wakes us in between."""
SETTLE_TIME = 0.02
"""After a change, in seconds: a burst of events costs one look."""
MOST_WAITING = 1000
"""Events that wait for one follower."""


class Lagging(Exception):
    """The follower was too slow: what it missed is in the store."""


class Closed(Exception):
    """The process ends."""


class Follower:
    """Events of one run, or of one tenant (None: of all)."""

    def __init__(self, run: str | None, tenant: str | None) -> None:
        self.run = run
        self.tenant = tenant
        self._events: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._failure: type[Exception] | None = None

    def put(self, event: Event) -> None:
        if self.run is None and self.tenant not in (None, event.tenant):
            return
        if len(self._events) >= MOST_WAITING:
            self._events.clear()
            self.fail(Lagging)
        else:
            self._events.append(event)
            self._wake.set()

    def fail(self, failure: type[Exception]) -> None:
        self._failure = failure
        self._wake.set()

    async def next(self, timeout: float) -> list[Event]:
        """The events that have come, as soon as there are any; none when the time is up. Raises
        Lagging, then goes on; and Closed."""
        try:
            async with asyncio.timeout(timeout):
                await self._wake.wait()
        except TimeoutError:
            return []
        self._wake.clear()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        events = list(self._events)
        self._events.clear()
        return events


class EventHub:
    """Reads the outbox while anybody follows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._of_runs: dict[str, set[Follower]] = {}
        self._of_tenants: set[Follower] = set()
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._position = 0
        self.closed = asyncio.Event()
        """Set when the process ends."""

    @property
    def followers(self) -> int:
        return len(self._of_tenants) + sum(map(len, self._of_runs.values()))

    @property
    def position(self) -> int:
        """Up to where events were handed out."""
        return self._position

    @asynccontextmanager
    async def follow(
        self, *, run: str | None = None, tenant: str | None = None
    ) -> AsyncIterator[Follower]:
        """What is committed from now on comes; read what is stored once you are inside."""
        follower = Follower(run, tenant)
        if self.closed.is_set():
            follower.fail(Closed)
        group = self._of_tenants if run is None else self._of_runs.setdefault(run, set())
        group.add(follower)
        try:
            await self._start()
            yield follower
        finally:
            group.discard(follower)
            if run is not None and not group:
                self._of_runs.pop(run, None)

    def close(self) -> None:
        """Let everybody go: their connections end."""
        self.closed.set()
        for follower in [
            *self._of_tenants,
            *(feed for feeds in self._of_runs.values() for feed in feeds),
        ]:
            follower.fail(Closed)
        if self._reading is not None:
            self._reading.cancel()

    async def _start(self) -> None:
        async with self._starting:
            if self.closed.is_set() or (self._reading is not None and not self._reading.done()):
                return
            self._position = await find_end(self._store)
            self._reading = asyncio.create_task(self._read(), name="event hub")

    async def _read(self) -> None:
        change = 0
        while self.followers:
            try:
                while events := await self._store.outbox(self._position, PAGE):
                    self._hand_out(events)
            except Transient as error:
                log.warning("can't read the outbox: %s", error)
                await asyncio.sleep(POLL_INTERVAL)
            change = await self._store.wait(change, POLL_INTERVAL)
            await asyncio.sleep(SETTLE_TIME)

    def _hand_out(self, events: list[Event]) -> None:
        for event in events:
            for follower in self._of_runs.get(event.run, ()):
                follower.put(event)
            for follower in self._of_tenants:
                follower.put(event)
        self._position = events[-1].position


async def find_end(store: Store) -> int:
    """The position of the last event: from the newest run's last one onwards, which is near."""
    newest = await store.runs(RunFilter(), limit=1)
    history = await store.history(newest[0].id) if newest else []
    position = max((event.position for event in history), default=0)
    while events := await store.outbox(position, PAGE):
        position = events[-1].position
    return position
