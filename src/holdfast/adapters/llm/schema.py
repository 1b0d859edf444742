"""The JSON Schema of an answer, in the narrow form that every vendor enforces.

Each object is closed and all its properties are required; references are written out; what vendors
do not enforce (lengths, patterns, defaults) is left out and checked by us when the answer has come.
What can't be said in this form is a mistake in our code, and raises `Fix`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from holdfast.errors import Fix

KEPT = ("type", "description", "enum")


@lru_cache(maxsize=256)
def schema_of(answer: type[BaseModel], task: str) -> dict[str, Any]:
    """The strict schema of a model, with the task as its title. Shared: not to be changed."""
    full = answer.model_json_schema()
    strict = _Strict(answer.__name__, full.get("$defs", {})).schema(full, ())
    if strict.get("type") != "object":
        raise Fix(f"{answer.__name__} can't be an answer: its JSON Schema is not an object")
    return {"title": task, **strict}


def for_openapi(schema: dict[str, Any]) -> dict[str, Any]:
    """The same in the older form of Google's: no closed objects, and `nullable` in the place of
    null."""
    plain = {
        key: value for key, value in schema.items() if key not in ("additionalProperties", "anyOf")
    }
    if "properties" in schema:
        plain["properties"] = {
            name: for_openapi(each) for name, each in schema["properties"].items()
        }
        plain["propertyOrdering"] = list(schema["properties"])
    if "items" in schema:
        plain["items"] = for_openapi(schema["items"])
    if "anyOf" in schema:
        others = [for_openapi(each) for each in schema["anyOf"] if each.get("type") != "null"]
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
            strict["anyOf"] = [self.schema(each, above) for each in choices]
        elif node.get("type") == "object":
            strict |= self._object(node, above)
        elif node.get("type") == "array":
            strict["items"] = self._items(node, above)
        elif "type" not in node:
            raise self._impossible("a field of any type")
        return strict

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
            "properties": {name: self.schema(each, above) for name, each in properties.items()},
            "required": list(properties),
            "additionalProperties": False,
        }

    def _items(self, node: dict[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
        if "prefixItems" in node or not node.get("items"):
            raise self._impossible(
                "a tuple, or a list of anything: use a model or list[…] of one type"
            )
        return self.schema(node["items"], above)

    def _impossible(self, what: str) -> Fix:
        return Fix(f"{self._name} can't be an answer: vendors enforce no schema that has {what}")
