"""Requests over connections that stay open, by bare sockets: the client must cost less than what
it measures."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from statistics import quantiles
from typing import Any
from urllib.parse import urlsplit


class Connection:
    """One connection that stays open."""

    def __init__(self, url: str, key: str | None = None) -> None:
        parts = urlsplit(url)
        self._key = f"X-Api-Key: {key}\r\n" if key else ""
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80

    async def __aenter__(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        data = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
            f"{self._key}\r\n"
        )
        self._writer.write(head.encode() + data)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        status = int(answer.split(b" ", 2)[1])
        length = next(
            int(line.split(b":")[1])
            for line in answer.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        return status, await self._reader.readexactly(length)


Request = Callable[[int], tuple[str, str, Any]]
"""From a number to method, path and body."""


async def measure(url: str, request: Request, count: int, connections: int) -> dict[str, float]:
    """So many requests over so many connections: requests per second, and how long one took."""
    numbers = iter(range(count))
    times: list[float] = []

    async def ask_all() -> None:
        async with Connection(url) as connection:
            for number in numbers:
                begun = time.perf_counter()
                status, body = await connection.ask(*request(number))
                if status >= 400:
                    raise RuntimeError(f"the service answered {status}: {body[:200]!r}")
                times.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    await asyncio.gather(*[ask_all() for _ in range(connections)])
    duration = time.perf_counter() - begun
    cuts = quantiles(times, n=100)
    return {
        "value": count / duration,
        "p50_ms": cuts[49] * 1000,
        "p99_ms": cuts[98] * 1000,
        "max_ms": max(times) * 1000,
    }
