"""Leases: a time-bounded right, a fencing number, and how long it may be trusted without asking.

The store's clock decides when a lease has ended. The holder measures from the moment it *sent* the
request, so its own deadline is always the earlier one:

    trusted_until = request start + ttl − margin

After that moment the holder neither works nor writes, even if the store might still accept it.
"""

from __future__ import annotations

from msgspec import Struct

from holdfast.errors import ConfigurationError
from holdfast.model.duration import check_seconds


class LeaseTimes(Struct, frozen=True):
    """How long leases last and how often they are renewed, in seconds."""

    ttl: float = 30.0
    renew: float = 10.0
    margin: float = 5.0
    sweep: float = 5.0

    def __post_init__(self) -> None:
        check_seconds(self, "ttl", "renew", "margin", "sweep")
        if self.margin <= 0 or self.sweep <= 0:
            raise ConfigurationError(
                "lease.margin and lease.sweep must be above 0: 5 s is a good value for both"
            )
        if not 0 < self.renew < self.ttl - self.margin:
            raise ConfigurationError(
                f"lease.renew ({self.renew:g} s) must be less than lease.ttl − lease.margin "
                f"({self.ttl - self.margin:g} s): renew about every third of the ttl"
            )

    def trusted_until(self, request_start: float) -> float:
        return request_start + self.ttl - self.margin


class LockInfo(Struct, frozen=True):
    """A lock as the store knows it. The owner's token is a secret and never leaves the store."""

    name: str
    epoch: int
    owner: str | None
    acquired: float | None
    remaining: float
