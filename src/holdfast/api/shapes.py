"""Bodies that only exist over HTTP: what is submitted, and links beside an answer."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from holdfast.model.tenant import Quotas
from holdfast.services.api_keys import OVERLAP
from holdfast.services.service import Submission
from holdfast.services.views import RunSummary


class SubmitRequest(Submission):
    """A run to submit. The header `Idempotency-Key` may carry its key as well."""

    input: Any = None
    key: str | None = None


class SubmitManyRequest(Submission):
    """Many runs to submit; `keys`, where given, has one for each input."""

    inputs: list[Any]
    keys: list[str] | None = None


class Links(Struct):
    """Where to go on."""

    self: str
    events: str
    result: str
    cancel: str


class RunAnswer(Struct, omit_defaults=True):
    """A run that was submitted; with its result if the caller has waited for it."""

    run: RunSummary
    created: bool
    links: Links
    result: Raw | UnsetType = UNSET


class Reason(Struct):
    """Why; kept with the change."""

    reason: str = ""


class ResumeRequest(Struct):
    """How many more tries; by default as many as the pipeline has."""

    attempts: int | None = None


class RerunRequest(Struct):
    """Keep the results of all steps that do not depend on this one; without one, of none."""

    from_step: str | None = None


class TenantRequest(Struct):
    """A tenant to create; quotas that are left out have their defaults."""

    name: str
    quotas: Quotas = Quotas()


class TenantChange(Struct):
    """What to change about a tenant: quotas by their names, null for no limit."""

    enabled: bool | None = None
    quotas: dict[str, int | None] = {}


class KeyRequest(Struct):
    """A key to make; `lifetime` is in seconds."""

    tenant: str
    scopes: list[str] = field(default_factory=lambda: ["submit", "read"])
    name: str = ""
    lifetime: float | None = None


class WebhookRequest(Struct):
    """An endpoint to tell, of these events; without any, of all."""

    url: str
    events: list[str] = []


class RotateRequest(Struct):
    """For how many seconds the old key still works."""

    overlap: float = OVERLAP
