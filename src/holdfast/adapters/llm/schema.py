"""The JSON Schema of an answer, in the narrow form that every vendor enforces.

Each object is closed and all its properties are required; references are written out; what vendors
do not enforce (lengths, patterns, defaults) is left out and checked by us when the answer has come.
What can't be said in this form is a mistake in our code, and raises `Fix`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from holdfast.adapters.llm.answer_types import answer_type
from holdfast.errors import Fix

KEPT = ("type", "description", "enum")


@lru_cache(maxsize=256)
def schema_of(answer: Any, task: str) -> dict[str, Any]:
    """The strict schema of an answer type, with the task as its title. Shared: not to be
    changed."""
    kind = answer_type(answer)
    return {"title": task, **_Strict(kind.name, kind.definitions).schema(kind.schema, ())}


def for_openapi(schema: dict[str, Any]) -> dict[str, Any]:
    """The same in the older form of Google's: no closed objects, and `nullable` in the place of
    null."""
    plain = {
        key: value for key, value in schema.items() if key not in ("additionalProperties", "anyOf")
    }
    if "properties" in schema:
        plain["properties"] = {
            name: for_openapi(part) for name, part in schema["properties"].items()
        }
        plain["propertyOrdering"] = list(schema["properties"])
    if "items" in schema:
        plain["items"] = for_openapi(schema["items"])
    if "anyOf" in schema:
        others = [for_openapi(part) for part in schema["anyOf"] if part.get("type") != "null"]
        plain |= others[0] if len(others) == 1 else {"anyOf": others}
        plain["nullable"] = len(others) < len(schema["anyOf"])
    return plain


class _Strict:
    def __init__(self, name: str, definitions: dict[str, Any]) -> None:
        self._name = name
        self._definitions = definitions

    def schema(self, node: dict[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
        """The strict form of a part. `above` are the references that it is inside of."""
        if "$ref" in node:
            return self._referenced(node, above)
        strict = {key: node[key] for key in KEPT if key in node}
        if "const" in node:
            strict["enum"] = [node["const"]]
        choices = node.get("anyOf") or node.get("oneOf")
        if choices:
            strict["anyOf"] = [self.schema(choice, above) for choice in choices]
        elif node.get("type") == "object":
            strict |= self._object(node, above)
        elif node.get("type") == "array":
            strict["items"] = self._items(node, above)
        elif "type" not in strict:
            strict["type"] = self._type_of(strict.get("enum", ()))
        return strict

    def _type_of(self, choices: Sequence[Any]) -> str:
        """The type of an enumeration that does not say it (msgspec's do not)."""
        types = {type(choice) for choice in choices}
        if types not in ({str}, {int}):
            raise self._impossible("a field of any type")
        return "string" if types == {str} else "integer"

    def _referenced(self, node: dict[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name in above:
            raise self._impossible(f"{name}, which holds itself")
        described = {"description": node["description"]} if "description" in node else {}
        return self.schema(self._definitions[name], (*above, name)) | described

    def _object(self, node: dict[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
        properties = node.get("properties", {})
        if not properties or isinstance(node.get("additionalProperties"), dict):
            raise self._impossible("a mapping with free keys: use a list of pairs")
        return {
            "properties": {name: self.schema(part, above) for name, part in properties.items()},
            "required": list(properties),
            "additionalProperties": False,
        }

    def _items(self, node: dict[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
        if "prefixItems" in node or not node.get("items"):
            raise self._impossible(
                "a tuple, or a list of anything: use a model or list[…] of one type"
            )
        return self.schema(node["items"], above)

    def _impossible(self, problem: str) -> Fix:
        return Fix(f"{self._name} can't be an answer: vendors enforce no schema that has {problem}")
