"""Whether this process can work: what its probes answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from msgspec import Struct

from holdfast.engine.runtime import Runtime
from holdfast.errors import HoldfastError

TIMEOUT = 3.0
"""Seconds within which the store has to answer."""
PROBE = "probe"
"""A record that is only asked for."""


class HealthView(Struct):
    """The process. `active_messages` is how many runs it executes."""

    status: str
    active_messages: int
    uptime_seconds: float


class ReadinessView(Struct):
    """Whether work may be sent here, and what speaks against it."""

    ready: bool
    reasons: list[str]


class Health:
    """One for each process: `starting` until the app is open, `draining` once it has to end."""

    def __init__(
        self, runtime: Runtime, is_open: Callable[[], bool], active: Callable[[], int]
    ) -> None:
        self._runtime = runtime
        self._is_open = is_open
        self._active = active
        self._began = time.monotonic()
        self._is_draining = False

    @property
    def status(self) -> str:
        if self._is_draining:
            return "draining"
        return "ok" if self._is_open() else "starting"

    def drain(self) -> None:
        self._is_draining = True

    def view(self) -> HealthView:
        return HealthView(self.status, self._active(), round(time.monotonic() - self._began, 3))

    async def readiness(self) -> ReadinessView:
        """Asks the store. Work may come if it answers, leases are renewed in time, and the process
        neither starts nor ends."""
        reasons = [] if self.status == "ok" else [f"the process is {self.status}"]
        if self.status != "starting":
            reasons += [*await self._store_reasons(), *self._lease_reasons()]
        return ReadinessView(not reasons, reasons)

    async def _store_reasons(self) -> list[str]:
        try:
            async with asyncio.timeout(TIMEOUT):
                await self._runtime.store.record(PROBE)
        except TimeoutError:
            return [f"the store did not answer within {TIMEOUT:.0f} s"]
        except HoldfastError as error:
            return [f"the store: {error}"]
        return []

    def _lease_reasons(self) -> list[str]:
        keeper, times = self._runtime.keeper, self._runtime.times
        if not keeper.started:
            return []
        age = self._runtime.clock.monotonic() - keeper.renewed_at
        if age <= times.ttl - times.margin:
            return []
        return [f"leases were last renewed {age:.0f} s ago"]
