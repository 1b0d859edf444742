"""When to try again: exponential backoff with jitter, and never sooner than the other side
asked."""

from __future__ import annotations

import random

from msgspec import Struct

from holdfast.errors import Fix, Permanent, Stop, Transient
from holdfast.model.duration import Duration, seconds


class Retry(Struct, frozen=True):
    """Delays between attempts: `base · factorⁿ`, at most `maximum`, each multiplied by a random 0.5
    … 1."""

    base: float = 1.0
    factor: float = 2.0
    maximum: float = 60.0

    @classmethod
    def of(cls, base: Duration = 1.0, factor: float = 2.0, maximum: Duration = 60.0) -> Retry:
        return cls(seconds(base), factor, seconds(maximum))

    def delay(self, attempt: int, error: BaseException | None = None) -> float:
        """Seconds to wait after the given attempt (counted from 1) ended with `error`."""
        backoff = min(
            self.maximum, self.base * self.factor ** min(attempt - 1, 64)
        ) * random.uniform(0.5, 1.0)
        asked = error.retry_after if isinstance(error, Transient) else None
        return max(backoff, asked or 0.0)


def is_retryable(error: BaseException) -> bool:
    """Whether another attempt may help. Unknown errors may pass by themselves, so they are tried
    again."""
    return isinstance(error, Exception) and not isinstance(error, Permanent | Fix | Stop)
