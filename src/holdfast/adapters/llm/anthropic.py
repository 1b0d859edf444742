"""Anthropic's messages: the answer is the input of a tool that the model has to use."""

from __future__ import annotations

from typing import Any

from holdfast.adapters.llm.api_key import ApiKey
from holdfast.adapters.llm.protocol import (
    Finish,
    Prompt,
    Reply,
    ServerDialect,
    VendorRequest,
    at,
    count_at,
    encode,
    not_of_protocol,
    spelled_out,
    text_at,
)

VERSION = "2023-06-01"
FINISHES: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "declined",
}


class Anthropic:
    """`messages` with a forced tool; the system block ends a prefix that Anthropic caches."""

    def __init__(self, model: str) -> None:
        self._model = model
        self.dialect = ServerDialect(
            temperature=(r"temperature", ("zero", "default")),
            # Models that always think refuse to be forced.
            choice=(r"tool_choice", ("forced", "free")),
        )

    def request(self, prompt: Prompt, key: ApiKey) -> VendorRequest:
        shape = self.dialect.shape
        forced = shape["choice"] == "forced"
        system = prompt.system if forced else spelled_out(prompt)
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": prompt.max_output,
            "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
            "messages": _messages(prompt),
            "tools": [
                {
                    "name": prompt.task,
                    "description": "Give the answer.",
                    "input_schema": prompt.schema,
                }
            ],
            "tool_choice": {"type": "tool", "name": prompt.task} if forced else {"type": "auto"},
        }
        if shape["temperature"] == "zero":
            body["temperature"] = 0
        headers = {"anthropic-version": VERSION}
        if key:
            headers["x-api-key"] = key.reveal()
        return VendorRequest("/messages", headers, encode(body), shape)

    def reply(self, data: Any) -> Reply:
        content = at(data, "content")
        if not isinstance(content, list):
            raise not_of_protocol("Anthropic")
        cached = count_at(data, "usage", "cache_read_input_tokens") or 0
        written = count_at(data, "usage", "cache_creation_input_tokens") or 0
        fresh = count_at(data, "usage", "input_tokens")
        return Reply(
            _answer(content),
            None if fresh is None else fresh + cached + written,
            count_at(data, "usage", "output_tokens"),
            cached,
            written,
            FINISHES.get(text_at(data, "stop_reason"), "stop"),
        )


def _messages(prompt: Prompt) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    return [{"role": roles[index % 2], "content": text} for index, text in enumerate(prompt.turns)]


def _answer(content: list[Any]) -> str:
    """The tool's input; the text of a model that only talks about it."""
    for block in content:
        if text_at(block, "type") == "tool_use":
            return encode(at(block, "input")).decode()
    return _text_of(content)


def _text_of(content: list[Any]) -> str:
    return "".join(text_at(block, "text") for block in content)
