"""A lane is a queue with an order: `parallel`, or `fifo` with one leader and strict order."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from holdfast.errors import DefinitionError

Order = Literal["parallel", "fifo"]
HeadPolicy = Literal["block", "skip", "dead-letter"]

LANE_LOCK = "lane:"
"""What the locks of lanes' leaders begin with; the rest is the lane's name."""


class Lane(Struct, frozen=True):
    """`head` says what a fifo lane does when the run at its head fails for good.

    `block`: nothing overtakes it; the lane waits until somebody resumes the run or discards its
    dead letter. `skip`: the lane goes on, the failed run leaves no dead letter. `dead-letter`: the
    lane goes on, the failed run is kept as a dead letter."""

    name: str = "default"
    order: Order = "parallel"
    head: HeadPolicy = "dead-letter"

    def __post_init__(self) -> None:
        if self.order not in ("parallel", "fifo"):
            raise DefinitionError(
                f"lane {self.name!r}: order {self.order!r} is unknown; use 'parallel' or 'fifo'"
            )
        if self.head not in ("block", "skip", "dead-letter"):
            raise DefinitionError(
                f"lane {self.name!r}: head policy {self.head!r} is unknown; use 'block', 'skip' or "
                "'dead-letter'"
            )

    @property
    def leader_lock(self) -> str:
        """The lock whose epoch is the term of this lane's leader."""
        return f"{LANE_LOCK}{self.name}"


DEFAULT_LANE = Lane()
