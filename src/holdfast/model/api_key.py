"""What an API key looks like: `hfk_` + id + `_` + secret + checksum.

    hfk_0a1b2c3d4e5f_<40 characters of secret><7 characters of checksum>

The id finds the key's record, the secret (200 bits) proves that the caller was given the key, and
the checksum tells a mistyped or cut key from an unknown one without asking the store. Only a digest
of the whole text is ever stored."""

from __future__ import annotations

import hmac
import os
import re
import zlib
from hashlib import sha256
from typing import Literal, get_args

from msgspec import Struct

from holdfast.errors import InvalidInput

PREFIX = "hfk"
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LETTER_OF_BYTE = (_ALPHABET * 8).encode()
ID_LENGTH = 12
SECRET_LENGTH = 40
"""Letters of 5 bits: 200 bits."""
CHECKSUM_LENGTH = 7

_SHAPE = re.compile(rf"{PREFIX}_([{_ALPHABET}]{{{ID_LENGTH}}})_[{_ALPHABET}]+")
_LENGTH = len(PREFIX) + 1 + ID_LENGTH + 1 + SECRET_LENGTH + CHECKSUM_LENGTH

Scope = Literal["submit", "read", "operate", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""submit runs; read runs and results; operate (cancel, pause, resume, dead letters, locks); admin
(tenants, keys, audit, and all of the others)."""


class NewKey(Struct, frozen=True):
    """A key that was just made: its text is shown once and kept nowhere."""

    id: str
    text: str


def make_key() -> NewKey:
    id = _letters(ID_LENGTH)
    body = f"{PREFIX}_{id}_{_letters(SECRET_LENGTH)}"
    return NewKey(id, body + _checksum(body))


def key_id(text: str) -> str | None:
    """The id in a key, or None for what is no key: another shape, or a wrong checksum."""
    if len(text) != _LENGTH or not (shape := _SHAPE.fullmatch(text)):
        return None
    body, checksum = text[:-CHECKSUM_LENGTH], text[-CHECKSUM_LENGTH:]
    return shape[1] if _checksum(body) == checksum else None


def key_digest(text: str) -> str:
    """What is stored of a key. A plain hash: nobody guesses 200 bits, however fast it is."""
    return sha256(text.encode()).hexdigest()


NO_DIGEST = key_digest("")
"""What the digest of a key that nobody knows is compared with: a miss takes as long as a hit."""


def matches(text: str, digest: str) -> bool:
    return hmac.compare_digest(key_digest(text), digest)


def check_scopes(scopes: list[str]) -> list[Scope]:
    """The scopes in their order, each once. Raises InvalidInput."""
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        wrong = f"there is no scope {unknown[0]!r}" if unknown else "a key needs a scope"
        raise InvalidInput(f"{wrong}; known: {', '.join(SCOPES)}")
    return [scope for scope in SCOPES if scope in scopes]


def _letters(count: int) -> str:
    return os.urandom(count).translate(_LETTER_OF_BYTE).decode()


def _checksum(body: str) -> str:
    number = zlib.crc32(body.encode())
    return "".join(_ALPHABET[number >> 5 * digit & 31] for digit in reversed(range(7)))
