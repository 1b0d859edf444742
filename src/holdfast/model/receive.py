"""What is received from a topic, and what becomes of it: one `[[receive]]` of the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from holdfast.errors import ConfigurationError
from holdfast.model.filters import Filter
from holdfast.model.names import MAX_LABEL, check_tenant

WHO_ASKED: Final = ("userId", "user_id", "requestId", "request_id", "trigger_by")
"""Attributes and fields of messages that become labels unless other labels are named."""
MEGABYTE: Final = 1024 * 1024


class Receive(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A topic, the pipeline whose runs its messages become, and how.

    Values are found in a message by a path: `attributes.NAME`, or names with dots between them
    into its JSON body, such as `config.firebaseDetails.userId`."""

    topic: str
    pipeline: str
    subscription: str = ""
    """Processes of the same subscription share its messages. Default: `holdfast-` and the
    pipeline."""
    filter: str = ""
    """Which messages are wanted, in the language of Pub/Sub; empty: all."""
    tenant: str = ""
    """Who the runs belong to; empty: as `tenant` of the settings says."""
    tenant_from: str = ""
    """The path of the tenant in a message, in place of a fixed one."""
    labels: dict[str, str] = {}
    """Label → path. Empty: whatever of `WHO_ASKED` a message has."""
    max_messages: int = 5
    """Messages that are accepted at once."""
    max_bytes: int = 500 * MEGABYTE
    """Their bytes, together; one message is always allowed."""
    dead_letter_topic: str = ""
    """Where copies of dead letters are published; empty: nowhere. They are kept in the store."""
    push_endpoint: str = ""
    """Where Pub/Sub pushes the messages of this subscription; empty: as `push.endpoint` says."""
    unmatched: Literal["bury", "ignore"] = "bury"
    """What becomes of messages that no subscription of the topic wants."""
    secrets: tuple[str, ...] = ()
    """Names of further fields that are secret."""

    @property
    def group(self) -> str:
        return self.subscription or f"holdfast-{self.pipeline}"

    @property
    def copies(self) -> bool:
        return bool(self.dead_letter_topic)

    @property
    def where(self) -> Filter:
        return Filter(self.filter)

    def check(self) -> None:
        """Raise ConfigurationError for what can't work."""
        for name in ("topic", "pipeline"):
            if not getattr(self, name).strip():
                raise ConfigurationError(f"[[receive]] needs a {name}")
        for name in ("max_messages", "max_bytes"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"[[receive]] {self.topic}: {name} must be at least 1")
        if self.tenant and self.tenant_from:
            raise ConfigurationError(
                f"[[receive]] {self.topic} has a tenant and tenant_from: give one of them"
            )
        if self.tenant:
            check_tenant(self.tenant)
        try:
            _ = self.where
        except ConfigurationError as error:
            raise ConfigurationError(f"[[receive]] {self.topic}: {error}") from error

    def __str__(self) -> str:
        return f"{self.topic}={self.pipeline}" + (f" ({self.filter})" if self.filter else "")


def value_at(path: str, body: Any, attributes: Mapping[str, str]) -> str | None:
    """The text or number at a path of a message; None if there is none."""
    if path.startswith("attributes."):
        return attributes.get(path.removeprefix("attributes."))
    value = body
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value)


def labels_of(receive: Receive, body: Any, attributes: Mapping[str, str]) -> dict[str, str]:
    """The labels of a message's run. What can't be a label is left out: the message counts."""
    if receive.labels:
        labels = {name: value_at(path, body, attributes) for name, path in receive.labels.items()}
    else:
        labels = {
            name: attributes.get(name) or value_at(name, body, attributes) for name in WHO_ASKED
        }
    return {
        name: value
        for name, value in labels.items()
        if value and value.isprintable() and len(value) <= MAX_LABEL
    }
