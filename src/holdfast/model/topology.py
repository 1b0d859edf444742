"""Which topics and subscriptions a deployment needs, with their figures."""

from __future__ import annotations

from msgspec import Struct


class SubscriptionPlan(Struct, frozen=True, kw_only=True):
    """A subscription as it should be. Durations are seconds."""

    name: str
    topic: str
    ack_deadline: int = 60
    filter: str = ""
    dead_letter_topic: str = ""
    """Where a message goes that was delivered `max_delivery_attempts` times in vain; empty: it is
    delivered for as long as it is kept."""
    max_delivery_attempts: int = 5
    minimum_backoff: int = 10
    maximum_backoff: int = 600
    push_endpoint: str = ""
    """Empty: messages are pulled."""
    push_service_account: str = ""
    push_audience: str = ""
    ordered: bool = True
    """Whether messages with the same ordering key are delivered in order."""


class Topology(Struct, frozen=True):
    """All that has to be there."""

    topics: tuple[str, ...]
    subscriptions: tuple[SubscriptionPlan, ...]
