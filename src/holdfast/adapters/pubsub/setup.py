"""Topics and subscriptions as they should be: finds what is missing or differs, and corrects it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

from google.pubsub_v1.types import Subscription
from msgspec import Struct

from holdfast.adapters.pubsub import address as addresses
from holdfast.adapters.pubsub.address import Address, last_part
from holdfast.adapters.pubsub.client import AlreadyThere, Client
from holdfast.errors import NotFound
from holdfast.model.topology import SubscriptionPlan, Topology

Status = Literal["fine", "missing", "differs", "created", "changed"]
FIXED = ("topic", "filter", "ordering")
"""Properties of a subscription that can't be changed."""
NEVER = "never"
DAY = 86_400


class Difference(Struct, frozen=True):
    """One figure that is not as planned."""

    what: str
    is_now: str
    planned: str

    @property
    def is_fixed(self) -> bool:
        return self.what in FIXED

    def __str__(self) -> str:
        return f"{self.what} is {self.is_now or 'none'}, planned {self.planned or 'none'}"


class CheckedResource(Struct, frozen=True):
    """A topic or a subscription, and the result of its check."""

    kind: Literal["topic", "subscription"]
    name: str
    status: Status
    differences: tuple[Difference, ...] = ()

    @property
    def is_right(self) -> bool:
        return self.status in ("fine", "created") or (
            self.status == "changed" and not any(d.is_fixed for d in self.differences)
        )


async def check(
    url: str, topology: Topology, change: bool = False
) -> AsyncIterator[CheckedResource]:
    """Look at everything; with `change`, create what is missing and change what can be changed."""
    client = Client(addresses.parse(url))
    try:
        for topic in topology.topics:
            yield await _topic(client, topic, change)
        for plan in topology.subscriptions:
            yield await _subscription(client, plan, change)
    finally:
        await client.close()


async def _topic(client: Client, name: str, change: bool) -> CheckedResource:
    publisher, path = client.here().publisher, client.address.topic(name)
    try:
        await client.call(publisher.get_topic, topic=path)
    except NotFound:
        if not change:
            return CheckedResource("topic", name, "missing")
    else:
        return CheckedResource("topic", name, "fine")
    try:
        await client.call(publisher.create_topic, name=path)
    except AlreadyThere:
        return CheckedResource("topic", name, "fine")
    return CheckedResource("topic", name, "created")


async def _subscription(client: Client, plan: SubscriptionPlan, change: bool) -> CheckedResource:
    subscriber, path = client.here().subscriber, client.address.subscription(plan.name)
    try:
        current = await client.call(subscriber.get_subscription, subscription=path)
    except NotFound:
        if not change:
            return CheckedResource("subscription", plan.name, "missing")
        return await _create(client, plan)
    differences = _differences(figures(current), planned_figures(plan))
    if not differences:
        return CheckedResource("subscription", plan.name, "fine")
    if change:
        await _update(client, plan, differences)
    return CheckedResource(
        "subscription", plan.name, "changed" if change else "differs", differences
    )


async def _create(client: Client, plan: SubscriptionPlan) -> CheckedResource:
    create = client.here().subscriber.create_subscription
    try:
        await client.call(create, **subscription_settings(client.address, plan))
    except AlreadyThere:  # a worker was faster, with figures of its own
        return await _subscription(client, plan, change=True)
    return CheckedResource("subscription", plan.name, "created")


def _differences(current: Mapping[str, str], planned: Mapping[str, str]) -> tuple[Difference, ...]:
    return tuple(
        Difference(name, current[name], planned[name])
        for name in planned
        if current[name] != planned[name]
    )


PATHS = {
    "ack deadline": ("ack_deadline_seconds",),
    "retry": ("retry_policy",),
    "dead letters": ("dead_letter_policy",),
    "push": ("push_config",),
    "expires": ("expiration_policy",),
}


async def _update(
    client: Client, plan: SubscriptionPlan, differences: tuple[Difference, ...]
) -> None:
    paths = [path for d in differences if not d.is_fixed for path in PATHS[d.what]]
    if paths:
        update = client.here().subscriber.update_subscription
        subscription = subscription_settings(client.address, plan)
        await client.call(update, subscription=subscription, update_mask={"paths": paths})


# --- a subscription in words ----------------------------------------------------------------------


def planned_figures(plan: SubscriptionPlan) -> dict[str, str]:
    push = _push(plan.push_endpoint, plan.push_service_account, plan.push_audience)
    dead = f"{plan.dead_letter_topic} after {plan.max_delivery_attempts}"
    return {
        "topic": plan.topic,
        "filter": plan.filter,
        "ordering": "on" if plan.ordered else "off",
        "ack deadline": f"{plan.ack_deadline} s",
        "retry": f"{plan.minimum_backoff} to {plan.maximum_backoff} s",
        "dead letters": dead if plan.dead_letter_topic else "",
        "push": push,
        "expires": NEVER,
    }


def figures(known: Subscription) -> dict[str, str]:
    """Of a subscription as it is, in the words of `planned_figures`."""
    pb = Subscription.pb(known)
    retry, dead, push = pb.retry_policy, pb.dead_letter_policy, pb.push_config
    token, life = push.oidc_token, pb.expiration_policy.ttl.seconds
    backoff = (retry.minimum_backoff.seconds, retry.maximum_backoff.seconds)
    letters = f"{last_part(dead.dead_letter_topic)} after {dead.max_delivery_attempts}"
    return {
        "topic": last_part(pb.topic),
        "filter": pb.filter,
        "ordering": "on" if pb.enable_message_ordering else "off",
        "ack deadline": f"{pb.ack_deadline_seconds} s",
        "retry": f"{backoff[0]} to {backoff[1]} s" if pb.HasField("retry_policy") else "",
        "dead letters": letters if dead.dead_letter_topic else "",
        "push": _push(push.push_endpoint, token.service_account_email, token.audience),
        "expires": f"after {life // DAY} days without use" if life else NEVER,
    }


def _push(endpoint: str, account: str, audience: str) -> str:
    if not endpoint:
        return ""
    return f"{endpoint} as {account} for {audience}" if account else f"{endpoint} as nobody"


def subscription_settings(address: Address, plan: SubscriptionPlan) -> dict[str, Any]:
    """A subscription as the API takes it. It does not expire: messages wait for a worker that may
    be away for longer than Pub/Sub's 31 days."""
    request: dict[str, Any] = {
        "name": address.subscription(plan.name),
        "topic": address.topic(plan.topic),
        "ack_deadline_seconds": plan.ack_deadline,
        "enable_message_ordering": plan.ordered,
        "filter": plan.filter,
        "retry_policy": {
            "minimum_backoff": {"seconds": plan.minimum_backoff},
            "maximum_backoff": {"seconds": plan.maximum_backoff},
        },
        "expiration_policy": {},
    }
    if plan.dead_letter_topic:
        request["dead_letter_policy"] = {
            "dead_letter_topic": address.topic(plan.dead_letter_topic),
            "max_delivery_attempts": plan.max_delivery_attempts,
        }
    if plan.push_endpoint:
        request["push_config"] = _push_config(plan)
    return request


def _push_config(plan: SubscriptionPlan) -> dict[str, Any]:
    if not plan.push_service_account:
        return {"push_endpoint": plan.push_endpoint}
    token = {"service_account_email": plan.push_service_account, "audience": plan.push_audience}
    return {"push_endpoint": plan.push_endpoint, "oidc_token": token}
