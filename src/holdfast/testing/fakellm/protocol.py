"""What the vendors' protocols have in common: a question, its answer, and how a request is
checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Brain(Protocol):
    """Produces the answers of the fake model. What it returns is written as JSON."""

    def answer(self, task: str, system: str, text: str, schema: dict[str, Any]) -> Any: ...


@dataclass(frozen=True, slots=True)
class ReceivedQuestion:
    """A well-formed question. `turns` are the texts of the conversation, the question first."""

    task: str
    system: str
    turns: tuple[str, ...]
    schema: dict[str, Any]
    model: str
    max_output: int

    @property
    def text(self) -> str:
        return self.turns[0]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as text, how it ended (`stop`, `length` or `refusal`), and what it is said to have
    used."""

    text: str
    finish: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    written_tokens: int = 0


@dataclass(slots=True)
class Call:
    """One call as it is remembered."""

    number: int
    vendor: str
    task: str
    system: str
    text: str
    turns: int
    tries: int
    """How often this text was asked about so far, this time included."""
    input_tokens: int = 0
    output_tokens: int = 0
    status: int = 0
    fault: str = ""


class RequestRejected(Exception):
    """A request that the vendor would not accept. `param` is what OpenAI would point at."""

    def __init__(self, message: str, param: str = "", status: int = 400) -> None:
        super().__init__(message)
        self.param = param
        self.status = status


@dataclass(frozen=True, slots=True)
class Response:
    """What is sent back. With `cut` set, the connection ends after that many bytes of the body."""

    status: int
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    body: bytes = b""
    cut: int | None = None


class VendorSide(Protocol):
    """One vendor's side of its protocol."""

    name: str
    base: str
    """The path that its base URL ends with."""

    def claims(self, path: str) -> bool:
        """Whether a path is one of its own."""
        ...

    def key(self, headers: Mapping[str, str]) -> str:
        """The key that came with a request; empty if none did."""
        ...

    def read(self, path: str, headers: Mapping[str, str], data: Any) -> ReceivedQuestion:
        """Check a request as the vendor would. Raises `RequestRejected`."""
        ...

    def reply(self, question: ReceivedQuestion, answer: Answer) -> Any: ...

    def error(
        self, status: int, message: str, param: str, retry_after: float | None
    ) -> tuple[dict[str, str], Any]:
        """Headers and body of an error."""
        ...


def need(condition: object, message: str, param: str = "", status: int = 400) -> None:
    """Reject a request that does not fulfil a condition."""
    if not condition:
        raise RequestRejected(message, param, status)


def only(data: Mapping[str, Any], *names: str) -> None:
    """Reject what the protocol does not have: misspelt parameters are errors, not ignored."""
    for name in data:
        need(name in names, f"Unrecognized request argument supplied: {name}", name)


def schema_in_words(system: str) -> dict[str, Any]:
    """The schema that a client wrote into its instructions because the server knows none."""
    _, marker, text = system.rpartition("match this JSON Schema:\n")
    need(marker, "no response_format is given, and the instructions hold no JSON Schema either")
    return json.loads(text)
