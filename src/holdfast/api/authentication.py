"""From the headers of a request to its caller.

Without API keys only this machine may call, and every request is the default tenant's. A web page
must not be able to do that through the browser of somebody on this machine, so names of other
hosts and other origins are refused as well."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import Request

from holdfast.api.access import Caller
from holdfast.api.problems import Problem
from holdfast.api.rates import RequestRates
from holdfast.app import Holdfast
from holdfast.engine.cached import Cached
from holdfast.model.api_key import Scope
from holdfast.model.tenant import DEFAULT_TENANT
from holdfast.services.authentication import Rejected

log = logging.getLogger("holdfast.authentication")

COOKIE = "holdfast_session"
"""Of a browser that has logged in. It counts for pages only: a request of any other route needs a
key, whatever cookies come with it."""
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
"""Headers of proxies: one on this machine passes on what others ask."""
CREATE_KEY = "holdfast tenants keys create --first"


@dataclass(frozen=True, slots=True)
class LocalCaller:
    """Somebody on this machine, while there are no keys."""

    tenant: str = DEFAULT_TENANT
    actor: str = "local"

    def may(self, scope: Scope) -> bool:
        return True


class KeyAuthentication:
    """Callers by the API keys of the store. `rate` is how many requests a second each tenant may
    send; 0 is no limit."""

    def __init__(self, holdfast: Holdfast, rate: float = 0.0) -> None:
        self._rates = RequestRates(rate, holdfast.options.clock.monotonic)
        self._authenticator = holdfast.authenticator
        self._sessions = holdfast.page_sessions
        self._keys = holdfast.keys
        self._exist = Cached(self._keys_exist, holdfast.options.clock)

    async def __call__(self, request: Request) -> Caller:
        text = presented_key(request)
        if text is None and not await self._exist.get(""):
            return local_caller(request)
        caller = await self._authenticator.authenticate(text)
        if isinstance(caller, Rejected):
            log.info("a request was refused: key %s is %s", caller.key or "-", caller.reason)
            raise _unauthenticated(text is None)
        self._rates.check(caller.tenant)
        return caller

    async def of_page(self, request: Request) -> Caller:
        """Who looks at a page: also a browser that has logged in (`login.py`)."""
        session = request.cookies.get(COOKIE)
        if session is not None and presented_key(request) is None:
            caller = await self._sessions.caller(session)
            if not isinstance(caller, Rejected):
                self._rates.check(caller.tenant)
                return caller
        return await self(request)

    async def _keys_exist(self, _: str) -> bool:
        return await self._keys.exist()


def presented_key(request: Request) -> str | None:
    """`Authorization: Bearer KEY` or `X-Api-Key: KEY`; never from the URL, which is logged."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    return request.headers.get("x-api-key")


def _unauthenticated(is_missing: bool) -> Problem:
    detail = (
        "give an API key: `Authorization: Bearer KEY` or `X-Api-Key: KEY`"
        if is_missing
        else "the API key is not accepted"
    )
    return Problem(
        401,
        "unauthenticated",
        detail,
        title="Who calls is not known",
        headers={"WWW-Authenticate": 'Bearer realm="holdfast"'},
    )


def local_caller(request: Request) -> Caller:
    """Let in what comes from this machine and was meant for it."""
    if any(name in request.headers for name in FORWARDED):
        raise _refused("the request came by a proxy, on behalf of somebody else")
    host = request.client.host if request.client is not None else ""
    if not is_loopback(host):
        raise _refused(f"{host or 'the caller'} is not this machine")
    named = request.headers.get("host", "")
    if not is_loopback(_hostname(f"//{named}")):
        raise _refused(f"the request was meant for {named!r:.80}")
    origin = request.headers.get("origin")
    if origin is not None and not is_loopback(_hostname(origin)):
        raise _refused(f"it comes from a page of {origin!r:.80}")
    return LocalCaller()


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _refused(why: str) -> Problem:
    return Problem(
        403,
        "no-keys",
        f"{why}; there are no API keys yet, so only this machine may call: make one with "
        f"`{CREATE_KEY}`",
        title="Only this machine may call",
    )
