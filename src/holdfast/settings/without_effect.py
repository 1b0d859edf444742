"""Names that other systems set and that change nothing here. None is ignored silently: each says
why, once when a worker starts and in `holdfast config show`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from holdfast.settings.fields import PREFIX
from holdfast.settings.values import Settings


class WithoutEffect(NamedTuple):
    """Names in the environment, and why they change nothing."""

    names: tuple[str, ...]
    reason: str
    is_secret: bool = False
    """Whether its value is shown nowhere."""
    with_prefix: bool = False
    """Whether they are known with our prefix, too."""
    unless: Callable[[Settings], bool] = lambda settings: False
    """When they do have an effect, by what else is set."""


NO_GOOGLE_CLOUD = "nothing here is on Google Cloud: neither bus, nor blobs, nor documents"
GOOGLE_CLOUD = ("pubsub:", "gs:", "firestore:")


def has_pubsub(settings: Settings) -> bool:
    return settings.bus.startswith("pubsub:") or settings.pubsub.project is not None


def uses_google_cloud(settings: Settings) -> bool:
    urls = (
        settings.bus,
        settings.blobs or "",
        settings.documents or "",
        settings.locks.store or "",
    )
    return has_pubsub(settings) or any(url.startswith(GOOGLE_CLOUD) for url in urls)


WITHOUT_EFFECT: tuple[WithoutEffect, ...] = (
    WithoutEffect(
        ("LOCK_TTL_SECONDS", "LOCK_EXTENSION_SECONDS"),
        "leases are short and renewed while a worker lives (lease.ttl); a long one would only make "
        "the run of a crashed worker wait longer",
        with_prefix=True,
    ),
    WithoutEffect(
        ("REDIS_PORT", "REDIS_TLS"),
        "they are parts of an address, and REDIS_HOST is not given",
    ),
    WithoutEffect(
        ("REDIS_PASSWORD",),
        "it is a part of an address, and REDIS_HOST is not given",
        is_secret=True,
    ),
    WithoutEffect(
        ("GOOGLE_CREDENTIALS_ENCODED", "FIREBASE_CREDENTIALS_ENCODED"),
        NO_GOOGLE_CLOUD,
        is_secret=True,
        unless=uses_google_cloud,
    ),
    WithoutEffect(
        ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"),
        NO_GOOGLE_CLOUD,
        unless=uses_google_cloud,
    ),
    WithoutEffect(
        ("PUBSUB_EMULATOR_HOST",),
        "the bus is not Pub/Sub",
        unless=has_pubsub,
    ),
)

REASONS: dict[str, WithoutEffect] = {
    prefix + name: entry
    for entry in WITHOUT_EFFECT
    for name in entry.names
    for prefix in (("", PREFIX) if entry.with_prefix else ("",))
}
