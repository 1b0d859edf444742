"""What can be stored, on every store alike: texts, names, numbers and durations.

Values are checked twice. Where a user gives one (`name`, `whole`, `amount`, `duration`; and in
`model/names.py`) what can't be stored is an `InvalidInput` at that line. And a store
looks at every command before it is part of a batch (`problem`), so that no command can harm the
others: by a rule for each field, the same field by the same rule in every command."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from enum import StrEnum
from math import isfinite
from operator import attrgetter
from types import NoneType
from typing import Any, Final, get_args, get_type_hints

import msgspec
from msgspec import Struct

from holdfast.errors import InvalidInput
from holdfast.model import commands as c
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.duration import LONGEST
from holdfast.model.lane import HeadPolicy, Order

MAX_NAME: Final = 500
"""Bytes of the name of a tenant, pipeline, lane, step, worker."""
MAX_KEY: Final = 1000
"""Bytes of an id, a key, the name of a lock. Longer keys go by `model/keys.py`."""
MAX_LABEL_NAME: Final = 200
"""Bytes. Those of a label's value are MAX_KEY."""
MAX_PRIORITY: Final = 2**31 - 1
MAX_COUNT: Final = 2**53
"""The largest whole number that every store keeps exactly."""
MAX_ATTEMPTS: Final = 1_000_000
MAX_DURATION: Final = LONGEST

# --- where users give them ------------------------------------------------------------------------


def is_text(value: Any) -> bool:
    """Whether it is text that can be written: no half of a surrogate pair, as in the name of a
    file whose bytes are no text."""
    if type(value) is not str and not isinstance(value, StrEnum):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def storable(text: str) -> str:
    """Any text, with what can't be written shown as an escape: `\\udcff`."""
    if type(text) is str and text.isascii():
        return text
    return str(text).encode("utf-8", "backslashreplace").decode()


def name(what: str, value: str, most: int = MAX_NAME) -> str:
    """A name or key that can be stored. Raises InvalidInput."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} {value!r:.100} is no text")
    value = str(value)  # perhaps it is one of numpy's
    if not is_text(value):
        raise InvalidInput(
            f"{what} {value!r:.100} holds half of a surrogate pair, which is no character: "
            "decode the bytes it came from with errors='replace'"
        )
    if not 0 < len(value.encode()) <= most:
        raise InvalidInput(f"{what} {value!r:.100} has {len(value.encode())} bytes: 1 to {most}")
    if "\0" in value:
        raise InvalidInput(f"{what} {value!r:.100} holds the character U+0000")
    return value


def whole(what: str, value: Any, least: int = 0, most: int = MAX_COUNT) -> int:
    """A whole number, also one of numpy's. Raises InvalidInput."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise InvalidInput(f"{what} {value!r:.100} is no whole number")
    if not least <= number <= most:
        raise InvalidInput(f"{what} is {number}: {least} to {most} can be stored")
    return number


def amount(what: str, value: Any, most: float = float(MAX_COUNT)) -> float:
    """A number from 0 on, also a Decimal or one of numpy's. Raises InvalidInput."""
    try:
        number = float(value) if not isinstance(value, str | bytes | bool) else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None:
        raise InvalidInput(f"{what} {value!r:.100} is no number")
    if not isfinite(number) or not 0.0 <= number <= most:
        raise InvalidInput(f"{what} is {number:g}: 0 to {most:g} can be stored")
    return number


def duration(what: str, value: Any) -> float:
    """Seconds. Raises InvalidInput."""
    return amount(what, value, MAX_DURATION)


# --- where stores are given commands --------------------------------------------------------------

Rule = Callable[[Any], bool]


def _is_short(value: Any, most: int) -> bool:
    """In bytes, which are counted only where there may be too many."""
    return len(value) * 4 <= most or len(value.encode()) <= most


def _is_name(value: Any) -> bool:
    return is_text(value) and _is_short(value, MAX_NAME) and "\0" not in value


def _is_key(value: Any) -> bool:
    return is_text(value) and _is_short(value, MAX_KEY)


def _is_id(value: Any) -> bool:
    return _is_key(value) and value != "" and "\0" not in value


def _is_count(value: Any) -> bool:
    return type(value) is int and -MAX_COUNT <= value <= MAX_COUNT


def _is_priority(value: Any) -> bool:
    return type(value) is int and -MAX_PRIORITY <= value <= MAX_PRIORITY


def _are_attempts(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_ATTEMPTS


def _is_duration(value: Any) -> bool:
    return (type(value) is float or type(value) is int) and 0 <= value <= MAX_DURATION


def _is_flag(value: Any) -> bool:
    return value is True or value is False


def _is_bytes(value: Any) -> bool:
    return type(value) is bytes


def _are_texts(value: Any) -> bool:
    return type(value) is dict and all(
        is_text(name) and is_text(text) for name, text in value.items()
    )


def _are_labels(value: Any) -> bool:
    return not value or (
        _are_texts(value)
        and len(value) <= c.MAX_LABELS
        and all(
            _is_short(name, MAX_LABEL_NAME) and _is_id(name) and _is_id(text)
            for name, text in value.items()
        )
    )


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_name, value))


def _are_held(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(pair, list | tuple)
        and len(pair) == 2
        and _is_id(pair[0])
        and (_is_count(pair[1]) or _is_name(pair[1]))
        for pair in value
    )


def _is_storable(value: Any) -> bool:
    return type(value) in (c.SaveCheckpoint, Checkpoint) and problem(value) is None


def _are_storable(value: Any) -> bool:
    return not value or (isinstance(value, list | tuple) and all(map(_is_storable, value)))


def _is_one_of(words: Any) -> Rule:
    known = get_args(words)
    return lambda value: type(value) is str and value in known


RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(("id", "run", "name", "parent"), _is_id),
    **dict.fromkeys(("key", "after"), _is_key),
    **dict.fromkeys(("tenant", "pipeline", "lane", "step", "worker"), _is_name),
    "token": _is_name,
    "order": _is_one_of(Order),
    "head": _is_one_of(HeadPolicy),
    "outcome": _is_one_of(c.Outcome),
    **dict.fromkeys(("input", "fingerprint", "value", "checksum", "schema", "record"), is_text),
    **dict.fromkeys(("progress", "level", "message", "fields", "result", "error"), is_text),
    **dict.fromkeys(("reason", "actor", "owner", "source", "version", "expected"), is_text),
    **dict.fromkeys(("epoch", "limit", "max_bytes", "term", "sent", "running"), _is_count),
    **dict.fromkeys(("execution_ms",), _is_count),
    **dict.fromkeys(("max_attempts", "attempts"), _are_attempts),
    **dict.fromkeys(("delay", "ttl", "keep", "keep_failed"), _is_duration),
    **dict.fromkeys(("unique", "skipped", "deferred"), _is_flag),
    "priority": _is_priority,
    "body": _is_bytes,
    "labels": _are_labels,
    "attributes": _are_texts,
    "pipelines": _are_names,
    "held": _are_held,
    "checkpoints": _are_storable,
    "last": _is_storable,
}  # fmt: skip
"""What a field of a command must be, by its name."""

NAMES: Final = (_is_id, _is_key, _is_name)


class _Fields:
    """The fields of one type of command. Most commands hold short plain names, plain texts and
    defaults: these are looked at together, and one by one only what is not as usual."""

    def __init__(self, kind: Any) -> None:
        hints, names = get_type_hints(kind), kind.__struct_fields__
        self.all = [(name, RULES[name], NoneType in get_args(hints[name])) for name in names]
        required = [name for name, _, is_optional in self.all if not is_optional]
        texts = [name for name in names if RULES[name] is is_text]
        self._ids = _getter([name for name in required if RULES[name] is _is_id])
        self._names = _getter([name for name in required if RULES[name] in NAMES])
        self._texts = _getter([name for name in texts if name in required])
        self._optional_texts = _getter([name for name in texts if name not in required])
        together = {*texts, *(name for name in required if RULES[name] in NAMES)}
        defaults = _defaults(kind)
        self._others = [
            (attrgetter(name), rule, defaults.get(name, _none))
            for name, rule, _ in self.all
            if name not in together
        ]

    def are_as_usual(self, command: Any) -> bool:
        try:
            names = "".join(self._names(command))
            if not names.isascii() or len(names) > MAX_NAME or "\0" in names:
                return False
            if "" in self._ids(command) or not "".join(self._texts(command)).isascii():
                return False
            texts = [text for text in self._optional_texts(command) if text is not None]
            if not "".join(texts).isascii():
                return False
        except TypeError:  # one of them is no text
            return False
        for value_of, rule, default in self._others:
            value = value_of(command)
            if value is not default and not rule(value):
                return False
        return True


_none = object()


def _getter(names: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """All of some fields at once."""
    if not names:
        return lambda _: ()
    return attrgetter(*names, names[0])  # of a single name it would not make a tuple


def _defaults(kind: Any) -> dict[str, Any]:
    """What most commands hold in fields that need not be given."""
    fields = msgspec.structs.fields(kind)
    return {field.name: field.default for field in fields if field.default is not msgspec.NODEFAULT}


_fields: dict[type, _Fields] = {}


def problem(command: c.Command[Any] | Checkpoint) -> str | None:
    """Why no store can write a command; None if every store can."""
    kind = type(command)
    fields = _fields.get(kind)
    if fields is None:
        fields = _fields[kind] = _Fields(kind)
    if fields.are_as_usual(command):
        return None
    for name, rule, is_optional in fields.all:
        value = getattr(command, name)
        if not rule(value) and not (is_optional and value is None):
            return _explained(kind.__name__, name, value)
    return None


def _explained(kind: str, name: str, value: Any) -> str:
    if isinstance(value, Struct):
        return problem(value) or f"{name} can't be stored"  # type: ignore[arg-type]
    shown = f"{value!r:.80}"
    return f"{kind}.{name} is {type(value).__name__} {shown}, which can't be stored"
