"""Google's own client library, as other systems use it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import grpc
from google.api_core.exceptions import DeadlineExceeded
from google.cloud import pubsub_v1
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport
from tests.emulators import PubSubEmulator

TIMEOUT = 60.0


class Google:
    """A publisher and a subscriber of one project, on the emulator."""

    def __init__(self, emulator: PubSubEmulator, project: str) -> None:
        channel = grpc.insecure_channel(emulator.host)
        self.project = project
        self.publisher = pubsub_v1.PublisherClient(
            transport=PublisherGrpcTransport(channel=channel),
            publisher_options=pubsub_v1.types.PublisherOptions(enable_message_ordering=True),
        )
        self.subscriber = pubsub_v1.SubscriberClient(
            transport=SubscriberGrpcTransport(channel=channel)
        )
        self._pulled: dict[str, list[Any]] = {}

    def topic(self, name: str) -> str:
        return f"projects/{self.project}/topics/{name}"

    def subscription(self, name: str) -> str:
        return f"projects/{self.project}/subscriptions/{name}"

    def create(self, topic: str, subscription: str, **figures: Any) -> None:
        """A topic, unless it is there, and a subscription of it."""
        existing = {t.name for t in self.publisher.list_topics(project=f"projects/{self.project}")}
        if self.topic(topic) not in existing:
            self.publisher.create_topic(name=self.topic(topic))
        request = {"name": self.subscription(subscription), "topic": self.topic(topic), **figures}
        self.subscriber.create_subscription(request=request)

    def publish(
        self,
        topic: str,
        body: Any,
        attributes: Mapping[str, str] | None = None,
        ordering_key: str = "",
    ) -> str:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        future = self.publisher.publish(
            self.topic(topic), data, ordering_key=ordering_key, **(attributes or {})
        )
        return future.result(TIMEOUT)

    def pull(self, subscription: str, timeout: float = 3.0) -> list[Any]:
        """What is there now, not yet acknowledged."""
        request = {"subscription": self.subscription(subscription), "max_messages": 100}
        try:
            return list(
                self.subscriber.pull(request=request, timeout=timeout, retry=None).received_messages
            )
        except DeadlineExceeded:
            return []

    def take(self, subscription: str) -> list[Any]:
        """All messages so far, each acknowledged, copies included."""
        pulled = self._pulled.setdefault(subscription, [])
        received = self.pull(subscription)
        if received:
            path = self.subscription(subscription)
            self.subscriber.acknowledge(
                request={"subscription": path, "ack_ids": [r.ack_id for r in received]}
            )
        pulled += [r.message for r in received]
        return pulled

    def taken(self, subscription: str) -> list[Any]:
        """What was taken before."""
        return self._pulled.get(subscription, [])

    def bodies(self, subscription: str, count: int) -> list[Any]:
        """The bodies, each message id of ours once, when there are so many."""
        until = time.monotonic() + TIMEOUT
        while True:
            unique = {
                message.attributes.get("holdfast-id", message.message_id): message
                for message in self.take(subscription)
            }
            if len(unique) >= count:
                return [json.loads(message.data) for message in unique.values()]
            assert time.monotonic() < until, f"{len(unique)} of {count} in {subscription}"
