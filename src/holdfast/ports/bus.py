"""The bus: messages from and to other systems. A doorbell, never the truth."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from msgspec import Struct, field


class Message(Struct, frozen=True):
    """Bytes and attributes. `id` names the message; every delivery of it carries the same id."""

    id: str
    body: bytes
    attributes: Mapping[str, str] = field(default_factory=dict)


class Delivery(Protocol):
    """One arrival of a message. Exactly one of `ack` and `nack` ends it; a later call does
    nothing."""

    message: Message
    attempt: int
    """Counted from 1, for this subscription."""

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


class Bus(Protocol):
    """Publish and subscribe, at least once.

    Who retries: the caller. `publish` returns when the message is as durable as the bus makes it;
    publishing the same id again may deliver it again. A delivery that is neither acked nor nacked
    comes again. Errors: `Transient`."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def publish(self, topic: str, message: Message) -> None: ...

    def subscribe(
        self, topic: str, group: str, *, where: Mapping[str, str | None] | None = None
    ) -> Deliveries:
        """Deliveries of one subscription. Members of a group share the work; each group gets every
        message.

        `where` filters by attributes: a value that must be equal, or None for an attribute that
        must be absent. A subscription receives what is published once it has `begun`. Closing it
        returns what is not acknowledged."""
        ...
