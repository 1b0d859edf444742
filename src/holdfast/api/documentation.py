"""What routes say about themselves in the OpenAPI document: the shapes are those of `services/`,
which FastAPI does not know."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.api.problems import MEDIA_TYPE, ProblemDocument

REF = "#/components/schemas/{name}"
_shapes: dict[str, Any] = {}
"""Everything that a route takes or answers, by how it is written."""


def schema(kind: Any) -> dict[str, Any]:
    """A reference to a shape, or the shape itself if it has no name."""
    _shapes[str(kind)] = kind
    [schema], _ = msgspec.json.schema_components([kind], ref_template=REF)
    return schema


def components() -> dict[str, Any]:
    """The named shapes of all routes."""
    _, named = msgspec.json.schema_components(list(_shapes.values()), ref_template=REF)
    return named


PROBLEM = {
    "description": "What went wrong, and what to do.",
    "content": {MEDIA_TYPE: {"schema": schema(ProblemDocument)}},
}


def documented(
    answers: Any = None,
    *,
    status: int = 200,
    description: str = "",
    body: Any = None,
    more: dict[int | str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Arguments for a route: what it answers and takes. `answers` is a shape, or a media type for
    what is no JSON."""
    answer: dict[str, Any] = {"description": description or "Done."}
    if isinstance(answers, str):
        answer["content"] = {answers: {"schema": {"type": "string", "format": "binary"}}}
    elif answers is not None:
        answer["content"] = {"application/json": {"schema": schema(answers)}}
    route: dict[str, Any] = {
        "status_code": status,
        "response_model": None,
        "responses": {status: answer, **(more or {}), "default": PROBLEM},
    }
    if body is not None:
        content = {"application/json": {"schema": schema(body)}}
        route["openapi_extra"] = {"requestBody": {"content": content, "required": False}}
    return route
