"""A tenant and its quotas."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import fields

from holdfast.errors import InvalidInput
from holdfast.model.limits import whole

DEFAULT_TENANT = "default"
"""Whose runs those of a program are that names no tenant. It needs not be created, and has no
quotas."""
MAX_QUOTA = 1_000_000_000


class Quotas(Struct, frozen=True):
    """How much a tenant may use; None: as much as there is.

    `running` is held by the claim: what is above it stays queued. The others are checked before a
    run is accepted: what is above them is refused, with the time after which it is worth while to
    try again. Days and months are those of UTC, by the store's clock."""

    running: int | None = 5
    """Runs that are executed at once."""
    per_minute: int | None = 50
    """Runs accepted in any 60 seconds."""
    queued: int | None = 1000
    """Runs that wait."""
    per_day: int | None = None
    per_month: int | None = None


class Tenant(Struct, frozen=True):
    """Made by `holdfast tenants create`. `created` is the store's time."""

    name: str
    created: float
    quotas: Quotas = Quotas()
    enabled: bool = True
    """A tenant that is not enabled submits nothing, and its keys are refused."""


QUOTA_NAMES = tuple(field.name for field in fields(Quotas))


def check_quotas(quotas: Quotas) -> Quotas:
    """Raises InvalidInput for a quota that is no whole number from 0."""
    for name in QUOTA_NAMES:
        if (value := getattr(quotas, name)) is not None:
            whole(f"quota {name}", value, 0, MAX_QUOTA)
    if quotas.running == 0:
        raise InvalidInput(
            "a quota of 0 running runs would keep accepted runs waiting for ever: disable the "
            "tenant instead"
        )
    return quotas
