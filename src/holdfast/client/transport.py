"""Requests to a service: encoded, sent, tried again where that is safe, and decoded."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from holdfast.client.problems import from_problem
from holdfast.errors import ConfigurationError, StoreUnavailable
from holdfast.model.version import VERSION

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

TRIES = 4
FIRST_PAUSE = 0.2
"""Before the second try, in seconds; it doubles from then on."""
LONGEST_PAUSE = 10.0
"""How long a service may ask to be left alone, in seconds; who asks for more gets no second try."""
UPLOAD_TIME = 300.0
"""Seconds without progress after which an upload is given up."""
BUSY = (429, 502, 503, 504)
"""Answers after which nothing was accepted, or nobody was reached."""
TENANT = "Holdfast-Tenant"


class Transport:
    """One service. `tenant` is sent with every request: only administrators may name one."""

    def __init__(
        self, url: str, api_key: str | None, *, timeout: float = 30.0, tenant: str | None = None
    ) -> None:
        self.url = _checked(url)
        self._timeout = timeout
        self._headers = {"User-Agent": f"holdfast/{VERSION}", "Accept": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        if tenant is not None:
            self._headers[TENANT] = tenant
        self._http: httpx2.AsyncClient | None = None

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    @property
    def http(self) -> httpx2.AsyncClient:
        """Made when it is first used, in the event loop that uses it."""
        if self._http is None:
            made: httpx2.AsyncClient = _httpx().AsyncClient(
                base_url=self.url, headers=self._headers, timeout=self._timeout
            )
            self._http = made
        return self._http

    async def ask(self, method: str, path: str, kind: type[T] | Any, **request: Any) -> T:
        """The answer as a value of that type."""
        return msgspec.json.decode(await self.send(method, path, **request), type=kind)

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        wait: float = 0.0,
        repeatable: bool | None = None,
    ) -> bytes:
        """The answer's bytes. `wait` is how long the service may take beside its work. What was
        not accepted, or not even sent, is tried again; after a lost answer only what is
        `repeatable`: by default what looks and changes nothing."""
        if repeatable is None:
            repeatable = method == "GET"
        httpx2 = _httpx()
        content = None if body is None else msgspec.json.encode(body)
        params = [(n, v) for n, v in (query or {}).items() if v is not None]
        for tries_left in reversed(range(TRIES)):
            pause = FIRST_PAUSE * 2 ** (TRIES - 1 - tries_left) * (0.5 + random.random())
            try:
                response = await self.http.request(
                    method,
                    path,
                    params=httpx2.QueryParams(_flat(params)),
                    content=content,
                    headers={"Content-Type": "application/json", **(headers or {})},
                    timeout=self._timeout + wait,
                )
            except httpx2.TransportError as error:
                was_sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
                if not tries_left or (was_sent and not repeatable):
                    raise self._unreachable(error) from error
                await asyncio.sleep(pause)
                continue
            if response.status_code < 400:
                return response.content
            retry_after = _seconds(response.headers.get("retry-after"))
            if response.status_code not in BUSY or not tries_left or retry_after > LONGEST_PAUSE:
                raise from_problem(response.status_code, response.content, retry_after)
            await asyncio.sleep(max(pause, retry_after))
        raise AssertionError("the last try answers or raises")

    async def upload(
        self, path: str, form: Mapping[str, str], files: Mapping[str, tuple[str, bytes]]
    ) -> tuple[Mapping[str, str], bytes]:
        """Send a form with files, once: the answer's headers and bytes."""
        httpx2 = _httpx()
        timeout = httpx2.Timeout(self._timeout, write=UPLOAD_TIME, read=UPLOAD_TIME)
        try:
            response = await self.http.post(path, data=form, files=files, timeout=timeout)
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error
        if response.status_code >= 400:
            retry_after = _seconds(response.headers.get("retry-after"))
            raise from_problem(response.status_code, response.content, retry_after)
        return response.headers, response.content

    @asynccontextmanager
    async def stream(
        self, path: str, headers: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[str]]:
        """The lines of an event stream."""
        httpx2 = _httpx()
        all_headers = {"Accept": "text/event-stream", **headers}
        timeout = httpx2.Timeout(self._timeout, read=60.0)
        try:
            async with self.http.stream(
                "GET", path, headers=all_headers, timeout=timeout
            ) as response:
                if response.status_code >= 400:
                    retry_after = _seconds(response.headers.get("retry-after"))
                    raise from_problem(response.status_code, await response.aread(), retry_after)
                yield response.aiter_lines()
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> StoreUnavailable:
        reason = str(error) or type(error).__name__
        return StoreUnavailable(
            f"the service at {self.url} does not answer: {reason}; "
            "is `holdfast serve` running there?"
        )


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{url!r:.200} is no address of a service: write http://host:port")
    if parts.username or parts.password:
        raise ConfigurationError("the address of a service has no user in it: give an API key")
    return url.rstrip("/")


def _flat(params: list[tuple[str, Any]]) -> list[tuple[str, str]]:
    """Lists are given by repeating their name."""
    values = [(n, value if isinstance(value, list) else [value]) for n, value in params]
    return [(name, _text(value)) for name, several in values for value in several]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _seconds(retry_after: str | None) -> float:
    try:
        return max(0.0, float(retry_after or 0))
    except ValueError:
        return 0.0


def _httpx() -> Any:
    try:
        import httpx2
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "asking a service needs httpx2: pip install 'holdfast[client]'"
        ) from error
    return httpx2
