"""How the leader of a fifo lane holds its right: under which name it is shown, how long it lasts
and how often it is renewed.

The right itself is always the lane's own lock (`Lane.leader_lock`): two processes that disagree
about the key or the times still have one leader between them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from holdfast.errors import ConfigurationError
from holdfast.model.lane import LANE_LOCK
from holdfast.model.lease import LeaseTimes


class Leadership(Struct, frozen=True):
    """What is chosen for one lane. None: as for all lanes, or as for every other lease."""

    key: str | None = None
    ttl: float | None = None
    renew: float | None = None

    def over(self, other: Leadership) -> Leadership:
        """This choice, and the other one where this leaves something open."""
        return Leadership(
            self.key if self.key is not None else other.key,
            self.ttl if self.ttl is not None else other.ttl,
            self.renew if self.renew is not None else other.renew,
        )

    def times(self, lane: str, lease: LeaseTimes) -> LeaseTimes:
        """Times of the lock. Raises ConfigurationError when it would not be renewed in time."""
        ttl = self.ttl if self.ttl is not None else lease.ttl
        renew = self.renew if self.renew is not None else min(lease.renew, ttl / 3)
        margin = min(lease.margin, ttl / 6)
        if not 0 < renew < ttl - margin:
            raise ConfigurationError(
                f"lane {lane!r}: leader.renew ({renew:g} s) must be less than leader.ttl less a "
                f"margin ({ttl - margin:g} s): renew about every third of the ttl"
            )
        return LeaseTimes(ttl, renew, margin, lease.sweep)


class Leaders(Struct, frozen=True):
    """What is chosen for all fifo lanes, and for single ones."""

    key: str | None = None
    ttl: float | None = None
    renew: float | None = None
    lanes: Mapping[str, Leadership] = {}

    def of(self, lane: str) -> Leadership:
        every = Leadership(self.key, self.ttl, self.renew)
        return self.lanes.get(lane, Leadership()).over(every)

    def key_of(self, lane: str) -> str:
        """What the leadership of a lane is called where people look."""
        key = self.of(lane).key
        return f"{LANE_LOCK}{lane}" if key is None else key.replace("{lane}", lane)
