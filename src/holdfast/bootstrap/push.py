"""What the settings say about pushes: whose are believed, and what becomes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.bootstrap.urls import not_installed
from holdfast.errors import ConfigurationError
from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.adapters.pubsub.tokens import TokenVerifier

ANYBODY = ("none",)
"""The value of `push.service_account` with which every push is accepted."""


def has_push(settings: Settings) -> bool:
    """Whether messages are pushed to this deployment, so that nobody pulls them."""
    return settings.push.endpoint is not None or bool(settings.push.service_account)


def make_verifier(settings: Settings) -> TokenVerifier | None:
    """What looks at the tokens of pushes; None: every push is believed. Raises
    ConfigurationError."""
    push = settings.push
    if not push.service_account:
        raise ConfigurationError(
            "push.endpoint is set, and push.service_account is not: name the service account whose "
            "pushes are believed, or none for an emulator"
        )
    if push.service_account == ANYBODY:
        return None
    audience = push.audience or push.endpoint
    if audience is None:
        raise ConfigurationError(
            "push.service_account is set, and push.endpoint is not: name the URL that Pub/Sub "
            "pushes to, which its tokens are made for, or push.audience"
        )
    try:
        from holdfast.adapters.pubsub.signing_keys import SigningKeys
        from holdfast.adapters.pubsub.tokens import TokenVerifier
    except ImportError as error:
        raise not_installed(push.endpoint or "push.service_account", "pubsub") from error
    return TokenVerifier(SigningKeys(push.certificates), audience, push.service_account)
