"""When to try again: exponential backoff with jitter, and never sooner than the other side
asked."""

from __future__ import annotations

import random

from msgspec import Struct

from holdfast.errors import ConfigurationError, Fix, Permanent, Stop, Transient
from holdfast.model.duration import LONGEST, Duration, seconds

MAX_FACTOR = 1000


class Retry(Struct, frozen=True):
    """Delays between attempts: `base · factorⁿ`, at most `maximum`, each multiplied by a random 0.5
    … 1."""

    base: float = 1.0
    factor: float = 2.0
    maximum: float = 60.0

    def __post_init__(self) -> None:
        if not (0 <= self.base <= LONGEST and 0 <= self.maximum <= LONGEST):
            raise ConfigurationError(
                f"a retry waits from 0 s to a hundred years: base={self.base}, "
                f"maximum={self.maximum}"
            )
        if not 0 <= self.factor <= MAX_FACTOR:
            raise ConfigurationError(
                f"a retry's delays grow by a factor of at most {MAX_FACTOR}: factor={self.factor}"
            )

    @classmethod
    def of(cls, base: Duration = 1.0, factor: float = 2.0, maximum: Duration = 60.0) -> Retry:
        return cls(seconds(base), factor, seconds(maximum))

    def delay(self, attempt: int, error: BaseException | None = None) -> float:
        """Seconds to wait after the given attempt (counted from 1) ended with `error`."""
        backoff = min(
            self.maximum, self.base * self.factor ** min(attempt - 1, 64)
        ) * random.uniform(0.5, 1.0)
        retry_after = error.retry_after if isinstance(error, Transient) else None
        return max(backoff, retry_after or 0.0)


def is_retryable(error: BaseException) -> bool:
    """Whether another attempt may help. Unknown errors may pass by themselves, so they are tried
    again."""
    return isinstance(error, Exception) and not isinstance(error, Permanent | Fix | Stop)
