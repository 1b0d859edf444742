"""One HTTP call: bytes out, a whole answer back, or an error that contains no key.

`Transport` is what a model sends through; `HttpTransport` is the real one. It retries nothing,
follows no redirect and keeps connections open. Errors are made outside `except` blocks: an
exception of the HTTP library holds the request, and with it the key, and would otherwise be
attached as `__context__`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from holdfast.errors import HoldfastError, Transient

if TYPE_CHECKING:
    import httpx2

MAX_ANSWER = 10 * 1024 * 1024
"""Bytes. The longest real answers have a few hundred kilobytes."""
CONNECT_WITHIN = 10.0
KEEP_OPEN = 30.0
"""Seconds that an idle connection is kept: less than the servers do, so that the server rarely
closes it during a call."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What a server said, whole. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class CutShort(Transient):
    """The answer had begun and did not arrive whole: it was worked on, and is usually paid for."""

    def __init__(self, message: str, received: int) -> None:
        super().__init__(message)
        self.received = received
        """Bytes of the answer that did arrive."""


class Transport(Protocol):
    """Sends one request. Calls may overlap. Raises `Transient`, and `CutShort` for an answer that
    does not end."""

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> HttpResponse: ...

    async def aclose(self) -> None: ...


class HttpTransport:
    """A `Transport` with one connection per call in flight, the last used first.

    Each has an HTTP client of its own: a pool looks at every one of its connections for every call,
    which at 64 of them costs more than all the rest of a call."""

    def __init__(self, *, proxies: bool = True) -> None:
        """`proxies`: whether those that the environment names (`HTTPS_PROXY`, …) are used."""
        import httpx2  # takes a fifth of a second: only for those who really call

        self._proxies = proxies
        self._tls = httpx2.create_ssl_context()
        self._idle: list[httpx2.AsyncClient] = []
        self._all: list[httpx2.AsyncClient] = []
        self._failures = (httpx2.TransportError, httpx2.DecodingError, OSError)

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> HttpResponse:
        outcome = await self._attempt(url, headers, body, timeout)
        if isinstance(outcome, HoldfastError):
            raise outcome
        return outcome

    async def aclose(self) -> None:
        clients, self._all, self._idle = self._all, [], []
        for client in clients:
            await client.aclose()

    async def _attempt(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> HttpResponse | HoldfastError:
        received = bytearray()
        try:
            async with (
                asyncio.timeout(timeout),
                self._client() as client,
                client.stream("POST", url, headers=headers, content=body) as response,
            ):
                if await _read_whole(response, received):
                    return HttpResponse(response.status_code, response.headers, bytes(received))
                return CutShort(
                    f"{_host(url)} answered with more than {MAX_ANSWER >> 20} MiB", len(received)
                )
        except TimeoutError:
            return Transient(f"{_host(url)} did not answer within {timeout:g} s")
        except self._failures as error:
            return _broken(url, error, len(received))

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx2.AsyncClient]:
        client = self._idle.pop() if self._idle else self._new_client()
        try:
            yield client
        finally:
            if self._all:
                self._idle.append(client)

    def _new_client(self) -> httpx2.AsyncClient:
        import httpx2

        client = httpx2.AsyncClient(
            verify=self._tls,
            trust_env=self._proxies,
            limits=httpx2.Limits(max_connections=1, keepalive_expiry=KEEP_OPEN),
            timeout=httpx2.Timeout(None, connect=CONNECT_WITHIN),
        )
        self._all.append(client)
        return client


async def _read_whole(response: httpx2.Response, received: bytearray) -> bool:
    async for chunk in response.aiter_bytes():
        received += chunk
        if len(received) > MAX_ANSWER:
            return False
    return True


def _broken(url: str, error: Exception, received: int) -> Transient:
    name = type(error).__name__
    if received:
        return CutShort(
            f"the answer of {_host(url)} broke off after {received} bytes ({name})", received
        )
    return Transient(
        f"{_host(url)} could not be reached or closed the connection without an answer ({name})"
    )


def _host(url: str) -> str:
    return url.split("/", 3)[2]
