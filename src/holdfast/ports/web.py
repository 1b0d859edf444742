"""Calling addresses that other people have given us."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct


class WebResponse(Struct, frozen=True):
    """What a server said. Header names are in lower case; of a long body only the beginning is
    there."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Web(Protocol):
    """One call to a public address.

    Who may call: any task of the event loop that it was made in; calls may overlap.
    How long a call may block: `timeout` seconds.
    Who retries: the caller, never the adapter. Redirects are not followed.
    Errors: `Transient` if there was no whole answer, `InvalidInput` for an address that may not be
    called. Every answer is an answer, whatever its status."""

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> WebResponse: ...

    async def close(self) -> None: ...
