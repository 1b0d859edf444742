"""Answers: JSON made from the shapes of `services/`, with an ETag where asking again is usual."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.services.service import Page

JSON = "application/json"


def answer(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as JSON."""
    return Response(msgspec.json.encode(value), status, headers, JSON)


def tagged(request: Request, value: Any, headers: Mapping[str, str] | None = None) -> Response:
    """A value as JSON with its ETag; 304 for a caller that has it already."""
    return tagged_bytes(request, msgspec.json.encode(value), JSON, headers)


def tagged_bytes(
    request: Request, body: bytes, media_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    all_headers = {"ETag": tag, "Cache-Control": "private, no-cache", **(headers or {})}
    if _has(request.headers.get("if-none-match", ""), tag):
        return Response(None, 304, all_headers)
    return Response(body, 200, all_headers, media_type)


def _has(header: str, tag: str) -> bool:
    known = [part.strip().removeprefix("W/") for part in header.split(",")]
    return tag in known or "*" in known


def page_answer(request: Request, page: Page[Any]) -> Response:
    """A page of a list, with a link to the next one (RFC 8288)."""
    if page.next_cursor is None:
        return answer(page)
    others = [
        (name, value) for name, value in request.query_params.multi_items() if name != "cursor"
    ]
    query = urlencode([*others, ("cursor", page.next_cursor)])
    link = f'<{request.scope["root_path"]}{_path(request)}?{query}>; rel="next"'
    return answer(page, headers={"Link": link})


def _path(request: Request) -> str:
    return request.scope["path"].removeprefix(request.scope["root_path"])
