"""Pages in a browser while API keys are in use: a form takes a key, and a cookie opens pages.

GET  /login   the form, or who is logged in
POST /login   key=…&next=/report/r-1   a session, and on to the page
POST /logout  the session ends

The cookie is no key: it counts for routes with `PageReader`, which only show something, and its
session ends with its key (`services/page_sessions.py`). Other sites can't use it: it is HttpOnly
and SameSite=Strict, and forms of other sites are refused."""

from __future__ import annotations

import logging
import re
from urllib.parse import parse_qs

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.api.authentication import COOKIE
from holdfast.api.bodies import read_body
from holdfast.api.pages import HEADERS, login_page, root_of, session_page
from holdfast.api.problems import Problem
from holdfast.app import Holdfast
from holdfast.errors import Forbidden
from holdfast.services.authentication import Rejected
from holdfast.services.page_sessions import LIFETIME

log = logging.getLogger("holdfast.authentication")

router = APIRouter(include_in_schema=False)

MAX_FORM = 8192
_LOCAL_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""Printable, and neither `//host` nor a backslash, which browsers read as a slash."""


@router.get("/login")
async def login_form(request: Request) -> Response:
    """The form; or, for a browser that has logged in, who it is."""
    holdfast = await _open(request)
    onward = request.query_params.get("next")
    session = request.cookies.get(COOKIE)
    if session is not None and onward is None:
        caller = await holdfast.page_sessions.caller(session)
        if not isinstance(caller, Rejected):
            return session_page(request, caller.tenant, caller.key)
    return login_page(request, onward=_checked(request, onward))


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Take a key, and give the browser a session."""
    holdfast = await _open(request)
    _refuse_other_sites(request)
    form = await _form(request)
    onward = _checked(request, form.get("next"))
    try:
        session = await holdfast.page_sessions.open(form.get("key", "").strip())
    except Forbidden as error:
        wrong = f"With this key pages can't be seen: {error}."
        return login_page(request, onward=onward, wrong=wrong, status=403)
    if isinstance(session, Rejected):
        log.info("a login was refused: key %s is %s", session.key or "-", session.reason)
        wrong = "The key is not accepted."
        return login_page(request, onward=onward, wrong=wrong, status=401)
    answer = RedirectResponse(onward, 303, HEADERS)
    answer.set_cookie(
        COOKIE,
        session,
        max_age=round(LIFETIME),
        path=root_of(request) or "/",
        secure=_is_secure(request),
        httponly=True,
        samesite="strict",
    )
    return answer


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """End the session of this browser."""
    holdfast = await _open(request)
    _refuse_other_sites(request)
    session = request.cookies.get(COOKIE)
    if session is not None:
        await holdfast.page_sessions.close(session)
    answer = RedirectResponse(f"{root_of(request)}/login", 303, HEADERS)
    answer.delete_cookie(COOKIE, path=root_of(request) or "/", httponly=True, samesite="strict")
    return answer


async def _open(request: Request) -> Holdfast:
    """Errors are pages here."""
    request.state.shows_pages = "text/html" in request.headers.get("accept", "")
    await request.app.state.holdfast.open()
    return request.app.state.holdfast


async def _form(request: Request) -> dict[str, str]:
    body = await read_body(request)
    if len(body) > MAX_FORM:
        raise Problem(413, "too-large", f"the form is larger than {MAX_FORM} bytes")
    try:
        fields = parse_qs(body.decode(errors="replace"), max_num_fields=10)
    except ValueError:
        raise Problem(422, "invalid-input", "the form has more than 10 fields") from None
    return {name: values[0] for name, values in fields.items()}


def _checked(request: Request, onward: str | None) -> str:
    """Where to go on: a path of this service, whatever a link says."""
    if onward is not None and _LOCAL_PATH.fullmatch(onward):
        return onward
    return f"{root_of(request)}/login"


def _refuse_other_sites(request: Request) -> None:
    """Nobody else may log a browser in, as somebody else, or out."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        is_ours = site in ("same-origin", "none")
    else:  # an old browser, or no https; without an origin it is no browser at all
        origin = request.headers.get("origin")
        is_ours = origin is None or origin.partition("://")[2] == request.headers.get("host")
    if not is_ours:
        raise Problem(403, "other-site", "the form was sent by a page of another site")


def _is_secure(request: Request) -> bool:
    """Whether the browser speaks https, also where a proxy in front of us ends it."""
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0]
    return "https" in (request.url.scheme, forwarded.strip().lower())
