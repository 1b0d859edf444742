"""Why a question got no answer, where the caller may want to know more than whether to try again.

Transient
├── Malformed    the answers could not be used, repairs included
└── SlowDown     the vendor asks for patience (429, 503, 529); `retry_after` says how much, if it did
Permanent
├── BadRequest   the server does not accept the request as it is
├── Declined     the model refuses to answer this question: ask about less, or leave it out
└── TooLong      question or answer is longer than the model allows: ask about less at once
"""

from __future__ import annotations

from holdfast.errors import Permanent, Transient


class Malformed(Transient):
    """The answers did not fit what was asked, repairs included."""


class SlowDown(Transient):
    """The vendor refused to work on the call now."""


class BadRequest(Permanent):
    """The server does not accept the request. `objection` is what it says about that, with what it
    points at."""

    def __init__(self, message: str, objection: str) -> None:
        super().__init__(message)
        self.objection = objection


class Declined(Permanent):
    """The model, or a filter before or after it, refused to answer."""


class TooLong(Permanent):
    """The question or its answer does not fit into the model."""
