"""As much of HTTP/1.1 as a fake needs: requests with a length in, answers with a length out,
connections kept open."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

MAX_BODY = 50 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """Header names are in lower case. `path` is as it was sent, with its query."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class NotHttp(Exception):
    """The bytes are not an HTTP request."""


async def read_request(reader: asyncio.StreamReader) -> HttpRequest | None:
    """The next request, or None when the other side has closed."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise NotHttp from None
        return None
    lines = head.decode("latin-1").split("\r\n")
    method, _, remainder = lines[0].partition(" ")
    path, _, version = remainder.rpartition(" ")
    if version != "HTTP/1.1":
        raise NotHttp(lines[0])
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines[1:-2])
    }
    return HttpRequest(method, path, headers, await _body(reader, headers))


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    length = int(headers.get("content-length", "0"))
    if length > MAX_BODY or "transfer-encoding" in headers:
        raise NotHttp("a body without a (reasonable) length")
    return await reader.readexactly(length)


def render(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """An answer as bytes. A `content-length` among the headers is taken as it is, right or
    wrong."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Overloaded"
    lines = [f"HTTP/1.1 {status} {phrase}"]
    lines += [
        f"{name}: {value}" for name, value in {"content-length": str(len(body)), **headers}.items()
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
