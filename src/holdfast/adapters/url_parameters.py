"""The parameters behind `?` of a server's URL: what several adapters have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from holdfast.errors import ConfigurationError
from holdfast.model.duration import Duration, seconds

Readers = Mapping[str, Callable[[str], Any]]
"""How each parameter is read. A reader raises ValueError or ConfigurationError."""


def whole_number(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise ValueError("write a number from 1 to 1000")
    return int(text)


def duration_between(least: Duration, most: Duration) -> Callable[[str], float]:
    def read_duration(text: str) -> float:
        if not seconds(least) <= (value := seconds(text)) <= seconds(most):
            raise ValueError(f"write a duration from {least} to {most}")
        return value

    return read_duration


duration = duration_between("100ms", "1h")


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
