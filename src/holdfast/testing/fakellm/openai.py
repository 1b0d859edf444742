"""The OpenAI protocol, from the server's side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any

from holdfast.testing.fakellm.protocol import (
    Answer,
    ReceivedQuestion,
    RequestRejected,
    need,
    only,
    schema_in_words,
)
from holdfast.testing.fakellm.schemas import check_strict

PARAMETERS = (
    "model",
    "messages",
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "response_format",
)


class OpenAIProtocol:
    """`lacks` names what this server does not know: `json_schema`, `json_object`, `temperature`,
    `max_tokens`, …"""

    name = "openai"
    base = "/v1"

    def __init__(self, lacks: Set[str] = frozenset()) -> None:
        self._lacks = lacks

    def claims(self, path: str) -> bool:
        return path == "/v1/chat/completions"

    def key(self, headers: Mapping[str, str]) -> str:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        return key if scheme == "Bearer" else ""

    def read(self, path: str, headers: Mapping[str, str], data: Any) -> ReceivedQuestion:
        need(isinstance(data, dict), "We could not parse the JSON body of your request.")
        only(data, *PARAMETERS)
        self._refuse_unknown(data)
        need(
            isinstance(data.get("model"), str) and data["model"],
            "you must provide a model parameter",
            "model",
        )
        system, turns = _conversation(data.get("messages"))
        task, schema = self._format(data.get("response_format"), system, str(data["messages"]))
        need(data.get("temperature", 0) == 0, "temperature is not 0", "temperature")
        return ReceivedQuestion(task, system, turns, schema, data["model"], _limit(data))

    def reply(self, question: ReceivedQuestion, answer: Answer) -> Any:
        refused = answer.finish == "refusal"
        message = {
            "role": "assistant",
            "content": None if refused else answer.text,
            "refusal": answer.text if refused else None,
        }
        return {
            "id": "chatcmpl-fake",
            "object": "chat.completion",
            "model": question.model,
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "finish_reason": "length" if answer.finish == "length" else "stop",
                }
            ],
            "usage": {
                "prompt_tokens": answer.input_tokens,
                "completion_tokens": answer.output_tokens,
                "total_tokens": answer.input_tokens + answer.output_tokens,
                "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
            },
        }

    def error(
        self, status: int, message: str, param: str, retry_after: float | None
    ) -> tuple[dict[str, str], Any]:
        headers = {}
        if retry_after is not None:
            headers = {
                "retry-after": str(-int(-retry_after // 1)),
                "retry-after-ms": str(int(retry_after * 1000)),
            }
        kind = "invalid_request_error" if status < 500 else "server_error"
        return headers, {
            "error": {"message": message, "type": kind, "param": param or None, "code": None}
        }

    def _refuse_unknown(self, data: dict[str, Any]) -> None:
        for name in ("max_tokens", "max_completion_tokens", "temperature"):
            if name in data and name in self._lacks:
                raise RequestRejected(
                    f"Unsupported parameter: '{name}' is not supported with this model.", name
                )

    def _format(self, format: Any, system: str, messages: str) -> tuple[str, dict[str, Any]]:
        """Task and schema."""
        kind = format.get("type") if isinstance(format, dict) else None
        if kind in self._lacks:
            raise RequestRejected(
                f"Invalid parameter: 'response_format' of type '{kind}' is not supported with this "
                "model."
            )
        if kind == "json_schema":
            return _strict_format(format)
        if kind == "json_object":
            need(
                "json" in messages.lower(),
                "'messages' must contain the word 'json' in some form, to use 'response_format' of "
                "type 'json_object'.",
                "messages",
            )
        else:
            need(
                format is None,
                f"Invalid value: '{kind}' for response_format.type",
                "response_format",
            )
        schema = schema_in_words(system)
        return schema.get("title", ""), schema


def _strict_format(response_format: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    only(response_format, "type", "json_schema")
    json_schema = response_format.get("json_schema")
    need(
        isinstance(json_schema, dict),
        "Missing required parameter: 'response_format.json_schema'.",
        "response_format",
    )
    assert isinstance(json_schema, dict)
    only(json_schema, "name", "strict", "schema", "description")
    name = json_schema.get("name")
    need(
        isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name),
        "Invalid 'response_format.json_schema.name'",
        "response_format",
    )
    need(json_schema.get("strict") is True, "strict is not true", "response_format")
    check_strict(json_schema.get("schema"), f"response_format '{name}'")
    return str(name), json_schema["schema"]


def _conversation(messages: Any) -> tuple[str, tuple[str, ...]]:
    """The system message and the turns after it."""
    need(isinstance(messages, list) and len(messages) >= 2, "'messages' is too short", "messages")
    for message in messages:
        need(
            isinstance(message, dict) and set(message) == {"role", "content"},
            "Invalid message",
            "messages",
        )
        need(
            isinstance(message["content"], str) and message["content"],
            "Invalid content",
            "messages",
        )
    roles = [message["role"] for message in messages]
    expected = ["system", *(("user", "assistant")[index % 2] for index in range(len(roles) - 1))]
    need(roles == expected and roles[-1] == "user", f"Invalid roles: {roles}", "messages")
    return messages[0]["content"], tuple(message["content"] for message in messages[1:])


def _limit(data: dict[str, Any]) -> int:
    limits = [data[name] for name in ("max_tokens", "max_completion_tokens") if name in data]
    need(
        len(limits) == 1,
        "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
    )
    need(isinstance(limits[0], int) and limits[0] > 0, "Invalid 'max_tokens'", "max_tokens")
    return limits[0]
