"""What JSON can say and PostgreSQL can't store: the character U+0000.

On its way in it becomes U+FFFF followed by `0`, and U+FFFF, which nobody should use, becomes U+FFFF
`1`; on its way out it is what it was. Both happen in the encoded batch, and only if one of the two
is in it at all."""

from __future__ import annotations

import re

_STAND_IN = "\uffff".encode()
_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")


def seal(body: bytes) -> bytes:
    """JSON without U+0000."""
    body = body.replace(_STAND_IN, _STAND_IN + b"1")
    if b"\\u0000" in body:
        body = _NUL.sub(rb"\g<1>" + _STAND_IN + b"0", body)
    return body


def unseal(body: bytes) -> bytes:
    """The JSON that was sealed."""
    return body.replace(_STAND_IN + b"0", b"\\u0000").replace(_STAND_IN + b"1", _STAND_IN)


def seal_text(text: str) -> str:
    """Plain text without U+0000."""
    return text.replace("\uffff", "\uffff1").replace("\0", "\uffff0")


def unseal_text(text: str) -> str:
    """The plain text that was sealed."""
    return text.replace("\uffff0", "\0").replace("\uffff1", "\uffff")


def parameter(value: str | bytes | float | bool | None) -> bytes | None:
    """A value as the server reads it; bytes are ready as they are."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return seal_text(value).encode()
    return b"%d" % value if isinstance(value, int) else repr(value).encode()
