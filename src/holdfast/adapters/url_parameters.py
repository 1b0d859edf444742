"""The parameters behind `?` of a server's URL: what several adapters have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from holdfast.errors import ConfigurationError
from holdfast.model.duration import seconds

Readers = Mapping[str, Callable[[str], Any]]
"""How each parameter is read. A reader raises ValueError or ConfigurationError."""


def whole_number(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise ValueError("write a number from 1 to 1000")
    return int(text)


def duration(text: str) -> float:
    if not 0.1 <= (value := seconds(text)) <= 3600:
        raise ValueError("write a duration from 100ms to 1h")
    return value


def read(readers: Readers, name: str, text: str, refused: str) -> Any:
    """The value of one parameter. `refused` begins the error, which names the parameter."""
    try:
        return readers[name](text)
    except (ValueError, ConfigurationError) as error:
        raise ConfigurationError(f"{refused} {name}={text!r}: {error}") from None


def read_all(readers: Readers, query: str, kind: str) -> dict[str, Any]:
    """The values of all parameters. `kind` is what one is called: "the Redis parameter"."""
    parameters: dict[str, Any] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name not in readers:
            names = ", ".join(readers)
            raise ConfigurationError(f"{kind} {name!r} is not known; there are {names}")
        parameters[name] = read(readers, name, text, f"{kind} can't be used:")
    return parameters
