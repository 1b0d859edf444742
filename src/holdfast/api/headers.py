"""Headers of requests that mean something to us."""

from __future__ import annotations

import re

from starlette.requests import Request

from holdfast.api.problems import Problem

MAX_WAIT = 60.0
"""Seconds that a caller may wait for an answer."""

_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,9})\"?(?:$|[,;\s])", re.IGNORECASE)


def preferred_wait(request: Request) -> float:
    """`Prefer: wait=N` (RFC 7240), in seconds, up to `MAX_WAIT`; 0 without it."""
    match = _WAIT.search(", ".join(request.headers.getlist("prefer")))
    return min(float(match[1]), MAX_WAIT) if match else 0.0


def applied_wait(wait: float) -> dict[str, str]:
    return {"Preference-Applied": f"wait={wait:.0f}"} if wait else {}


def idempotency_key(request: Request, in_body: str | None) -> str | None:
    """The header `Idempotency-Key`, as a string in quotes or as it is; or what the body says."""
    header = request.headers.get("idempotency-key")
    if header is None:
        return in_body
    key = _as_utf8(header.strip())
    if len(key) >= 2 and key[0] == key[-1] == '"':
        key = re.sub(r'\\(["\\])', r"\1", key[1:-1])
    if in_body is not None and in_body != key:
        raise Problem(
            400, "two-keys", "the header Idempotency-Key and the body name different keys"
        )
    return key


def _as_utf8(header: str) -> str:
    """Headers arrive as Latin-1, and most that go beyond ASCII were sent as UTF-8."""
    try:
        return header.encode("latin-1").decode()
    except ValueError:
        return header
