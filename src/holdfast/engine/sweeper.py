"""The sweeper returns what dead workers held, and forgets what nobody needs any more."""

from __future__ import annotations

import asyncio
import logging

from holdfast.engine import cursors
from holdfast.engine.runtime import Runtime
from holdfast.errors import HoldfastError, Transient
from holdfast.model.commands import Prune, Sweep
from holdfast.model.names import path_part
from holdfast.model.options import Retention

log = logging.getLogger("holdfast.sweeper")

AFTER_A_BLOCK = 1.0
"""How long the worker of a process that could not run has to note what that cost, in seconds."""


class Sweeper:
    """Every process with a worker runs one; what two find at once, only one changes."""

    def __init__(self, runtime: Runtime, retention: Retention) -> None:
        self._runtime = runtime
        self._retention = retention
        self._pruned_at = runtime.clock.monotonic()

    async def run(self) -> None:
        while True:
            try:
                await self.sweep()
                if self._runtime.clock.monotonic() - self._pruned_at >= self._retention.every:
                    self._pruned_at = self._runtime.clock.monotonic()
                    await self.prune()
            except Transient as error:
                log.warning("can't sweep: %s", error)
            except HoldfastError:
                log.exception("can't sweep")
            await self._rest()

    async def _rest(self) -> None:
        """Until the next sweep. Who was blocked or paused meanwhile first lets its worker note why
        it lost its leases: whoever fails a run after its last attempt names the cause."""
        clock, interval = self._runtime.clock, self._runtime.times.sweep
        began = clock.monotonic()
        await asyncio.sleep(interval)
        if clock.monotonic() - began > interval + AFTER_A_BLOCK:
            await asyncio.sleep(AFTER_A_BLOCK)

    async def sweep(self) -> list[tuple[str, str]]:
        swept = await self._runtime.committer.send(Sweep())
        for run, state in swept:
            log.warning("run %s: its worker vanished, now %s", run, state)
        return swept

    async def prune(self) -> int:
        """Delete old runs, then their blobs: a crash in between leaves blobs that nothing refers
        to."""
        count = 0
        sent = await cursors.slowest(self._runtime.records)
        while True:
            runs = await self._runtime.committer.send(
                Prune(self._retention.finished, self._retention.failed, sent=sent)
            )
            for run, tenant in runs:
                await self._runtime.payloads.forget(f"{path_part(tenant)}/{run}/")
            count += len(runs)
            if not runs:
                return count
