"""The store on PostgreSQL: a batch of native commands is one call of one server-side function,
hence one round trip. What is rare is decided here, on facts that are read before.

Safe behind a pooler in transaction mode: every call is one statement in a transaction of its own,
and no state is left in a session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from holdfast.adapters import isolation
from holdfast.adapters.notifier import Notifier, wake_after
from holdfast.adapters.postgres import database, reads, statements
from holdfast.adapters.postgres.address import Address, parse
from holdfast.adapters.postgres.client import Client
from holdfast.adapters.postgres.listener import Listener
from holdfast.adapters.postgres.pool import ConnectionPool
from holdfast.adapters.postgres.thread import LoopThread
from holdfast.errors import StoreUnavailable
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.clock import Clock, SystemClock
from holdfast.model.commands import Command, R, Wake
from holdfast.model.event import Event
from holdfast.model.ids import new_token
from holdfast.model.lease import LockInfo
from holdfast.model.run import Run
from holdfast.ports.mover import refuse_marked
from holdfast.ports.records import RecordPage
from holdfast.ports.store import Audit, DeadLetter, Features, LaneInfo, RunFilter, StoredLog

log = logging.getLogger("holdfast.postgres")

OTHER_CONNECTIONS = 1
"""Connections of the thread that serves other loops than the one the store was opened in."""


class PostgresStore:
    """A `Store` in a schema of a PostgreSQL database.

    The loop that opens it has `pool` connections of its own. Calls from other loops, such as the
    lease keeper's, go through a thread with one more, and so does the listener's: `pool + 2` at
    most.

    The present is the server's clock; only a test passes one that it moves.
    """

    features = Features("postgres", durable=True, shared=True, batches_in_flight=2)

    def __init__(self, url: str | Address, clock: Clock | None = None) -> None:
        self.address = url if isinstance(url, Address) else parse(url)
        self._clock = None if clock is None or isinstance(clock, SystemClock) else clock
        self._statements = statements.load(self.address)
        self._notifier = Notifier()
        self._name = new_token()[:16]
        self._open = False
        self._opening = asyncio.Lock()

    # --- life -------------------------------------------------------------------------------------

    async def open(self) -> None:
        async with self._opening:
            if not self._open:
                await self._begin()
                self._open = True

    async def _begin(self) -> None:
        server = await database.prepare(self.address)
        if server.may_lose_power:
            log.warning(
                "%s has fsync or full_page_writes off: a power cut can lose runs",
                self.address.shown,
            )
        self._loop = asyncio.get_running_loop()
        self._pool = ConnectionPool(self.address, self.address.pool)
        self._home = self._client(server, self._pool)
        try:
            refuse_marked(reads.mark(await self._home.read("mark")), self.address.shown)
            await self._home.read("forget_old_delays", self._home.mono())
        except BaseException:
            await self._home.close()
            raise
        self._thread = LoopThread("holdfast-postgres")
        self._other = self._client(server, ConnectionPool(self.address, OTHER_CONNECTIONS))
        self._listener = Listener(self.address, self._other, self._name, self._notifier.notify)
        self._thread.start()
        self._listening = asyncio.run_coroutine_threadsafe(self._listener.run(), self._thread.loop)

    def _client(self, server: database.ServerInfo, pool: ConnectionPool) -> Client:
        return Client(self.address, pool, self._statements, server, self._name, self._clock)

    async def close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._listening.cancel()
        await self._thread.do(self._other.close)
        await self._thread.stop()
        if self._loop is asyncio.get_running_loop():
            await self._home.close()
        elif self._loop.is_closed():
            self._pool.abandon()
        else:
            await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(self._home.close(), self._loop)
            )

    # --- commands ---------------------------------------------------------------------------------

    async def apply(self, commands: Sequence[Command[R]]) -> list[R]:
        self._refuse_when_closed()
        return await isolation.apply(commands, self._apply) if commands else []

    async def _apply(self, commands: Sequence[Command[Any]]) -> list[Any]:
        replies = await self._do(lambda client: client.apply(commands))
        self._notifier.notify(wake_after(commands, replies))
        return replies

    async def _do(self, work: Callable[[Client], Coroutine[Any, Any, R]]) -> R:
        """Over the connections of this loop, or else over the thread's."""
        if asyncio.get_running_loop() is self._loop:
            return await work(self._home)
        return await self._thread.do(lambda: work(self._other))

    async def wait(self, since: int, timeout: float, *, wake: Wake = Wake.WAITERS) -> int:
        return await self._notifier.wait(since, timeout, wake=wake)

    def _refuse_when_closed(self) -> None:
        if not self._open:
            raise StoreUnavailable(f"the store {self.address.shown} is closed")

    # --- reads ------------------------------------------------------------------------------------

    async def _read(self, typed: Callable[[bytes], R], name: str, *values: Any) -> R:
        self._refuse_when_closed()
        return typed(await self._do(lambda client: client.read(name, *values)))

    async def run(self, run: str) -> Run | None:
        return await self._read(reads.one_run, "run", run)

    async def over(self, runs: Sequence[str]) -> list[Run]:
        return await self._read(reads.runs, "over", reads.names(runs))

    async def unique_runs(self) -> list[Run]:
        return await self._read(reads.runs, "unique_runs")

    async def runs(
        self, where: RunFilter, *, limit: int = 50, before: int | None = None
    ) -> list[Run]:
        name = "runs_by_state" if where.state in reads.INDEXED_STATES else "runs"
        return await self._read(reads.runs, name, *reads.filtered(where), before, limit)

    async def count(self, where: RunFilter) -> dict[str, int]:
        return await self._read(reads.counts, "count", *reads.filtered(where))

    async def checkpoints(self, run: str, step: str | None = None) -> list[Checkpoint]:
        return await self._read(reads.checkpoints, "checkpoints", run, step)

    async def quarantined(self, run: str) -> list[tuple[str, str, str]]:
        return await self._read(reads.quarantined, "quarantined", run)

    async def history(self, run: str) -> list[Event]:
        return await self._read(reads.history, "history", run)

    async def logs(self, run: str, *, after: int = 0, limit: int = 1000) -> list[StoredLog]:
        return await self._read(reads.logs, "logs", run, after, limit)

    async def dead_letters(
        self,
        *,
        tenant: str | None = None,
        open_only: bool = True,
        limit: int = 100,
        behind: tuple[float, str] | None = None,
    ) -> list[DeadLetter]:
        last = behind or (None, None)
        return await self._read(reads.letters, "dead_letters", tenant, open_only, limit, *last)

    async def dead_letter(self, id: str) -> DeadLetter | None:
        return await self._read(reads.one_letter, "dead_letter", id)

    async def locks(self) -> list[LockInfo]:
        return await self._read(reads.locks, "locks", self._home.mono())

    async def lanes(self) -> list[LaneInfo]:
        return await self._read(reads.lanes, "lanes", self._home.mono())

    async def outbox(self, after: int, limit: int = 200) -> list[Event]:
        return await self._read(reads.history, "outbox", after, limit)

    async def record(self, key: str) -> RecordPage:
        page = await self.records(key, limit=1)
        return RecordPage([record for record in page.records if record.key == key], page.now)

    async def records(self, prefix: str, *, after: str = "", limit: int = 100) -> RecordPage:
        page = await self._read(reads.records, "records", self._home.mono(), prefix, after, limit)
        wall = self._home.wall()
        return page if wall is None else RecordPage(page.records, wall)

    async def audit(self, *, limit: int = 100) -> list[Audit]:
        return await self._read(reads.audits, "audit", limit)
