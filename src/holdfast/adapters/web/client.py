"""One call to a public address: resolved once, checked, and called at the address that was checked.
No redirect is followed, and neither cookies nor credentials are sent."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from holdfast.errors import ConfigurationError, HoldfastError, InvalidInput, Transient
from holdfast.model.web_address import WebAddress, parse_web_address, refuse_private
from holdfast.ports.web import WebResponse

if TYPE_CHECKING:
    import httpx2

MAX_ANSWER = 64 * 1024
"""Bytes that are read of an answer: enough to see what is wrong."""


class GuardedWeb:
    """Implements `Web`. Hosts that are `allowed` may be anywhere, and may speak plain http."""

    def __init__(self, allowed: Collection[str] = ()) -> None:
        try:
            import httpx2
        except ImportError as error:
            raise ConfigurationError(
                "calling other systems needs a package: pip install 'holdfast[client]'"
            ) from error
        self._allowed = frozenset(allowed)
        self._failures = (httpx2.TransportError, httpx2.DecodingError, OSError)
        self._client: httpx2.AsyncClient = httpx2.AsyncClient(
            follow_redirects=False, trust_env=False, timeout=None
        )

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> WebResponse:
        outcome = await self._attempt(url, headers, body, timeout)
        if isinstance(outcome, HoldfastError):  # raised here: the library's error holds the request
            raise outcome
        return outcome

    async def close(self) -> None:
        await self._client.aclose()

    async def _attempt(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> WebResponse | HoldfastError:
        host = "the host"
        try:
            address = parse_web_address(url, self._allowed)
            host = address.host
            async with asyncio.timeout(timeout):
                return await self._send(address, headers, body)
        except InvalidInput as error:
            return error
        except TimeoutError:
            return Transient(f"{host} did not answer within {timeout:g} s")
        except socket.gaierror as error:
            return Transient(f"{host} is not known: {error.strerror}")
        except self._failures as error:
            return Transient(f"{host} could not be called: {error or type(error).__name__}")

    async def _send(
        self, address: WebAddress, headers: Mapping[str, str], body: bytes
    ) -> WebResponse:
        peer = await self._resolve(address)
        url = f"{address.scheme}://{address.at(peer)}{address.target}"
        with_host = {**headers, "host": address.authority}
        extensions = {"sni_hostname": address.host} if address.literal is None else {}
        request = self._client.build_request(
            "POST", url, headers=with_host, content=body, extensions=extensions
        )
        response = await self._client.send(request, stream=True)
        try:
            return WebResponse(response.status_code, response.headers, await _beginning(response))
        finally:
            await response.aclose()

    async def _resolve(self, address: WebAddress) -> str:
        """The address that is called. All addresses of the name must be public, because its owner
        decides which one is used."""
        loop = asyncio.get_running_loop()
        entries = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        addresses = [str(entry[4][0]) for entry in entries]
        if address.host not in self._allowed:
            for peer in addresses:
                refuse_private(ipaddress.ip_address(peer.partition("%")[0]), address.host)
        return addresses[0]


async def _beginning(response: httpx2.Response) -> bytes:
    received = bytearray()
    async for part in response.aiter_bytes():
        received += part
        if len(received) >= MAX_ANSWER:
            break
    return bytes(received[:MAX_ANSWER])
