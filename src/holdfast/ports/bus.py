"""The bus: messages from and to other systems. It notifies; the store is the truth."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from msgspec import Struct, field

from holdfast.errors import ConfigurationError
from holdfast.model.filters import EVERYTHING, Filter

MOST = 16
"""Deliveries that a member holds at once unless it says otherwise."""


class Message(Struct, frozen=True):
    """Bytes and attributes. `id` names the message; every delivery of it carries the same id."""

    id: str
    body: bytes
    attributes: Mapping[str, str] = field(default_factory=dict)
    ordering_key: str = ""
    """Messages of one key are delivered in the order in which they were published, where the bus
    can do that; everywhere it arrives with the message."""


class Delivery(Protocol):
    """One arrival of a message. Exactly one of `ack` and `nack` ends it; a later call does
    nothing."""

    message: Message
    attempt: int
    """Counted from 1, for this subscription; where the bus does not count, those that this process
    has seen."""

    async def ack(self) -> None:
        """It will not come again."""
        ...

    async def nack(self, delay: float = 0.0) -> None:
        """It comes again, not before `delay` seconds have passed."""
        ...


class Deliveries(Protocol):
    """A subscription: iterate over it, and close it."""

    async def begun(self) -> None:
        """Return when nothing that is published from here on can be missed."""
        ...

    def __aiter__(self) -> AsyncIterator[Delivery]: ...

    async def __anext__(self) -> Delivery: ...

    async def aclose(self) -> None: ...


class Publisher(Protocol):
    """Takes messages on their way. See `Bus`; what refuses a message for good raises
    `Permanent`."""

    async def publish(self, topic: str, message: Message) -> None: ...


class Bus(Publisher, Protocol):
    """Publish and subscribe, at least once.

    `max_body` is how many bytes the body of a message may have; None: as many as fit.

    Who retries: the caller. `publish` returns when the message is as durable as the bus makes it;
    publishing the same id again may deliver it again. A delivery that is neither acked nor nacked
    comes again. Errors: `Transient`."""

    max_body: int | None

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def subscribe(
        self, topic: str, group: str, *, where: Filter = EVERYTHING, most: int = MOST
    ) -> Deliveries:
        """Deliveries of one subscription. Members of a group share the work; each group gets every
        message.

        `where` filters by attributes; what it does not want is acknowledged unseen. Members of a
        group share one filter: another one raises `ConfigurationError`, from here or from `begun`.
        A member takes at most `most` messages at once; a bus may hold back further ones until
        some of these have ended.
        A subscription receives what is published once it has `begun`. Closing it returns what is
        not acknowledged."""
        ...


def other_filter(topic: str, group: str, known: str, given: Filter) -> ConfigurationError:
    """What `subscribe` raises for a group that has another filter."""
    return ConfigurationError(
        f"group {group!r} of topic {topic!r} has the filter {known!r}, not {given.text!r}: members "
        "of a group share one filter, which does not change; use another group"
    )
