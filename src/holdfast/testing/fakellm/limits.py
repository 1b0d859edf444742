"""A real rate limit: so many requests a second, refused with the time to wait."""

from __future__ import annotations


class RateLimit:
    """A bucket that holds one second's worth of requests."""

    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._left = max(1.0, per_second)
        self._seen: float | None = None

    def refused(self, now: float) -> float | None:
        """Seconds to wait, or None if the request may pass."""
        elapsed = now - self._seen if self._seen is not None else 0.0
        self._seen = now
        self._left = min(max(1.0, self._rate), self._left + elapsed * self._rate)
        if self._left >= 1:
            self._left -= 1
            return None
        return (1 - self._left) / self._rate
