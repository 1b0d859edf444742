"""OpenAI's chat completions, which many other servers speak as well, each in its own dialect."""

from __future__ import annotations

from typing import Any

from holdfast.adapters.llm.api_key import ApiKey
from holdfast.adapters.llm.protocol import (
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


class OpenAI:
    """`chat/completions` with a strict JSON Schema, or as close to it as the server can."""

    def __init__(self, model: str, *, original: bool = True) -> None:
        limits = ("max_completion_tokens", "max_tokens")
        self._model = model
        self.dialect = ServerDialect(
            # Other servers know the older word, and some silently ignore the newer one.
            limit=(r"max_tokens|max_completion_tokens", limits if original else limits[::-1]),
            temperature=(r"temperature", ("zero", "default")),
            # A schema that OpenAI calls invalid is our mistake, and must not be hidden by asking
            # without one.
            format=(
                r"^(?!.*invalid schema).*(response_format|json_schema|json_object)",
                ("schema", "object", "none"),
            ),
        )

    def request(self, prompt: Prompt, key: ApiKey) -> VendorRequest:
        shape = self.dialect.shape
        system = prompt.system if shape["format"] == "schema" else spelled_out(prompt)
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": "system", "content": system}, *_messages(prompt)],
            shape["limit"]: prompt.max_output,
        }
        if shape["temperature"] == "zero":
            body["temperature"] = 0
        if shape["format"] != "none":
            body["response_format"] = _response_format(prompt, shape["format"])
        headers = {"authorization": f"Bearer {key.reveal()}"} if key else {}
        return VendorRequest("/chat/completions", headers, encode(body), shape)

    def reply(self, data: Any) -> Reply:
        message = at(data, "choices", 0, "message")
        if not isinstance(message, dict):
            raise not_of_protocol("OpenAI")
        finish = text_at(data, "choices", 0, "finish_reason")
        refusal = text_at(message, "refusal") or (
            "a content filter stopped it" if finish == "content_filter" else ""
        )
        return Reply(
            refusal or text_at(message, "content"),
            count_at(data, "usage", "prompt_tokens"),
            count_at(data, "usage", "completion_tokens"),
            count_at(data, "usage", "prompt_tokens_details", "cached_tokens") or 0,
            finish="declined" if refusal else "length" if finish == "length" else "stop",
        )


def _messages(prompt: Prompt) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    return [{"role": roles[index % 2], "content": text} for index, text in enumerate(prompt.turns)]


def _response_format(prompt: Prompt, way: str) -> dict[str, Any]:
    if way == "object":
        return {"type": "json_object"}
    return {
        "type": "json_schema",
        "json_schema": {"name": prompt.task, "strict": True, "schema": prompt.schema},
    }
