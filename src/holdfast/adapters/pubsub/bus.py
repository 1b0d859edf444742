"""A bus on Google Cloud Pub/Sub: a topic is a topic, and a group is a subscription of that name.

Unary requests only: a message is acknowledged as soon as its run is durable, so that nothing has to
be kept alive meanwhile. Topics and subscriptions that are missing are created, with a warning,
where that is allowed; `holdfast setup pubsub` creates them as the settings say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from holdfast.adapters.pubsub import address as addresses
from holdfast.adapters.pubsub.address import last_part
from holdfast.adapters.pubsub.attempts import Attempts
from holdfast.adapters.pubsub.client import AlreadyThere, Client
from holdfast.adapters.pubsub.messages import MAX_BODY, to_pubsub
from holdfast.adapters.pubsub.setup import subscription_settings
from holdfast.adapters.pubsub.subscription import POLL, Subscription, received_messages
from holdfast.errors import ConfigurationError, NotFound, Transient
from holdfast.model.filters import EVERYTHING, Filter
from holdfast.model.topology import SubscriptionPlan
from holdfast.ports.bus import MOST, Message, other_filter

log = logging.getLogger("holdfast.pubsub")


class PubSubBus:
    """A `Bus` on a project, shared by any number of processes."""

    max_body = MAX_BODY

    def __init__(self, url: str) -> None:
        self.address = addresses.parse(url)
        self.closed = True
        self.client = Client(self.address)
        self._subscriptions: set[Subscription] = set()
        self._attempts: dict[str, Attempts] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Raises if the credentials are wrong. Whether Pub/Sub can be reached is not checked: a
        worker may lack the permission for any call that would tell."""
        self.client.here()
        self.closed = False

    async def close(self) -> None:
        """End all subscriptions; what they had not ended goes to other members of their groups."""
        if self.closed:
            return
        for subscription in list(self._subscriptions):
            await subscription.aclose()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self.closed = True
        await self.client.close()

    async def publish(self, topic: str, message: Message) -> None:
        content = to_pubsub(message)
        try:
            await self._publish(topic, content)
        except NotFound:
            await self._create_topic(topic)
            await self._publish(topic, content)

    async def _publish(self, topic: str, content: dict[str, Any]) -> None:
        method = self._clients().publisher.publish
        path = self.address.topic(topic)
        try:
            await self.client.call(method, topic=path, messages=[content])
        except ConfigurationError as error:
            # Not the message's fault: it is sent once the configuration is corrected.
            raise Transient(str(error)) from error

    def subscribe(
        self, topic: str, group: str, *, where: Filter = EVERYTHING, most: int = MOST
    ) -> Subscription:
        subscription = Subscription(self, topic, group, where, most)
        self._subscriptions.add(subscription)
        return subscription

    # --- for subscriptions ------------------------------------------------------------------------

    def attempts(self, group: str) -> Attempts:
        return self._attempts.setdefault(group, Attempts())

    def forget(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a background task; `close` waits for it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def pull(self, path: str, count: int, wait: float) -> list[Any]:
        method = self._clients().subscriber.pull
        try:
            response = await self.client.call(
                method, timeout=wait, subscription=path, max_messages=count
            )
        except Transient as error:
            if _is_timeout(error):
                return []
            raise
        return received_messages(response)

    async def end(self, path: str, ack_ids: list[str], again_after: int | None) -> None:
        subscriber = self._clients().subscriber
        request: dict[str, Any] = {"subscription": path, "ack_ids": ack_ids}
        if again_after is None:
            await self.client.call(subscriber.acknowledge, **request)
        else:
            await self.client.call(
                subscriber.modify_ack_deadline, ack_deadline_seconds=again_after, **request
            )

    async def ensure_subscription(self, topic: str, group: str, where: Filter) -> float:
        """Find it, or create it. Its ack deadline in seconds. Raises ConfigurationError if it is
        another one than what was asked for."""
        while True:
            try:
                return await self._subscription_deadline(topic, group, where)
            except Transient as error:
                log.warning("subscription %s: can't subscribe: %s", group, error)
                await asyncio.sleep(POLL)

    async def _subscription_deadline(self, topic: str, group: str, where: Filter) -> float:
        path = self.address.subscription(group)
        get = self._clients().subscriber.get_subscription
        try:
            current = await self.client.call(get, subscription=path)
        except NotFound:
            await self._create_topic(topic)
            current = await self._create_subscription(topic, path, where)
        if current.topic != self.address.topic(topic):
            raise ConfigurationError(
                f"subscription {group!r} belongs to topic {last_part(current.topic)!r}, not "
                f"{topic!r}: give this [[receive]] a subscription of its own"
            )
        if current.push_config.push_endpoint:
            raise ConfigurationError(
                f"subscription {group!r} pushes to {current.push_config.push_endpoint}, so that it "
                "can't be pulled: set push.endpoint and use `holdfast serve`, or run `holdfast "
                "setup pubsub` without it"
            )
        if Filter(current.filter) != where:
            raise other_filter(topic, group, current.filter, where)
        return float(current.ack_deadline_seconds)

    async def _create_topic(self, topic: str) -> None:
        create = self._clients().publisher.create_topic
        try:
            await self.client.call(create, name=self.address.topic(topic))
        except AlreadyThere:
            return
        log.warning("topic %s did not exist in %s: created", topic, self.address)

    async def _create_subscription(self, topic: str, path: str, where: Filter) -> Any:
        subscriber = self._clients().subscriber
        plan = SubscriptionPlan(
            name=last_part(path),
            topic=topic,
            ack_deadline=self.address.ack_deadline,
            filter=where.text,
        )
        try:
            created = await self.client.call(
                subscriber.create_subscription, **subscription_settings(self.address, plan)
            )
        except AlreadyThere:
            return await self.client.call(subscriber.get_subscription, subscription=path)
        log.warning(
            "subscription %s of topic %s did not exist in %s: created",
            last_part(path),
            topic,
            self.address,
        )
        return created

    def _clients(self) -> Any:
        if self.closed:
            raise Transient(f"the bus {self.address} is closed")
        return self.client.here()


def _is_timeout(error: Transient) -> bool:
    from google.api_core.exceptions import DeadlineExceeded

    return isinstance(error.__cause__, DeadlineExceeded)
