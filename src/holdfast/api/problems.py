"""Errors as answers: problem documents (RFC 9457), each with what happened, to what, and what to
do."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from msgspec import UNSET, Struct, UnsetType
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from holdfast.api.pages import problem_page
from holdfast.errors import Conflict, HoldfastError, RunFailed, Transient
from holdfast.services.problems import TYPE, UNKNOWN, kind_of

log = logging.getLogger("holdfast.api")

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = 5
"""Seconds after which a caller may try again, where nothing better is known."""


class ProblemDetail(Struct):
    """One thing that is wrong with a request; `pointer` says where in it."""

    pointer: str
    detail: str


class ProblemDocument(Struct, omit_defaults=True):
    """What every error answers."""

    type: str
    title: str
    status: int
    code: str
    detail: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    run_id: str | UnsetType = UNSET
    """The run that stands in the way."""
    errors: list[ProblemDetail] | UnsetType = UNSET


class Problem(Exception):  # an answer, and no failure of ours
    """Raise it in a route for an answer that is no error of holdfast's own."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str = "",
        *,
        title: str = "",
        headers: Mapping[str, str] | None = None,
        run_id: str | None = None,
        errors: list[ProblemDetail] | None = None,
    ) -> None:
        super().__init__(detail or title)
        self.status = status
        self.headers = headers or {}
        self.document = ProblemDocument(
            TYPE + code,
            title or HTTPStatus(status).phrase,
            status,
            code,
            detail or UNSET,
            UNSET,
            run_id or UNSET,
            errors or UNSET,
        )


def problem_answer(request: Request, problem: Problem) -> Response:
    request_id = request.scope.get("state", {}).get("request_id")
    document = msgspec.structs.replace(problem.document, request_id=request_id or UNSET)
    if request.scope.get("state", {}).get("shows_pages"):
        return problem_page(request, document, problem.headers)
    return Response(
        msgspec.json.encode(document),
        problem.status,
        {"Cache-Control": "no-store", **problem.headers},
        MEDIA_TYPE,
    )


def from_error(error: HoldfastError) -> Problem:
    """An error of holdfast as a problem; its message goes to the caller."""
    kind = kind_of(error)
    headers: dict[str, str] = {}
    if isinstance(error, Transient):
        wait = RETRY_AFTER if error.retry_after is None else math.ceil(error.retry_after)
        headers["Retry-After"] = str(max(1, wait))
    run_id = error.run_id if isinstance(error, Conflict | RunFailed) else None
    detail = _text(error)
    return Problem(kind.status, kind.code, detail, title=kind.title, headers=headers, run_id=run_id)


def _text(error: object) -> str:
    """A message without half surrogate pairs, which no JSON can carry."""
    return str(error).encode(errors="replace").decode()


def install(app: FastAPI) -> None:
    """Answer everything that goes wrong with a problem document."""
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(HoldfastError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)


async def _on_problem(request: Request, error: Any) -> Response:
    return problem_answer(request, error)


async def _on_error(request: Request, error: Any) -> Response:
    problem = from_error(error)
    if problem.status >= 500:
        log.warning("%s: %s: %s", _asked(request), type(error).__name__, error)
    return problem_answer(request, problem)


def _asked(request: Request) -> str:
    """What was asked for, on one line: a path may hold any character."""
    return f"{request.method} {quote(request.url.path)}"


async def _on_invalid(request: Request, error: Any) -> Response:
    details = [
        ProblemDetail(_pointer(wrong["loc"]), _text(wrong["msg"])) for wrong in error.errors()
    ]
    first = f"{details[0].pointer}: {details[0].detail}" if details else ""
    return problem_answer(
        request,
        Problem(422, "invalid-input", first, title="The request is not valid", errors=details),
    )


def _pointer(where: tuple[Any, ...]) -> str:
    """`query/limit`, `header/prefer`, or a JSON pointer into the body."""
    kind, *path = [str(part) for part in where]
    return "/".join([kind, *path])


async def _on_http(request: Request, error: Any) -> Response:
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    detail = {
        404: f"there is nothing at {request.url.path}",
        405: f"{request.method} is not possible at {request.url.path}",
    }.get(error.status_code, str(error.detail))
    problem = Problem(error.status_code, code, _text(detail), headers=error.headers)
    return problem_answer(request, problem)


class CatchBugs:
    """Middleware: what nobody has foreseen is a problem for the caller, and a traceback in the
    log."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        has_begun = False

        async def noting_send(message: Any) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, noting_send)
        except Exception as error:
            if has_begun or scope["type"] != "http":
                raise
            request = Request(scope)
            log.exception("%s failed", _asked(request))
            detail = f"unexpected {type(error).__name__}; the log of the service says more"
            problem = Problem(500, UNKNOWN.code, detail, title=UNKNOWN.title)
            await problem_answer(request, problem)(scope, receive, send)
