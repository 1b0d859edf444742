"""An ASGI application on a socket, until somebody says stop.

The end, in this order: readiness answers 503 and open streams end; no further connection is
accepted; requests under way are answered; the worker's steps may end; the store is closed last."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

from holdfast.errors import ConfigurationError

log = logging.getLogger("holdfast.api")

ANSWER_TIME = 2.0
"""Seconds that requests under way may take after the process was told to stop."""
IDLE_CONNECTION = 15
"""Seconds that a connection may stay open between two requests."""
HEAD_TIME = 30.0
"""Seconds that a caller may take to say what it wants: the request line and the headers. uvicorn
itself waits without end."""
SWEEP = 5.0
"""Seconds between two looks for those who take longer."""


class _Server(uvicorn.Server):
    """Signals belong to the command line."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class SlowCallers:
    """Closes connections on which no request comes about."""

    def __init__(self, connections: Iterable[Any]) -> None:
        self._connections = connections
        self._since: dict[tuple[Any, Any], float] = {}
        """By connection and the last request on it: when it was first seen to wait for the next."""

    async def sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            self.close_slow(time.monotonic())

    def close_slow(self, now: float) -> None:
        waiting = [(it, it.cycle) for it in self._connections if _waits_for_request(it)]
        self._since = {key: self._since.get(key, now) for key in waiting}
        for (connection, _), since in self._since.items():
            if now - since > HEAD_TIME:
                connection.transport.close()


def _waits_for_request(connection: Any) -> bool:
    """Of uvicorn's protocols, which keep what they do with the last request as their `cycle`."""
    cycle = getattr(connection, "cycle", connection)
    return cycle is None or getattr(cycle, "response_complete", False)


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections. Raises ConfigurationError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigurationError(
            f"can't listen on {host} port {port}: {error.strerror or error}; --host and --port "
            "choose another place"
        ) from error
    # What it accepts inherits this. An answer leaves in two pieces, and without it the second one
    # waits for up to 40 ms until the first is acknowledged: asyncio sets it for its own sockets.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def begin_drain(api: FastAPI) -> None:
    """Not ready any more, and no stream goes on."""
    api.state.health.drain()
    api.state.hub.close()


async def serve(
    api: FastAPI, listening: socket.socket, stopped: Callable[[], Awaitable[Any]]
) -> None:
    """Answer requests until `stopped` returns, then those that are under way."""
    config = uvicorn.Config(
        api,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE_CONNECTION,
        timeout_graceful_shutdown=round(ANSWER_TIME),
        lifespan="on",
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]), name="http")
    slow_callers = SlowCallers(server.server_state.connections)
    sweeping = asyncio.create_task(slow_callers.sweep(), name="slow callers")
    stopping = asyncio.ensure_future(stopped())
    try:
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        begin_drain(api)
        stopping.cancel()
        sweeping.cancel()
        server.should_exit = True
        await asyncio.gather(stopping, sweeping, return_exceptions=True)
    await serving
