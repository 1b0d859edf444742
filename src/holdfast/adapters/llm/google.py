"""Google's generateContent: Gemini, held to a JSON Schema. The key is sent in a header, never in
the URL."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

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
    text_at,
)
from holdfast.adapters.llm.schema import for_openapi

FINISHES: dict[str, Finish] = {
    "MAX_TOKENS": "length",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"), "declined"
    ),
}


class Google:
    """`models/…:generateContent` with a JSON Schema, or the older kind of schema where that is
    unknown."""

    def __init__(self, model: str) -> None:
        self._model = quote(model, safe="/") if "/" in model else f"models/{quote(model)}"
        self.dialect = ServerDialect(
            schema=(r"response_?json_?schema", ("json", "openapi")),
            temperature=(r"temperature", ("zero", "default")),
        )

    def request(self, prompt: Prompt, key: ApiKey) -> VendorRequest:
        shape = self.dialect.shape
        payload: dict[str, Any] = {
            "responseMimeType": "application/json",
            "maxOutputTokens": prompt.max_output,
        }
        if shape["schema"] == "json":
            payload["responseJsonSchema"] = prompt.schema
        else:
            payload["responseSchema"] = for_openapi(prompt.schema)
        if shape["temperature"] == "zero":
            payload["temperature"] = 0
        body = {
            "systemInstruction": {"parts": [{"text": prompt.system}]},
            "contents": _contents(prompt),
            "generationConfig": payload,
        }
        headers = {"x-goog-api-key": key.reveal()} if key else {}
        return VendorRequest(f"/{self._model}:generateContent", headers, encode(body), shape)

    def reply(self, data: Any) -> Reply:
        blocked = text_at(data, "promptFeedback", "blockReason")
        candidate = at(data, "candidates", 0)
        if not blocked and not isinstance(candidate, dict):
            raise not_of_protocol("Google")
        finish = text_at(candidate, "finishReason")
        answer_tokens = count_at(data, "usageMetadata", "candidatesTokenCount")
        thinking_tokens = count_at(data, "usageMetadata", "thoughtsTokenCount")
        return Reply(
            blocked
            or _text(at(candidate, "content", "parts"))
            or text_at(candidate, "finishMessage"),
            count_at(data, "usageMetadata", "promptTokenCount"),
            None
            if answer_tokens is None and thinking_tokens is None
            else (answer_tokens or 0) + (thinking_tokens or 0),
            count_at(data, "usageMetadata", "cachedContentTokenCount") or 0,
            finish="declined" if blocked else FINISHES.get(finish, "stop"),
        )


def _contents(prompt: Prompt) -> list[dict[str, Any]]:
    roles = ("user", "model")
    return [
        {"role": roles[index % 2], "parts": [{"text": text}]}
        for index, text in enumerate(prompt.turns)
    ]


def _text(parts: Any) -> str:
    """The text of the answer, without the model's reasoning."""
    if not isinstance(parts, list):
        return ""
    return "".join(text_at(part, "text") for part in parts if at(part, "thought") is not True)
