"""The Google protocol, from the server's side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any

from holdfast.testing.fakellm.protocol import Answer, ReceivedQuestion, need, only
from holdfast.testing.fakellm.schemas import check_openapi, check_strict

PATH = re.compile(r"/google/v1beta/models/([^/:]+):generateContent")
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


class GoogleProtocol:
    """`lacks` names what this server does not know: `responseJsonSchema`, `temperature`."""

    name = "google"
    base = "/google/v1beta"

    def __init__(self, lacks: Set[str] = frozenset()) -> None:
        self._lacks = lacks

    def claims(self, path: str) -> bool:
        return PATH.fullmatch(path.partition("?")[0]) is not None

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("x-goog-api-key", "")

    def read(self, path: str, headers: Mapping[str, str], data: Any) -> ReceivedQuestion:
        match = PATH.fullmatch(path)
        need(match, "a key in the URL ends up in logs: it belongs into the header")
        assert match is not None
        need(isinstance(data, dict), "Invalid JSON payload received.")
        only(data, "systemInstruction", "contents", "generationConfig")
        task, schema, limit = self._generation_config(data.get("generationConfig"))
        system = _parts(data.get("systemInstruction"), "system_instruction")
        return ReceivedQuestion(
            task or "", system, _turns(data.get("contents")), schema, match[1], limit
        )

    def reply(self, question: ReceivedQuestion, answer: Answer) -> Any:
        usage = {
            "promptTokenCount": answer.input_tokens,
            "candidatesTokenCount": answer.output_tokens,
            "cachedContentTokenCount": answer.cached_tokens,
            "totalTokenCount": answer.input_tokens + answer.output_tokens,
        }
        if answer.finish == "refusal":
            return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": usage}
        candidate = {
            "content": {"role": "model", "parts": [{"text": answer.text}]},
            "finishReason": "MAX_TOKENS" if answer.finish == "length" else "STOP",
            "index": 0,
        }
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": question.model}

    def error(
        self, status: int, message: str, param: str, retry_after: float | None
    ) -> tuple[dict[str, str], Any]:
        error: dict[str, Any] = {
            "code": status,
            "message": message,
            "status": STATUSES.get(status, "INTERNAL"),
        }
        if retry_after is not None:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            error["details"] = [{"@type": kind, "retryDelay": f"{retry_after:.3f}s"}]
        return {}, {"error": error}

    def _generation_config(self, config: Any) -> tuple[str | None, dict[str, Any], int]:
        """Task, schema and limit."""
        need(isinstance(config, dict), "generation_config: expected here")
        only(
            config,
            "responseMimeType",
            "responseJsonSchema",
            "responseSchema",
            "maxOutputTokens",
            "temperature",
        )
        for name in self._lacks:
            need(
                name not in config,
                f"Invalid JSON payload received. Unknown name \"{name}\" at 'generation_config'",
            )
        need(
            config.get("responseMimeType") == "application/json",
            "response_mime_type: application/json is needed",
        )
        limit = config.get("maxOutputTokens")
        need(isinstance(limit, int) and limit > 0, "max_output_tokens: expected here")
        need(
            ("responseJsonSchema" in config) != ("responseSchema" in config),
            "exactly one kind of schema is needed",
        )
        if "responseJsonSchema" in config:
            schema = config["responseJsonSchema"]
            check_strict(schema, "generation_config.response_json_schema")
            return schema.get("title"), schema, limit
        check_openapi(config["responseSchema"], "generation_config.response_schema")
        return config["responseSchema"].get("title"), config["responseSchema"], limit


def _parts(content: Any, where: str) -> str:
    need(
        isinstance(content, dict) and isinstance(content.get("parts"), list),
        f"{where}: parts are missing",
    )
    parts = content["parts"]
    texts = [
        str(part["text"]) for part in parts if isinstance(part, dict) and set(part) == {"text"}
    ]
    need(texts and len(texts) == len(parts) and all(texts), f"{where}: parts must not be empty")
    return "".join(texts)


def _turns(contents: Any) -> tuple[str, ...]:
    need(isinstance(contents, list) and contents, "contents: contents is not specified")
    roles = [content.get("role") for content in contents]
    expected = [("user", "model")[index % 2] for index in range(len(roles))]
    need(
        roles == expected and roles[-1] == "user",
        "contents: roles must alternate between user and model",
    )
    return tuple(_parts(content, f"contents[{index}]") for index, content in enumerate(contents))
