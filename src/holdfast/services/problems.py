"""Errors on their way over HTTP: the status, and the code by which a client knows them again
(RFC 9457)."""

from __future__ import annotations

from typing import NamedTuple

from holdfast import errors

TYPE = "urn:holdfast:problem:"
"""What the `type` of a problem begins with; its code follows."""


class Kind(NamedTuple):
    """A kind of problem."""

    code: str
    status: int
    title: str
    error: type[Exception]


KINDS: tuple[Kind, ...] = (
    Kind("unknown-pipeline", 404, "There is no such pipeline", errors.UnknownPipeline),
    Kind("not-found", 404, "There is no such thing", errors.NotFound),
    Kind("key-reused", 422, "The idempotency key belongs to other work", errors.KeyReused),
    Kind("forbidden", 403, "The API key does not allow this", errors.Forbidden),
    Kind("conflict", 409, "It contradicts what is stored", errors.Conflict),
    Kind("invalid-input", 422, "The request is not valid", errors.InvalidInput),
    Kind("run-failed", 409, "The run failed", errors.RunFailed),
    Kind("run-cancelled", 409, "The run was cancelled", errors.RunCancelled),
    Kind("not-ended", 409, "The run has not ended", errors.StillRunning),
    Kind("not-configured", 409, "The service is not set up for this", errors.ConfigurationError),
    Kind("quota-exceeded", 429, "A quota is used up", errors.QuotaExceeded),
    Kind("store-unavailable", 503, "The store is out of reach", errors.StoreUnavailable),
    Kind("unavailable", 503, "It may work later", errors.Transient),
    Kind("damaged", 500, "What is stored is damaged", errors.Damaged),
    Kind("internal-error", 500, "Something is wrong with the service", errors.HoldfastError),
)
"""The first one that an error is an instance of is its kind; the last one is for all others."""

UNKNOWN = KINDS[-1]
BY_CODE = {kind.code: kind for kind in KINDS}


def kind_of(error: BaseException) -> Kind:
    return next((kind for kind in KINDS if isinstance(error, kind.error)), UNKNOWN)
