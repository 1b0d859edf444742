"""A real rate limit: so many requests a second, refused with the time to wait."""

from __future__ import annotations


class RateLimit:
    """A bucket that holds one second's worth of requests."""

    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._tokens = max(1.0, per_second)
        self._updated_at: float | None = None

    def refused(self, now: float) -> float | None:
        """Seconds to wait, or None if the request may pass."""
        elapsed = now - self._updated_at if self._updated_at is not None else 0.0
        self._updated_at = now
        self._tokens = min(max(1.0, self._rate), self._tokens + elapsed * self._rate)
        if self._tokens >= 1:
            self._tokens -= 1
            return None
        return (1 - self._tokens) / self._rate
