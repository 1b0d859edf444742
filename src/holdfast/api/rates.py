"""How many requests a tenant may send: no tenant takes the whole process for itself."""

from __future__ import annotations

import math
from collections.abc import Callable

from holdfast.api.problems import Problem

BURST = 2.0
"""Seconds' worth of requests that may come at once, after a pause."""


class RequestRates:
    """A token bucket for each tenant, in this process. Tenants come from accepted keys, so that
    nobody can fill the memory with names."""

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._rate = per_second
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        """By tenant: how many requests were left, and when."""

    def check(self, tenant: str) -> None:
        """Count a request. Raises Problem when there were too many."""
        if not self._rate:
            return
        now, most = self._clock(), self._rate * BURST
        left, then = self._buckets.get(tenant, (most, now))
        left = min(most, left + (now - then) * self._rate)
        if left < 1:
            self._buckets[tenant] = (left, now)
            raise self._too_many(tenant, (1 - left) / self._rate)
        self._buckets[tenant] = (left - 1, now)

    def _too_many(self, tenant: str, wait: float) -> Problem:
        return Problem(
            429,
            "too-many-requests",
            f"tenant {tenant!r} sends more than {self._rate:g} requests a second; nothing was "
            "done. Follow a run by its events or by `Prefer: wait=60` rather than by asking often; "
            "the setting http.rate allows more",
            headers={"Retry-After": str(max(1, math.ceil(wait)))},
        )
