"""The rules that vendors put on schemas, checked as strictly as they do."""

from __future__ import annotations

from typing import Any

from holdfast.testing.fakellm.protocol import need

STRICT = {
    "type",
    "description",
    "enum",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "title",
}
OPENAPI = STRICT - {"additionalProperties"} | {"nullable", "propertyOrdering"}
TYPES = {"object", "array", "string", "number", "integer", "boolean", "null"}
MAX_DEPTH = 10
MAX_PROPERTIES = 5000


def check_strict(schema: Any, where: str) -> None:
    """OpenAI's: closed objects, everything required, few keywords, an object at the root."""
    _root(schema, where)
    budget = [MAX_PROPERTIES]
    _strict(schema, where, (), budget)


def check_openapi(schema: Any, where: str) -> None:
    """Google's older kind: a subset of OpenAPI's schema object, one type each, no closed
    objects."""
    _root(schema, where)
    _openapi(schema, where, ())


def _root(schema: Any, where: str) -> None:
    need(isinstance(schema, dict), f"{where}: the schema is not an object", where)
    need(
        schema.get("type") == "object",
        f'Invalid schema for {where}: schema must be of "type": "object"',
        where,
    )


def _strict(node: Any, where: str, path: tuple[str, ...], budget: list[int]) -> None:
    problem = f"Invalid schema for {where}: In context={path}, "
    need(isinstance(node, dict), f"{problem}a schema is an object", where)
    need(len(path) <= 2 * MAX_DEPTH, f"{problem}more than {MAX_DEPTH} levels", where)
    for keyword in node:
        need(keyword in STRICT, f"{problem}'{keyword}' is not permitted", where)
    need(
        "anyOf" in node or node.get("type") in TYPES,
        f"{problem}schema must have a 'type' key",
        where,
    )
    if node.get("type") == "object":
        _closed(node, problem, where)
        budget[0] -= len(node["properties"])
        need(budget[0] >= 0, f"{problem}more than {MAX_PROPERTIES} properties", where)
        for name, child in node["properties"].items():
            _strict(child, where, (*path, "properties", name), budget)
    if node.get("type") == "array":
        need("items" in node, f"{problem}array schema missing items", where)
        _strict(node["items"], where, (*path, "items"), budget)
    for index, child in enumerate(node.get("anyOf", [])):
        _strict(child, where, (*path, f"anyOf[{index}]"), budget)


def _closed(node: dict[str, Any], problem: str, where: str) -> None:
    need(
        node.get("additionalProperties") is False,
        f"{problem}'additionalProperties' is required to be supplied and to be false",
        where,
    )
    need(
        isinstance(node.get("properties"), dict),
        f"{problem}object schema missing properties",
        where,
    )
    need(
        sorted(node.get("required", [])) == sorted(node["properties"]),
        f"{problem}'required' is required to be supplied and to be an array including every key in "
        "properties",
        where,
    )


def _openapi(node: Any, where: str, path: tuple[str, ...]) -> None:
    location = ".".join((where, *path))
    need(isinstance(node, dict), f"Invalid value at '{location}'", where)
    for keyword in node:
        need(
            keyword in OPENAPI,
            f"Unknown name \"{keyword}\" at '{location}': Cannot find field.",
            where,
        )
    need(
        "anyOf" in node or node.get("type") in TYPES - {"null"},
        f"Proto field is not set: '{location}.type'",
        where,
    )
    for name, child in node.get("properties", {}).items():
        _openapi(child, where, (*path, "properties", name))
    if "items" in node:
        _openapi(node["items"], where, (*path, "items"))
    for index, child in enumerate(node.get("anyOf", [])):
        _openapi(child, where, (*path, f"any_of[{index}]"))
