"""Bodies of requests: bounded, and decoded by the shapes of `services/`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import accumulate
from typing import Any, TypeVar

import msgspec
from fastapi import Depends
from starlette.datastructures import FormData
from starlette.requests import ClientDisconnect, Request

from holdfast.api.problems import Problem, ProblemDetail

T = TypeVar("T")

MAX_DEPTH = 64
"""How deeply JSON may be nested."""
READ_TIMEOUT = 30.0
"""Seconds within which a whole body has to arrive."""
FORM_TIMEOUT = 300.0
"""Seconds within which a form with files has to arrive."""

_STRING = re.compile(rb'"[^"]*+"?')
_BRACKETS = b"[]{}"
_NO_BRACKETS = bytes(set(range(256)) - set(_BRACKETS + b'"'))
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")
"""A bracket as the signed byte by which it changes the depth."""
_PIECE = 65536
_PLACE = re.compile(r" - at `\$(?P<path>[^`]*)`$")


def body_of(kind: type[T]) -> Any:
    """A dependency: the body of a request as a value of that type."""
    decoder = msgspec.json.Decoder(kind)

    async def body(request: Request) -> T:
        return _decoded(decoder, await read_body(request))

    return Depends(body)


async def read_body(request: Request) -> bytes:
    """The whole body. Whoever sends it too slowly is told so; its size is bounded before
    (`limits.py`)."""
    try:
        async with asyncio.timeout(READ_TIMEOUT):
            return await request.body()
    except TimeoutError:
        raise _too_slow(READ_TIMEOUT) from None
    except ClientDisconnect:
        raise Problem(400, "disconnected", "the body did not arrive") from None


@asynccontextmanager
async def read_form(
    request: Request, *, max_files: int, max_fields: int
) -> AsyncIterator[FormData]:
    """A form with files, which are in memory or in files without a name until this ends."""
    try:
        async with asyncio.timeout(FORM_TIMEOUT):
            form = await request.form(max_files=max_files, max_fields=max_fields)
    except TimeoutError:
        raise _too_slow(FORM_TIMEOUT) from None
    except ClientDisconnect:
        raise Problem(400, "disconnected", "the form did not arrive") from None
    try:
        yield form
    finally:
        await form.close()


def _too_slow(seconds: float) -> Problem:
    """Nobody waits for the rest: the connection is closed."""
    return Problem(
        408,
        "too-slow",
        f"the body did not arrive within {seconds:.0f} seconds",
        headers={"Connection": "close"},
    )


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    check_depth(body)
    try:
        return decoder.decode(body or b"{}")
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, "no-json", f"the body is no JSON: {error}") from error


def check_depth(body: bytes) -> None:
    """Refuse what is nested too deeply before anything tries to follow it. It takes time in
    proportion to the length of the body, whatever is in it."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return
    steps = _without_strings(body).translate(_STEPS)
    depth = 0
    for start in range(0, len(steps), _PIECE):
        piece = memoryview(steps)[start : start + _PIECE].cast("b")
        depths = list(accumulate(piece, initial=depth))
        if max(depths) > MAX_DEPTH:
            raise Problem(422, "too-deep", f"the body is nested more than {MAX_DEPTH} levels deep")
        depth = depths[-1]


def _without_strings(body: bytes) -> bytes:
    """The brackets of a JSON text that are no part of a string."""
    body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    body = body.translate(None, _NO_BRACKETS)
    return _STRING.sub(b"", body.replace(b'""', b""))


def _invalid(message: str) -> Problem:
    match = _PLACE.search(message)
    pointer = match["path"].replace(".", "/") if match else ""
    detail = ProblemDetail(f"body{pointer}", _PLACE.sub("", message))
    return Problem(422, "invalid-input", message, title="The request is not valid", errors=[detail])
