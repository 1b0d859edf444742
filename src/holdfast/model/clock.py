"""The two clocks, and which question each may answer.

`now()` is wall time: for people, delays and retention. It may jump, so no promise rests on it.
`monotonic()` is host-wide and never goes back: leases and deadlines are measured with it.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds since some point shared by all processes of this host; never decreases while it
        is up."""
        ...


class SystemClock:
    """The host's own clocks, called directly: they are read some thirty times per run."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
