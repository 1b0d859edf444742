"""What the vendors' protocols have in common: a prompt goes out as JSON, a reply comes back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from holdfast.adapters.llm.api_key import ApiKey
from holdfast.errors import Transient

Finish = Literal["stop", "length", "declined"]
Shape = Mapping[str, str]
"""Which of several ways to say something a request uses, by feature: `{"limit": "max_tokens"}`."""

encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Prompt:
    """One call. `turns` alternate: the question, an answer that could not be used, what is wrong
    with it, …"""

    task: str
    system: str
    turns: tuple[str, ...]
    schema: dict[str, Any]
    max_output: int


@dataclass(frozen=True, slots=True)
class VendorRequest:
    """What is posted. `shape` is how it was said, so that an objection can be understood."""

    path: str
    headers: dict[str, str]
    body: bytes
    shape: Shape


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said, and what it counted. `input_tokens` include those read from and written to
    its cache.

    `length`: it ran into the limit. `declined`: it, or a filter, refused to answer; the text says
    why."""

    text: str
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int = 0
    written_tokens: int = 0
    finish: Finish = "stop"


class VendorProtocol(Protocol):
    """How one vendor is spoken to. An object per model: it remembers what the server does not
    understand."""

    dialect: ServerDialect

    def request(self, prompt: Prompt, key: ApiKey) -> VendorRequest: ...

    def reply(self, data: Any) -> Reply:
        """Read a decoded answer. Raises `Transient` if it makes no sense."""
        ...


class ServerDialect:
    """What a server understands, found out by being refused and remembered.

    For each feature: the ways to say it, the preferred first, and the words by which a refusal
    names it."""

    def __init__(self, **features: tuple[str, tuple[str, ...]]) -> None:
        self._ways = {feature: list(ways) for feature, (_, ways) in features.items()}
        self._words = {
            feature: re.compile(words, re.IGNORECASE) for feature, (words, _) in features.items()
        }

    @property
    def shape(self) -> Shape:
        return {feature: ways[0] for feature, ways in self._ways.items()}

    def learn(self, tried: Shape, refusal: str) -> bool:
        """Whether a refused request (400) is worth another try, said differently."""
        for feature, words in self._words.items():
            if words.search(refusal):
                return self._drop(feature, tried[feature])
        return False

    def _drop(self, feature: str, tried: str) -> bool:
        ways = self._ways[feature]
        if ways[0] != tried:  # somebody else was refused in the meantime
            return True
        if len(ways) == 1:
            return False
        del ways[0]
        return True


def spelled_out(prompt: Prompt) -> str:
    """The instructions for servers that can't be held to a schema: it is part of the text."""
    schema = encode(prompt.schema).decode()
    return (
        f"{prompt.system}\n\nAnswer with one JSON object and nothing else. It must match this JSON "
        f"Schema:\n{schema}"
    )


def at(data: Any, *path: str | int) -> Any:
    """What is at a place in decoded JSON, or None: servers leave out whatever they like."""
    for part in path:
        if isinstance(part, int):
            data = data[part] if isinstance(data, list) and -len(data) <= part < len(data) else None
        else:
            data = data.get(part) if isinstance(data, dict) else None
    return data


def count_at(data: Any, *path: str | int) -> int | None:
    """A number of tokens, or None if it is missing or can't be one."""
    value = at(data, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def text_at(data: Any, *path: str | int) -> str:
    value = at(data, *path)
    return value if isinstance(value, str) else ""


def not_of_protocol(vendor: str) -> Transient:
    return Transient(
        f"the server's answer is not one of the {vendor} protocol: does the base URL point to an "
        "API?"
    )
