"""What a server's answer means for the client itself. The caller's errors are in
`ports.language_model`.

Transient └── RateLimited  the vendor asks callers to wait (429, 503, 529), for `retry_after` if it
says how long Permanent └── BadRequest   the server does not accept the request as it is
"""

from __future__ import annotations

from holdfast.errors import Permanent, Transient


class RateLimited(Transient):
    """The vendor refused to work on the call now."""


class BadRequest(Permanent):
    """The server does not accept the request. `objection` is what it says about that, with what it
    points at."""

    def __init__(self, message: str, objection: str) -> None:
        super().__init__(message)
        self.objection = objection
