"""What a store answers to commands, where a plain value does not say it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Stale(Struct, frozen=True):
    """The fence refused the command: the writer no longer holds the lease."""


STALE: Final = Stale()


class Refused(Struct, frozen=True):
    """The run is in a state that does not allow the command. `state` is None when there is no such
    run."""

    state: str | None
    run: str | None = None


class Submitted(Struct, frozen=True, gc=False):
    """The run that a submission became, or that stands in its place."""

    run: str
    created: bool
    state: str
    conflict: bool = False


class Claimed(Struct, frozen=True, array_like=True, gc=False):
    """A leased run: what the worker needs to go on with it."""

    run: str
    tenant: str
    pipeline: str
    lane: str
    epoch: int
    attempt: int
    attempt_limit: int
    input: str
    progress: str
    """JSON of `Progress`."""
    resumed: bool
    """Whether checkpoints may exist: it was claimed before, or takes over results of another
    run."""
    fingerprint: str
    """What its input must hash to."""


class Acquired(Struct, frozen=True, gc=False):
    """The lock is held under this epoch."""

    epoch: int


class Held(Struct, frozen=True):
    """Somebody else holds the lock, for so many seconds more."""

    owner: str
    remaining: float
    epoch: int


class Stored(Struct, frozen=True):
    """A record was written at `now`, the store's time."""

    version: str
    now: float


class Changed(Struct, frozen=True):
    """A record was not written: its version is another one, or it is gone (None)."""

    version: str | None
