"""The fake behind a real socket, or without one.

    async with FakeLLM(brain, latency=0.05, faults=by_chance(7, cut=0.05)) as fake:
        model = Model(parse(fake.address("openai")), environment=fake.environment)

`fake.transport()` leads to the same service without a socket: in virtual time, for tests that
simulate."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlsplit

from holdfast.adapters.llm.transport import CutShort, HttpResponse
from holdfast.errors import Transient
from holdfast.testing.fakellm.faults import Fault
from holdfast.testing.fakellm.http import HttpRequest, NotHttp, read_request, render
from holdfast.testing.fakellm.protocol import Brain, Response
from holdfast.testing.fakellm.service import Service

KEY_VARIABLE = "HOLDFAST_FAKE_LLM_KEY"


class FakeLLM(Service):
    """The service on a port of this host. `key=None` lets everybody in."""

    def __init__(
        self, brain: Brain, *, host: str = "127.0.0.1", port: int = 0, **options: Any
    ) -> None:
        super().__init__(brain, **options)
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> FakeLLM:
        self._server = await asyncio.start_server(
            self._connected, self._host, self._port, limit=1 << 20, backlog=1024
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exception: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def serve_forever(self) -> None:
        assert self._server is not None
        await self._server.serve_forever()

    # --- how it is reached ------------------------------------------------------------------------

    def url(self, vendor: str = "") -> str:
        """The base URL for a vendor; without one, the server's own."""
        return f"http://{self._host}:{self._port}{self.protocol(vendor).base if vendor else ''}"

    def address(self, vendor: str = "openai", model: str = "fake-1", **parameters: object) -> str:
        """What to put into `HOLDFAST_LLM`."""
        if self._key is not None:
            parameters["key"] = f"env:{KEY_VARIABLE}"
        more = "".join(f"&{name}={quote(str(value))}" for name, value in parameters.items())
        return f"{vendor}:{model}?base_url={self.url(vendor)}{more}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that an address of this server speaks of."""
        return {KEY_VARIABLE: self._key} if self._key is not None else {}

    def transport(self) -> DirectTransport:
        return DirectTransport(self)

    # --- connections ------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with suppress(
                ConnectionError, NotHttp, asyncio.IncompleteReadError, asyncio.CancelledError
            ):
                while (request := await read_request(reader)) is not None and await self._serve(
                    request, writer
                ):
                    pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, request: HttpRequest, writer: asyncio.StreamWriter) -> bool:
        """Answer one request. Whether the connection goes on."""
        if (request.method, request.path) == ("GET", "/stats"):
            outcome: Response | Fault = Response(200, body=json.dumps(self.stats()).encode())
        elif request.method == "POST":
            outcome = await self.respond(request.path, request.headers, request.body)
        else:
            outcome = Response(405, {"content-type": "text/plain"}, b"POST, or GET /stats")
        if isinstance(outcome, Fault):
            _drop(outcome, writer)
            return False
        data = render(outcome.status, outcome.headers, outcome.body)
        if outcome.cut is not None:
            data = data[: len(data) - len(outcome.body) + outcome.cut]
        writer.write(data)
        await writer.drain()
        return outcome.cut is None


def _drop(fault: Fault, writer: asyncio.StreamWriter) -> None:
    if fault.kind == "reset":
        raw: socket.socket = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class DirectTransport:
    """A `Transport` into a service of this process. Nothing real happens: neither sockets nor
    time."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> HttpResponse:
        path = urlsplit(url).path
        try:
            async with asyncio.timeout(timeout):
                outcome = await self._service.respond(path, headers, body)
        except TimeoutError:
            raise Transient(f"the fake did not answer within {timeout:g} s") from None
        if isinstance(outcome, Fault):
            raise Transient("the fake hung up without an answer")
        if outcome.cut is not None:
            raise CutShort("the fake's answer broke off", outcome.cut)
        return HttpResponse(outcome.status, outcome.headers, outcome.body)

    async def aclose(self) -> None:
        pass
