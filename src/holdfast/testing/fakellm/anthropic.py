"""The Anthropic protocol, from the server's side."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set
from typing import Any

from holdfast.testing.fakellm.protocol import Answer, ReceivedQuestion, need, only
from holdfast.testing.fakellm.schemas import check_strict

ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class AnthropicProtocol:
    """`lacks` names what this server refuses: `temperature`, `tool_choice`."""

    name = "anthropic"
    base = "/anthropic/v1"

    def __init__(self, lacks: Set[str] = frozenset()) -> None:
        self._lacks = lacks

    def claims(self, path: str) -> bool:
        return path == "/anthropic/v1/messages"

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("x-api-key", "")

    def read(self, path: str, headers: Mapping[str, str], data: Any) -> ReceivedQuestion:
        need(
            headers.get("anthropic-version") == "2023-06-01",
            "anthropic-version: header is required",
        )
        need(isinstance(data, dict), "The request body is not valid JSON")
        only(
            data, "model", "max_tokens", "system", "messages", "tools", "tool_choice", "temperature"
        )
        need(isinstance(data.get("model"), str) and data["model"], "model: Field required")
        limit = data.get("max_tokens")
        need(isinstance(limit, int) and limit > 0, "max_tokens: Field required")
        need(
            "temperature" not in data or "temperature" not in self._lacks,
            "`temperature` is deprecated for this model.",
        )
        name, schema = self._tool(data)
        return ReceivedQuestion(
            name,
            _system(data.get("system")),
            _turns(data.get("messages")),
            schema,
            data["model"],
            limit,
        )

    def reply(self, question: ReceivedQuestion, answer: Answer) -> Any:
        if answer.finish == "refusal":
            content: list[dict[str, Any]] = (
                [{"type": "text", "text": answer.text}] if answer.text else []
            )
        else:
            content = [_block(question, answer)]
        stops = {"stop": "tool_use", "length": "max_tokens", "refusal": "refusal"}
        return {
            "id": "msg_fake",
            "type": "message",
            "role": "assistant",
            "model": question.model,
            "content": content,
            "stop_reason": stops[answer.finish],
            "usage": {
                "input_tokens": answer.input_tokens - answer.cached_tokens - answer.written_tokens,
                "cache_read_input_tokens": answer.cached_tokens,
                "cache_creation_input_tokens": answer.written_tokens,
                "output_tokens": answer.output_tokens,
            },
        }

    def error(
        self, status: int, message: str, param: str, retry_after: float | None
    ) -> tuple[dict[str, str], Any]:
        headers = {"retry-after": str(-int(-retry_after // 1))} if retry_after is not None else {}
        kind = ERRORS.get(status, "api_error")
        return headers, {"type": "error", "error": {"type": kind, "message": message}}

    def _tool(self, data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        tools = data.get("tools")
        need(
            isinstance(tools, list) and len(tools) == 1, "tools: exactly one tool is expected here"
        )
        assert isinstance(tools, list)
        tool = tools[0]
        only(tool, "name", "description", "input_schema")
        need(
            re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool.get("name", "")),
            "tools.0.name: String should match pattern",
        )
        check_strict(tool.get("input_schema"), "tools.0.input_schema")
        choice = data.get("tool_choice")
        if "tool_choice" in self._lacks:
            need(
                choice == {"type": "auto"},
                "tool_choice forces tool use is not compatible with this model",
            )
        else:
            need(
                choice == {"type": "tool", "name": tool["name"]},
                "tool_choice: does not force the tool",
            )
        return tool["name"], tool["input_schema"]


def _block(question: ReceivedQuestion, answer: Answer) -> dict[str, Any]:
    """The use of the tool; text when the answer is not JSON, as a model that forgets the tool would
    give."""
    try:
        value = json.loads(answer.text)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return {"type": "tool_use", "id": "toolu_fake", "name": question.task, "input": value}
    return {"type": "text", "text": answer.text}


def _system(blocks: Any) -> str:
    need(isinstance(blocks, list) and blocks, "system: a list of blocks is expected here")
    for block in blocks:
        only(block, "type", "text", "cache_control")
        need(
            block.get("type") == "text" and block.get("text"),
            "system: text content blocks must be non-empty",
        )
    need(
        blocks[-1].get("cache_control") == {"type": "ephemeral"},
        "system: the prefix is not marked for the cache",
    )
    return "".join(block["text"] for block in blocks)


def _turns(messages: Any) -> tuple[str, ...]:
    need(isinstance(messages, list) and messages, "messages: Field required")
    for index, message in enumerate(messages):
        only(message, "role", "content")
        need(
            message.get("role") == ("user", "assistant")[index % 2],
            "messages: roles must alternate",
        )
        text = message.get("content")
        need(
            isinstance(text, str) and text.strip(),
            f"messages.{index}: text content blocks must be non-empty",
        )
    need(len(messages) % 2 == 1, "messages: the last one must be the user's")
    return tuple(message["content"] for message in messages)
