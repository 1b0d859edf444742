"""Distorted answers: what a bad or malicious model could make of a good one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

MARKUP = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> "
    "![x](https://evil.example/?q=1) [click](javascript:0)"
)
MANY = 20_000
DEEP = 100_000
ABOUT_IDS = re.compile(r"(^|_)(ids?|refs?|numbers?|comments?|index|indices)$")
SORRY = "I'm sorry, but I can't help with that."


def distort(kind: str, value: Any) -> str:
    """The text of an answer with a fault of that kind; well-formed JSON for kinds that leave the
    content alone."""
    if kind in _VALUES:
        value = _VALUES[kind](value)
    text = json.dumps(value, ensure_ascii=False)
    return _TEXTS[kind](text) if kind in _TEXTS else text


def _wrong_types(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _wrong_types(member) for key, member in value.items()}
    return {"unexpected": True} if isinstance(value, str | list) else "many"


def _extra_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            **{key: _extra_keys(member) for key, member in value.items()},
            "confidence": 0.99,
            "__proto__": {"x": 1},
        }
    return [_extra_keys(member) for member in value] if isinstance(value, list) else value


def _missing_keys(value: Any) -> Any:
    return dict(list(value.items())[1:]) if isinstance(value, dict) else value


def _foreign_ids(value: Any, about_ids: bool = False) -> Any:
    if isinstance(value, dict):
        return {
            key: _foreign_ids(member, ABOUT_IDS.search(key) is not None)
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [_foreign_ids(member, about_ids) for member in value]
    if about_ids and isinstance(value, str):
        return f"ghost-{value}"
    if about_ids and isinstance(value, int) and not isinstance(value, bool):
        return value + 987_654
    return value


def _in_lists(change: Callable[[list[Any]], list[Any]]) -> Callable[[Any], Any]:
    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walk(member) for key, member in value.items()}
        return change(value) if isinstance(value, list) else value

    return walk


def _markup(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _markup(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_markup(member) for member in value]
    return value + MARKUP if isinstance(value, str) else value


_VALUES: dict[str, Callable[[Any], Any]] = {
    "wrong_types": _wrong_types,
    "extra_keys": _extra_keys,
    "missing_keys": _missing_keys,
    "foreign_ids": _foreign_ids,
    "duplicate_ids": _in_lists(lambda items: [*items, *items]),
    "many": _in_lists(lambda items: (items or ["x"]) * MANY),
    "markup": _markup,
}

_TEXTS: dict[str, Callable[[str], str]] = {
    "malformed": lambda text: text.replace('"', "'", 3) + ",",
    "fenced": lambda text: f"```json\n{text}\n```",
    "prose": lambda text: (
        f"Certainly! Here is the answer you asked for:\n\n{text}\n\nLet me know if you need more "
        f"{{:-)"
    ),
    "truncated": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "refusal": lambda text: SORRY,
    "refusal_text": lambda text: SORRY,
    "nan": lambda text: text[:-1] + (", " if text != "{}" else "") + '"score": NaN}',
    "infinity": lambda text: text[:-1] + (", " if text != "{}" else "") + '"score": 1e999}',
    "two_answers": lambda text: f"{text}\n\nOr, on second thought:\n\n{text}",
    "surrogates": lambda text: re.sub(r'"(?=[,}\]])', r'\\ud800"', text),
    "nested": lambda text: '{"a":' * DEEP,
}
