"""Requests to Pub/Sub: one gRPC channel per event loop, each request with a timeout, none retried
here, and errors in our own words.

The asynchronous clients must be made inside the loop that they are used in: made outside of one
they may hang."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import grpc
from google.api_core import exceptions as google_errors
from google.auth.exceptions import GoogleAuthError
from google.pubsub_v1 import PublisherAsyncClient, SubscriberAsyncClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcAsyncIOTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcAsyncIOTransport

from holdfast.adapters.google_credentials import ENCODED, load_credentials
from holdfast.adapters.pubsub.address import Address
from holdfast.errors import ConfigurationError, HoldfastError, NotFound, Permanent, Transient

OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 30_000),
    # A server that is back is noticed within seconds, as the outbox has to drain then.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
]

Method = Callable[..., Awaitable[Any]]


class Clients(NamedTuple):
    """The two halves of the API, on one channel."""

    publisher: PublisherAsyncClient
    subscriber: SubscriberAsyncClient
    channel: grpc.aio.Channel


class Client:
    """Calls methods of the API in whatever loop it is used."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Clients] = (
            weakref.WeakKeyDictionary()
        )

    def here(self) -> Clients:
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            self._by_loop[loop] = self._make()
        return self._by_loop[loop]

    def _make(self) -> Clients:
        channel = self._channel()
        return Clients(
            PublisherAsyncClient(transport=PublisherGrpcAsyncIOTransport(channel=channel)),
            SubscriberAsyncClient(transport=SubscriberGrpcAsyncIOTransport(channel=channel)),
            channel,
        )

    def _channel(self) -> grpc.aio.Channel:
        if self.address.emulator:
            return grpc.aio.insecure_channel(self.address.emulator, options=OPTIONS)
        return PublisherGrpcAsyncIOTransport.create_channel(
            self.address.endpoint, credentials=load_credentials(ENCODED), options=OPTIONS
        )

    async def close(self) -> None:
        """End the channel of this loop."""
        clients = self._by_loop.pop(asyncio.get_running_loop(), None)
        if clients is not None:
            await clients.channel.close()

    async def call(self, method: Method, *, timeout: float | None = None, **request: Any) -> Any:
        """One request. Raises NotFound, Permanent, ConfigurationError or Transient."""
        limit = timeout or self.address.timeout
        try:
            return await method(request=request, retry=None, timeout=limit)
        except (google_errors.GoogleAPICallError, GoogleAuthError) as error:
            raise explain(error, self.address) from error


def explain(error: Exception, address: Address) -> HoldfastError:
    """What a failed request means for whoever sent it."""
    text = f"{address}: {error}"
    match error:
        case google_errors.NotFound():
            return NotFound(text)
        case google_errors.AlreadyExists():
            return AlreadyThere(text)
        case google_errors.InvalidArgument() | google_errors.OutOfRange():
            return Permanent(text)
        case google_errors.PermissionDenied() | google_errors.Unauthenticated():
            return ConfigurationError(
                f"{text}; give this service account roles/pubsub.publisher and "
                "roles/pubsub.subscriber, or run `holdfast setup pubsub` as somebody who may "
                "create topics and subscriptions"
            )
    return Transient(text)


class AlreadyThere(Permanent):
    """Somebody else has created it by now."""
