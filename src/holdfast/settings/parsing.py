"""From what people write to what the program uses. Each parser raises ConfigurationError with the
remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import ValidationError, convert

from holdfast.errors import ConfigurationError
from holdfast.model.duration import seconds
from holdfast.model.leadership import Leadership
from holdfast.model.options import PipelineOptions
from holdfast.model.receive import Receive

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


SHORTEST_KEY = 24
"""Characters: as many as 18 random bytes have in base64."""

_SWITCH = {
    **dict.fromkeys(("true", "on", "yes", "1"), True),
    **dict.fromkeys(("false", "off", "no", "0"), False),
}


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{value!r} is not a text")
    return value.strip()


def secret_key(value: Any) -> str:
    if len(key := text(value)) < SHORTEST_KEY:
        raise ConfigurationError(
            f"a key of {len(key)} characters can be guessed: use {SHORTEST_KEY} or more"
        )
    return key


def word(value: Any) -> str:
    """A name in any case."""
    return text(value).lower()


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


def whole(value: Any) -> int:
    """A count that may be zero."""
    return 0 if str(value).strip() == "0" else count(value)


def port(value: Any) -> int:
    if (number := whole(value)) > 65535:
        raise ConfigurationError(f"{value!r} is no port: write a number from 0 to 65535")
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
    return seconds(value)


def milliseconds(value: Any) -> float:
    """Seconds, from a number of milliseconds."""
    try:
        return duration(float(value) / 1000)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{value!r} is not a number of milliseconds") from None


def switch(value: Any) -> bool:
    """On or off."""
    word = str(value).strip().lower()
    if word not in _SWITCH:
        raise ConfigurationError(f"{value!r} is neither on nor off: write true or false")
    return _SWITCH[word]


def ratio(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 < number <= 1:
        raise ConfigurationError(f"{value!r} is no part of a whole: write a number such as 0.8")
    return number


def dollars(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < 1e12:
        raise ConfigurationError(f"{value!r} is no amount in US dollars: write a number above zero")
    return number


def lock_timeout(value: Any) -> float:
    if not 60 <= (length := duration(value)) <= 86_400:
        raise ConfigurationError(
            f"{value!r} is no timeout for a pipeline lock: write a duration from 60s to 24h"
        )
    return length


def lane_leaders(value: Any) -> dict[str, Leadership]:
    """A table for each lane, or the same as JSON."""
    known = {"key": text, "ttl": duration, "renew": duration}
    return {
        lane: Leadership(**_parsed_table(f"lane {lane!r}", table, known))
        for lane, table in _tables(value, "lanes").items()
    }


def pipeline_options(value: Any) -> dict[str, PipelineOptions]:
    """A table for each pipeline, or the same as JSON."""
    tables = _tables(value, "pipelines")
    known = {
        "timeout": duration,
        "max_attempts": count,
        "backoff": duration,
        "max_validation_failures": count,
    }
    return {
        name: PipelineOptions(**_parsed_table(f"pipeline {name!r}", table, known))
        for name, table in tables.items()
    }


def _tables(value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ConfigurationError(f"{value!r} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigurationError(f"{value!r} is not a table of {name}")
    return value


def _parsed_table(what: str, table: Any, known: Mapping[str, Parser]) -> dict[str, Any]:
    unknown = set(table) - set(known) if isinstance(table, dict) else {str(table)}
    if unknown:
        raise ConfigurationError(
            f"{what}: {', '.join(sorted(unknown))} is unknown; use {', '.join(known)}"
        )
    return {name: known[name](value) for name, value in table.items()}


def receives(value: Any) -> tuple[Receive, ...]:
    """`[[receive]]` tables, or texts `TOPIC=PIPELINE`: a list of them, or one text with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        raise ConfigurationError(f"{value!r} is not a list: write [[receive]] tables")
    received = tuple(_receive(part) for part in parts)
    groups = [(receive.topic, receive.group) for receive in received]
    for topic, group in groups:
        if groups.count((topic, group)) > 1:
            raise ConfigurationError(
                f"two [[receive]] of topic {topic!r} share the subscription {group!r}: give each a "
                "subscription of its own"
            )
    return received


def _receive(given: Any) -> Receive:
    if isinstance(given, str):
        topic, equals, pipeline = given.strip().rpartition("=")
        if not equals:
            raise ConfigurationError(f"{given!r} is not understood: write TOPIC=PIPELINE")
        given = {"topic": topic, "pipeline": pipeline}
    elif isinstance(given, dict) and "max_bytes" in given:
        given = {**given, "max_bytes": size(given["max_bytes"])}
    try:
        receive = convert(given, Receive)
    except ValidationError as error:
        raise ConfigurationError(
            f"a [[receive]] is wrong: {error}; it takes {', '.join(Receive.__struct_fields__)}"
        ) from error
    receive.check()
    return receive


def server_timeout(value: Any) -> float:
    """How long a server may take: seconds, long enough to happen and short enough to end."""
    if not 0.1 <= (length := duration(value)) <= 3600:
        raise ConfigurationError(
            f"{value!r} is no time to wait for a server: write a duration from 100ms to 1h"
        )
    return length


def exact_choice(*known: str) -> Parser:
    """One of some words, written as they are."""

    def parse(value: Any) -> str:
        if value not in known:
            raise ConfigurationError(f"{value!r} is not one of {', '.join(known)}")
        return value

    return parse


def choice(*known: str, also: Mapping[str, str] | None = None) -> Parser:
    """One of a few words, in any case; `also` are other spellings of them."""

    def parse(value: Any) -> str:
        word = str(value).strip().lower()
        word = (also or {}).get(word, word)
        if word not in known:
            raise ConfigurationError(f"{value!r} is not one of {', '.join(known)}")
        return word

    return parse


def gcs_bucket(value: Any) -> str:
    """The name of a bucket of Google Cloud Storage, as the URL of a blob store."""
    name = text(value)
    return name if name.startswith("gs://") else f"gs://{name}"
