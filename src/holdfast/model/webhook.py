"""Webhooks: events posted to other people's endpoints, as Standard Webhooks 1.0 describes it.

A delivery has the id of its event, so that every copy of it is recognised, and is signed with a
secret of its endpoint. Secrets are derived from one key of the deployment, so that no store holds
any."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.model.event import Event

SECRET_PREFIX = "whsec_"  # noqa: S105 the beginning of every secret is public
MAX_BODY = 20_000
"""Bytes: what is larger leaves as a notice without data; whoever gets it asks for the run."""
RETRY_DELAYS = (5.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 50400.0, 72000.0, 86400.0)
"""Seconds before each further try; then a delivery has failed."""
JITTER = 0.1
"""Of a delay, more or less."""
GONE = 410
THROTTLED = (429, 502, 503, 504)


class Endpoint(Struct, frozen=True, omit_defaults=True):
    """Who is told, and of what."""

    id: str
    url: str
    created: float
    tenant: str | None = None
    """Whose events; None: everybody's, which only an operator can ask for."""
    events: tuple[str, ...] = ()
    """Types of events; none: all."""
    generation: int = 1
    """Of its secret: rises when it is rotated."""
    overlap_until: float = 0.0
    """Until then the previous secret signs, too."""
    disabled: str = ""
    """Why nothing is delivered to it any more."""

    def concerns(self, event: Event) -> bool:
        is_ours = self.tenant is None or event.tenant == self.tenant
        return is_ours and (not self.events or event.type in self.events)

    def secrets(self, key: str, now: float) -> list[str]:
        """Those that sign now, the newest first."""
        generations = [self.generation]
        if self.generation > 1 and now < self.overlap_until:
            generations.append(self.generation - 1)
        return [endpoint_secret(key, self.id, generation) for generation in generations]


class Attempt(Struct, frozen=True, omit_defaults=True):
    """One try to deliver."""

    at: float
    status: int | None = None
    """What the endpoint answered; None if it did not."""
    error: str = ""
    duration_ms: int = 0


class Delivery(Struct, frozen=True, omit_defaults=True):
    """An event on its way to an endpoint, with every try."""

    endpoint: str
    event: str
    type: str
    body: str
    state: str = "waiting"
    """waiting, delivered or failed."""
    attempts: tuple[Attempt, ...] = ()
    due: float | None = None
    """When it is tried next, by the store's clock."""


def endpoint_secret(key: str, endpoint: str, generation: int) -> str:
    """What an endpoint's deliveries are signed with, as its owner gets it."""
    derived = hmac.digest(key.encode(), f"{endpoint}/{generation}".encode(), sha256)
    return SECRET_PREFIX + b64encode(derived).decode()


def signature(secrets: list[str], id: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature`: one signature for each secret."""
    content = f"{id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{_sign(secret, content)}" for secret in secrets)


def _sign(secret: str, content: bytes) -> str:
    key = b64decode(secret.removeprefix(SECRET_PREFIX))
    return b64encode(hmac.digest(key, content, sha256)).decode()


def headers(endpoint: Endpoint, key: str, delivery: Delivery, now: float) -> dict[str, str]:
    body = delivery.body.encode()
    return {
        "content-type": "application/cloudevents+json",
        "user-agent": "holdfast-webhooks",
        "webhook-id": delivery.event,
        "webhook-timestamp": str(int(now)),
        "webhook-signature": signature(endpoint.secrets(key, now), delivery.event, int(now), body),
    }


def event_body(attributes: dict[str, str], data: Any) -> str:
    """A structured CloudEvent, with `timestamp` as Standard Webhooks wants it. `attributes` are
    those of the binary mode."""
    event = {
        name.removeprefix("ce-"): value
        for name, value in attributes.items()
        if name.startswith("ce-")
    }
    event |= {"timestamp": attributes["ce-time"], "datacontenttype": "application/json"}
    body = msgspec.json.encode({**event, "data": data})
    if len(body) > MAX_BODY:
        body = msgspec.json.encode({**event, "data": {"omitted": len(body)}})
    return body.decode()


def is_delivered(attempt: Attempt) -> bool:
    return attempt.status is not None and 200 <= attempt.status < 300


def retry_delay(attempts: int, retry_after: float | None, chance: float) -> float | None:
    """Seconds until the next try after so many; None: there is none. `chance` is a random number
    from 0 to 1, so that many deliveries do not come back at once."""
    if attempts > len(RETRY_DELAYS):
        return None
    delay = RETRY_DELAYS[attempts - 1] * (1 + JITTER * (2 * chance - 1))
    return max(delay, retry_after or 0.0)
