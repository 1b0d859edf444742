"""Brains that do not read the text: the smallest answer that a schema allows, or a fixed one."""

from __future__ import annotations

from typing import Any


class Minimal:
    """Answers with empty lists, empty strings and zeros."""

    def answer(self, task: str, system: str, text: str, schema: dict[str, Any]) -> Any:
        return smallest(schema)


class Fixed:
    """Answers each task with a value of its own."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers

    def answer(self, task: str, system: str, text: str, schema: dict[str, Any]) -> Any:
        return self._answers[task]


def smallest(schema: dict[str, Any]) -> Any:
    """The smallest value that fits a strict schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return None if {"type": "null"} in schema["anyOf"] else smallest(schema["anyOf"][0])
    if schema["type"] == "object":
        return {name: smallest(property) for name, property in schema.get("properties", {}).items()}
    return {"array": [], "string": "", "number": 0, "integer": 0, "boolean": False, "null": None}[
        schema["type"]
    ]
