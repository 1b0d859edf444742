"""The probes of a worker: `/health` and its relatives on a port, without a web framework.

They answer from the worker's own event loop, so that a worker that can't answer is not alive."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from holdfast.errors import ConfigurationError
from holdfast.services.health import Health, HealthView, ReadinessView

log = logging.getLogger("holdfast.worker")

TIMEOUT = 5.0
"""Seconds that a caller has for its request."""
MAX_REQUEST = 8192
"""Bytes."""
ALIVE = ("/", "/health", "/health/live", "/healthz", "/livez")
READY = ("/health/ready", "/readyz")
STARTED = "/health/startup"
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 503: "Service Unavailable"}


@asynccontextmanager
async def probes(health: Health, host: str, port: int | None) -> AsyncIterator[None]:
    """Answer on a port; None: on none. It is closed before anything else ends."""
    if port is None:
        yield
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _answer(health, reader, writer)

    try:
        server = await asyncio.start_server(answer, host, port, limit=MAX_REQUEST)
    except OSError as error:
        raise ConfigurationError(
            f"can't answer /health on port {port}: {error.strerror or error}; --port chooses "
            "another one"
        ) from error
    log.info("answers /health on port %d", server.sockets[0].getsockname()[1])
    try:
        yield
    finally:
        server.close()


async def _answer(
    health: Health, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        async with asyncio.timeout(TIMEOUT):
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(_response(*await _probe(health, head.split(b" ", 2)[:2])))
            await writer.drain()
    except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass  # whoever asks so is no probe
    finally:
        writer.close()


async def _probe(
    health: Health, request: list[bytes]
) -> tuple[int, HealthView | ReadinessView | None]:
    if len(request) != 2 or request[0] not in (b"GET", b"HEAD"):
        return 400, None
    path = request[1].decode("latin-1").partition("?")[0]
    view = health.view()
    if path in ALIVE:
        return 200, view
    if path == STARTED:
        return (503 if view.status == "starting" else 200), view
    if path in READY:
        readiness = await health.readiness()
        return (200 if readiness.ready else 503), readiness
    return 404, None


def _response(status: int, view: HealthView | ReadinessView | None) -> bytes:
    body = b"{}" if view is None else msgspec.json.encode(view)
    head = (
        f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
