"""A holder's side of a lease: trusted for a while, unless it is renewed, and then lost for good."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.errors import LeaseLost
from holdfast.model.clock import Clock
from holdfast.model.lease import LeaseTimes


class Lease:
    """The right to one run (`subject` = run id) or lock. `on_lost` is called once, from the
    keeper's thread. `times` are those of its keeper, unless it has times of its own."""

    __slots__ = (
        "_clock",
        "_on_lost",
        "epoch",
        "lost",
        "renewed",
        "subject",
        "times",
        "token",
        "trusted_until",
    )

    def __init__(
        self,
        subject: str,
        epoch: int,
        trusted_until: float,
        clock: Clock,
        on_lost: Callable[[Lease], None],
        token: str = "",
        times: LeaseTimes | None = None,
    ) -> None:
        self.subject = subject
        self.epoch = epoch
        self.token = token
        self.trusted_until = trusted_until
        self.times = times
        self.renewed = clock.monotonic()
        """When its last renewal was requested."""
        self.lost = False
        self._clock = clock
        self._on_lost = on_lost

    @property
    def trusted(self) -> bool:
        return not self.lost and self._clock.monotonic() < self.trusted_until

    def check(self) -> None:
        """Raise LeaseLost unless the lease can be trusted now."""
        if self.lost or self._clock.monotonic() >= self.trusted_until:
            raise LeaseLost(f"the lease on {self.subject} (epoch {self.epoch}) is no longer ours")

    def extend(self, trusted_until: float) -> None:
        self.trusted_until = max(self.trusted_until, trusted_until)

    def forfeit(self) -> None:
        """The store refused a write: whoever learns it that way needs no call."""
        self.lost = True

    def lose(self) -> None:
        if not self.lost:
            self.lost = True
            self._on_lost(self)
