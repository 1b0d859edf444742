"""Fields of messages that are secret by their names, such as a job's own API key.

They are taken out before anything of a message is stored, logged or buried: a run is accepted, and
a dead letter kept, with `***` in their place. What was taken out is known to the receiving process
alone."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from holdfast.model.secrecy import MASK, masked

_SECRET = re.compile(
    r"(?:password|passwd|passphrase|pwd|secrets?|apikeys?|accesskeys?|secretkeys?|privatekeys?"
    r"|authorization|credentials?|token)$"
)
# Whatever comes, these take time in proportion to its length: no part of a text is looked at twice.
_TEXT = r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
_LITERAL = re.compile(_TEXT, re.DOTALL)
_PAIR = re.compile(rf'("([^"\\]*+)"\s*+:\s*+){_TEXT}', re.DOTALL)
"""A name and its text in JSON, whole or cut off."""
_TOO_SHORT = 4
"""A value of fewer characters is masked where it stands, but not looked for elsewhere."""


def normalised(name: str) -> str:
    """`OPENAI_API_KEY`, `openaiApiKey` and `openai-api-key` are one name."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def is_secret(name: str, more: Collection[str] = ()) -> bool:
    """Whether a field of this name is secret; `more` are other names, normalised."""
    plain = normalised(name)
    return plain in more or _SECRET.search(plain) is not None


def collect(value: Any, more: Collection[str] = ()) -> dict[str, str]:
    """The secrets in a JSON value: dotted path → text."""
    return dict(_walk(value, (), False, frozenset(map(normalised, more))))


def _walk(
    value: Any, path: tuple[str, ...], inside: bool, more: Collection[str]
) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if inside and value and value != MASK:
            yield ".".join(path), value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _walk(part, (*path, str(name)), inside or is_secret(name, more), more)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _walk(part, (*path, str(number)), inside, more)


def without(body: bytes, secrets: Iterable[str]) -> bytes:
    """The bytes of a JSON document with these texts masked, wherever they stand, and everything
    else as it was."""
    values = set(secrets)
    if not values:
        return body
    text = _LITERAL.sub(lambda literal: _replaced(literal[0], values), body.decode())
    return hidden(text, values).encode()


def _replaced(literal: str, values: Collection[str]) -> str:
    try:
        return f'"{MASK}"' if json.loads(literal, strict=False) in values else literal
    except ValueError:
        return literal


def hidden(text: str, secrets: Iterable[str]) -> str:
    """Any text without these secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _TOO_SHORT:
            text = text.replace(secret, MASK)
    return text


def masked_bytes(body: bytes) -> bytes:
    """What is no JSON, without what looks like a secret; all other bytes as they were."""
    text = _PAIR.sub(_masked_pair, body.decode("latin-1"))
    return masked(text).encode("latin-1")


def _masked_pair(pair: re.Match[str]) -> str:
    return f'{pair[1]}"{MASK}"' if is_secret(pair[2]) else pair[0]


def masked_attributes(
    attributes: Mapping[str, str], secrets: Iterable[str], more: Collection[str] = ()
) -> dict[str, str]:
    """The attributes of a message, secret ones masked by name and known ones by value."""
    names = frozenset(map(normalised, more))
    return {
        name: MASK if is_secret(name, names) else hidden(value, secrets)
        for name, value in attributes.items()
    }
