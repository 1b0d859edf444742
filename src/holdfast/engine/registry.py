"""The workers of a store: each keeps a record about itself, which says that it is alive.

The lease keeper's thread writes it, in the rhythm of renewals: user code that blocks the event loop
keeps a worker from nothing but its own work. A worker that stops removes its record; one that
vanishes is lost as soon as its leases would have ended, and forgotten after `KEPT` seconds. Nothing
rests on these records: they are for people."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec
from msgspec import Struct

from holdfast.engine.keeper import LeaseKeeper
from holdfast.errors import HoldfastError
from holdfast.ports.records import Records

log = logging.getLogger("holdfast.worker")

PREFIX = "workers/"
KEPT = 3600.0
"""How long a worker that vanished is shown, in seconds."""
REMOVAL_TIMEOUT = 1.0
"""How long a worker that stops may take to remove its record, in seconds."""


class WorkerInfo(Struct, frozen=True):
    """What a worker says about itself."""

    name: str
    host: str
    pid: int
    version: str
    pipelines: list[str]
    concurrency: int
    active: int
    """Runs under way."""
    lost_after: float
    """Seconds without a word after which it is lost: the duration of its leases."""


class Registration:
    """The record of one worker. `describe` may be called from any thread."""

    def __init__(
        self, records: Records, keeper: LeaseKeeper, describe: Callable[[], WorkerInfo]
    ) -> None:
        self._records = records
        self._keeper = keeper
        self._describe = describe
        self._version: str | None = None

    async def begin(self) -> None:
        self._keeper.beats.append(self.beat)
        await self.beat()

    async def end(self) -> None:
        """Remove the record, if the store is there: if not, it expires."""
        if self.beat not in self._keeper.beats:
            return
        self._keeper.beats.remove(self.beat)
        try:
            async with asyncio.timeout(REMOVAL_TIMEOUT):
                await self._remove()
        except (HoldfastError, TimeoutError) as error:
            log.warning(
                "the worker's record could not be removed: %s", error or "no answer in time"
            )

    async def beat(self) -> None:
        """Write the record. Failing is no reason to stop working."""
        info = self._describe()
        value = msgspec.json.encode(info).decode()
        try:
            reply = await self._records.put(
                PREFIX + info.name, value, expected=self._version, ttl=KEPT
            )
        except HoldfastError as error:
            log.warning("the worker's record could not be written: %s", error)
        else:
            self._version = reply.version  # also when it was not the expected one, or has expired

    async def _remove(self) -> None:
        """A beat may be under way in the keeper's thread: then there is a newer version."""
        key = PREFIX + self._describe().name
        while stored := (await self._records.get(key)).records:
            await self._records.delete(key, expected=stored[0].version)
