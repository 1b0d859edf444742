"""A clock that moves only when a test says so."""

from __future__ import annotations


class ManualClock:
    """Both clocks of `holdfast.model.clock.Clock`. `jump_wall` is what NTP or an operator does to a
    host."""

    def __init__(self, start: float = 1_700_000_000.0, monotonic: float = 1_000.0) -> None:
        # The two are far from each other and from zero, so that mixing them up does not go
        # unnoticed.
        self._now = start
        self._monotonic = monotonic

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        if seconds < 0:
            raise ValueError("time does not go back; jump_wall sets the wall clock back")
        self._now += seconds
        self._monotonic += seconds

    def advance_to(self, monotonic: float) -> None:
        """Let time pass until exactly this moment: adding a difference could miss it by a rounding
        error."""
        if monotonic > self._monotonic:
            self._now += monotonic - self._monotonic
            self._monotonic = monotonic

    def jump_wall(self, seconds: float) -> None:
        """Set the wall clock forward or back. No time passes."""
        self._now += seconds
