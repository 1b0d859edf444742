"""Durations as people write them: `"90s"`, `"30m"`, `"1h30m"`, `timedelta(minutes=30)` or plain
seconds."""

from __future__ import annotations

import re
from datetime import timedelta
from math import inf

from holdfast.errors import ConfigurationError

Duration = str | int | float | timedelta

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


LONGEST = 100 * 366 * 86_400.0
"""Seconds. Nobody waits for a hundred years."""


def seconds(value: Duration) -> float:
    """The duration in seconds."""
    duration = _seconds(value)
    if not 0.0 <= duration <= LONGEST:
        fault = "negative" if duration < 0 else "endless"
        raise ConfigurationError(
            f"{value!r:.100} is {fault}: write '90s', '30m', '1h30m' or a number of seconds"
        )
    return duration


def _seconds(value: Duration) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigurationError(
            f"{value!r} is not a duration: write '90s', '30m', '1h30m' or a number of seconds"
        )
    if not isinstance(value, str):
        return float(value) if isinstance(value, float) or value.bit_length() < 64 else inf
    text = value.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ConfigurationError(
            f"{value!r} is not a duration: write '90s', '30m', '1h30m' or a number of seconds"
        )
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def check_seconds(options: object, *names: str, least: float = 0.0) -> None:
    """Raise ConfigurationError if one of these attributes is no number of seconds."""
    for name in names:
        value = getattr(options, name)
        if not isinstance(value, int | float) or not least <= value < inf:
            limit = f" from {least:g} on" if least else ""
            raise ConfigurationError(
                f"{name} is {value!r:.100}: give seconds{limit}, for example {name}=60.0"
            )


def humanise(value: float) -> str:
    """`1.2 s`, `3 min 20 s`: how durations are shown."""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
