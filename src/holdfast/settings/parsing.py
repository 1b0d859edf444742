"""From what people write to what the program uses. Each parser raises ConfigurationError with the
remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.errors import ConfigurationError
from holdfast.model.duration import seconds

Parser = Callable[[Any], Any]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(b|kb|mb|gb|kib|mib|gib)?", re.IGNORECASE)
_UNITS = {
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{value!r} is not a text")
    return value.strip()


def texts(value: Any) -> tuple[str, ...]:
    """A list, or one text with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        raise ConfigurationError(f"{value!r} is not a list of texts")
    return tuple(text(part) for part in parts)


def count(value: Any) -> int:
    try:
        number = int(value) if not isinstance(value, bool | float) else 0
    except (TypeError, ValueError):
        number = 0
    if number < 1:
        raise ConfigurationError(f"{value!r} is not a whole number above zero")
    return number


def connections(value: Any) -> int:
    if (number := count(value)) > 1000:
        raise ConfigurationError(
            f"{value!r} connections are too many: write a number from 1 to 1000"
        )
    return number


def size(value: Any) -> int:
    """Bytes: a number, or a text such as '500MiB'."""
    parts = _SIZE.fullmatch(str(value).strip()) if not isinstance(value, bool) else None
    number = int(float(parts[1]) * _UNITS[(parts[2] or "b").lower()]) if parts else 0
    if number < 1:
        raise ConfigurationError(
            f"{value!r} is not a size: write '500MiB', '2GB' or a number of bytes"
        )
    return number


def duration(value: Any) -> float:
    """Seconds: a number, or a text such as '30s'."""
    length = seconds(value)
    if not 0 <= length < float("inf"):
        raise ConfigurationError(f"{value!r} is not a duration: it must not be negative or endless")
    return length


def server_timeout(value: Any) -> float:
    """How long a server may take: seconds, long enough to happen and short enough to end."""
    if not 0.1 <= (length := duration(value)) <= 3600:
        raise ConfigurationError(
            f"{value!r} is no time to wait for a server: write a duration from 100ms to 1h"
        )
    return length


def choice(*known: str, also: Mapping[str, str] | None = None) -> Parser:
    """One of a few words, in any case; `also` are other spellings of them."""

    def parse(value: Any) -> str:
        word = str(value).strip().lower()
        word = (also or {}).get(word, word)
        if word not in known:
            raise ConfigurationError(f"{value!r} is not one of {', '.join(known)}")
        return word

    return parse
