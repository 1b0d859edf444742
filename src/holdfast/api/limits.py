"""What every request goes through: an id, a bound on the size of its body, HEAD as GET."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Any

from starlette.requests import Request

from holdfast.api.problems import Problem, problem_answer
from holdfast.model.ids import new_token

Scope = dict[str, Any]

LINGER = 1.0
"""Seconds for which a caller may go on sending what was refused."""
LINGER_BYTES = 32 * 1024 * 1024
"""How much of it is thrown away at most."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


class RequestId:
    """Takes the caller's `X-Request-Id`, or makes one, and answers with it."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        sent_id = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        request_id = sent_id if _REQUEST_ID.fullmatch(sent_id) else new_token()
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_id(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], (b"x-request-id", request_id.encode())]
                message = {**message, "headers": headers}
            await send(message)

        return await self._app(scope, receive, send_with_id)


class AnswerHead:
    """Answers HEAD as GET, without the body: whoever looks whether something is there need not know
    which paths are for that."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            return await self._app(scope, receive, send)
        has_answered = False

        async def send_head(message: Any) -> None:
            nonlocal has_answered
            if message["type"] == "http.response.start":
                await send(message)
            elif not has_answered:  # a stream ends here, as its caller needs no more of it
                has_answered = True
                await send({"type": "http.response.body", "body": b""})

        return await self._app({**scope, "method": "GET"}, receive, send_head)


class BodyLimit:
    """Answers 413 for a body above the limit, without reading it where its length is announced, and
    closes the connection: nobody has to take in the rest."""

    def __init__(self, app: Any, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > self._limit:
            answer = problem_answer(Request(scope), self._too_large())
            return await answer(scope, receive, _closing(receive, send))
        received = 0

        async def bounded() -> Any:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                raise self._too_large()
            return message

        closing = _closing(receive, send)

        async def send_and_perhaps_close(message: Any) -> None:
            await (closing if received > self._limit else send)(message)

        return await self._app(scope, bounded, send_and_perhaps_close)

    def _too_large(self) -> Problem:
        return Problem(
            413,
            "too-large",
            f"the body is larger than {self._limit} bytes; the setting http.max_body allows more",
        )


def _closing(receive: Any, send: Any) -> Any:
    """A `send` for the last answer on a connection, of whose request more may still come. It is
    thrown away for a moment, while the caller reads the answer: a connection that is closed at once
    is reset, and the answer is lost with it."""

    async def send_and_close(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = [*message["headers"], (b"connection", b"close")]
            await send({**message, "headers": headers})
            return
        await send({**message, "more_body": True})
        if message.get("more_body"):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                await _discard(receive)
        await send({"type": "http.response.body", "body": b""})

    return send_and_close


async def _discard(receive: Any) -> None:
    discarded = 0
    while discarded < LINGER_BYTES:
        rest = await receive()
        if rest["type"] != "http.request" or not rest["more_body"]:
            return
        discarded += len(rest["body"])
