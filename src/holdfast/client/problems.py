"""From a problem document back to the error that it was."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import (
    Conflict,
    Forbidden,
    HoldfastError,
    InvalidInput,
    KeyReused,
    QuotaExceeded,
    RunFailed,
    Transient,
)
from holdfast.services.problems import BY_CODE


def from_problem(status: int, body: bytes, retry_after: float = 0.0) -> HoldfastError:
    """The error of an answer; what is no problem document is told by its status."""
    try:
        problem = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError:
        problem = {}
    message = str(problem.get("detail") or problem.get("title") or f"the service answered {status}")
    kind = BY_CODE.get(problem.get("code", ""))
    if kind is None:
        return _by_status(status, message)
    return _made(kind.error, message, problem, retry_after)


def _made(
    kind: type[Exception], message: str, problem: dict[str, Any], retry_after: float
) -> HoldfastError:
    run_id = problem.get("run_id")
    if kind in (Conflict, KeyReused):
        return Conflict(message, run_id) if kind is Conflict else KeyReused(message, run_id)
    if kind is RunFailed:
        return RunFailed(message, run_id or "")
    if kind is QuotaExceeded:
        return QuotaExceeded(
            message,
            quota=problem.get("quota", ""),
            limit=problem.get("limit", 0),
            retry_after=retry_after,
        )
    if issubclass(kind, Transient):
        return kind(message, retry_after=retry_after or None)
    error = kind(message)
    assert isinstance(error, HoldfastError)
    return error


def _by_status(status: int, message: str) -> HoldfastError:
    if status in (401, 403):
        return Forbidden(message)
    if status == 429 or status >= 500:
        return Transient(message)
    return InvalidInput(message)
