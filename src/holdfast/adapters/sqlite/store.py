"""The store on one SQLite file: WAL, `synchronous = FULL`, one writer thread, group commit."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from holdfast.adapters import isolation
from holdfast.adapters.notifier import Notifier, wake_after
from holdfast.adapters.sqlite import batch, database, reads
from holdfast.adapters.sqlite.writer import Writer
from holdfast.errors import StoreUnavailable
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.clock import Clock, SystemClock
from holdfast.model.commands import Command, R, Wake
from holdfast.model.event import Event
from holdfast.model.lease import LockInfo
from holdfast.model.machine.facts import Now
from holdfast.model.run import Run
from holdfast.ports.records import RecordPage
from holdfast.ports.store import Audit, DeadLetter, Features, LaneInfo, RunFilter, StoredLog


class SqliteStore:
    """A `Store` in a file.

    `threads=False` does everything on the calling thread, for simulations that own time and order.
    """

    features = Features("sqlite", durable=True, shared=True, batches_in_flight=2)

    def __init__(
        self, path: str | Path, clock: Clock | None = None, *, threads: bool = True
    ) -> None:
        self.path = str(path)
        self._clock = clock or SystemClock()
        self._threads = threads
        self._notifier = Notifier()
        self._open = False

    async def open(self) -> None:
        if self._open:
            return
        mono = self._clock.monotonic()
        if self._threads:
            self._reader = await asyncio.to_thread(database.prepare, self.path, mono)
        else:
            self._reader = database.prepare(self.path, mono)
        if self._threads:
            self._writer = Writer(self.path, self._clock, self._committed, self._notifier.notify)
            await asyncio.to_thread(self._writer.start)
            self._reading = ThreadPoolExecutor(1, "holdfast-sqlite-reader")
        self._open = True

    async def close(self) -> None:
        if not self._open:
            return
        self._open = False
        if self._threads:
            await asyncio.to_thread(self._writer.stop)
            await asyncio.to_thread(self._reading.shutdown)
        self._reader.close()

    async def apply(self, commands: Sequence[Command[R]]) -> list[R]:
        if not self._open:
            raise StoreUnavailable(f"the store {self.path} is closed")
        return await isolation.apply(commands, self._apply)

    async def _apply(self, commands: Sequence[Command[Any]]) -> list[Any]:
        if self._threads:
            return await self._writer.submit(commands)
        with database.translated(self.path):
            replies = batch.apply(self._reader, self._clock, commands)
        self._committed(commands, replies)
        return replies

    def _committed(self, commands: Sequence[Command[Any]], replies: Sequence[Any]) -> None:
        self._notifier.notify(wake_after(commands, replies))

    async def wait(self, since: int, timeout: float, *, wake: Wake = Wake.WAITERS) -> int:
        return await self._notifier.wait(since, timeout, wake=wake)

    async def _read(self, query: Callable[..., R], *arguments: Any) -> R:
        if not self._open:
            raise StoreUnavailable(f"the store {self.path} is closed")
        if self._threads:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._reading, self._query, query, arguments)
        return self._query(query, arguments)

    def _query(self, query: Callable[..., R], arguments: Sequence[Any]) -> R:
        with database.translated(self.path):
            return query(self._reader, *arguments)

    async def _read_now(self, query: Callable[..., R], *arguments: Any) -> R:
        """A query about the present. The time is read when it is clear what can be seen: by an
        earlier one, a lease that is renewed meanwhile would end later than it can."""

        def at_present(db: sqlite3.Connection) -> R:
            with database.snapshot(db):
                return query(db, Now(self._clock.now(), self._clock.monotonic()), *arguments)

        return await self._read(at_present)

    async def run(self, run: str) -> Run | None:
        return await self._read(reads.run, run)

    async def over(self, runs: Sequence[str]) -> list[Run]:
        return await self._read(reads.over, runs)

    async def unique_runs(self) -> list[Run]:
        return await self._read(reads.unique_runs)

    async def runs(
        self, where: RunFilter, *, limit: int = 50, before: int | None = None
    ) -> list[Run]:
        return await self._read(reads.runs, where, limit, before)

    async def count(self, where: RunFilter) -> dict[str, int]:
        return await self._read(reads.count, where)

    async def checkpoints(self, run: str, step: str | None = None) -> list[Checkpoint]:
        return await self._read(reads.checkpoints, run, step)

    async def quarantined(self, run: str) -> list[tuple[str, str, str]]:
        return await self._read(reads.quarantined, run)

    async def history(self, run: str) -> list[Event]:
        return await self._read(reads.history, run)

    async def logs(self, run: str, *, after: int = 0, limit: int = 1000) -> list[StoredLog]:
        return await self._read(reads.logs, run, after, limit)

    async def dead_letters(
        self,
        *,
        tenant: str | None = None,
        open_only: bool = True,
        limit: int = 100,
        behind: tuple[float, str] | None = None,
    ) -> list[DeadLetter]:
        return await self._read(reads.dead_letters, tenant, open_only, limit, behind)

    async def dead_letter(self, id: str) -> DeadLetter | None:
        return await self._read(reads.dead_letter, id)

    async def locks(self) -> list[LockInfo]:
        return await self._read_now(reads.locks)

    async def lanes(self) -> list[LaneInfo]:
        return await self._read_now(reads.lanes)

    async def outbox(self, after: int, limit: int = 200) -> list[Event]:
        return await self._read(reads.outbox, after, limit)

    async def record(self, key: str) -> RecordPage:
        page = await self.records(key, limit=1)
        return RecordPage([record for record in page.records if record.key == key], page.now)

    async def records(self, prefix: str, *, after: str = "", limit: int = 100) -> RecordPage:
        return await self._read_now(reads.records, prefix, after, limit)

    async def audit(self, *, limit: int = 100) -> list[Audit]:
        return await self._read(reads.audit, limit)
