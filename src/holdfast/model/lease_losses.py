"""What is known about leases that a run lost because the interpreter of its worker was blocked.

Whoever lost a lease writes nothing to the run. So the worker keeps a record beside it, and who
fails the run after its last attempt names the cause."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from holdfast.model.damage import unless_damaged
from holdfast.model.duration import humanise

PREFIX = "lease-losses/"

REMEDY = (
    "C code, such as a regular expression that backtracks, held the interpreter lock for longer "
    "than the lease lasts, so that nothing could renew it. Do that work in smaller pieces or in a "
    "process of its own"
)


class Blocked(Struct, frozen=True):
    """The interpreter was blocked for so many seconds. `step` is where, if that is known."""

    seconds: float
    step: str | None = None

    def __str__(self) -> str:
        where = f" in step {self.step}" if self.step else ""
        return f"the interpreter was blocked for {humanise(self.seconds)}{where}"


class LeaseLosses(Struct, frozen=True):
    """How often a run lost its lease like that, and the last time."""

    count: int
    last: Blocked


_decode = msgspec.json.Decoder(LeaseLosses).decode


def losses_in(record: str) -> LeaseLosses | None:
    """What a record says; None if it can't be read: then nothing is known."""
    return unless_damaged(_decode, record)


def record_key(run: str) -> str:
    return f"{PREFIX}{run}"
