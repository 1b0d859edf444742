"""Many who follow a run by server-sent events, while others submit and read."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from urllib.parse import urlsplit

from benchmarks.http.load import Connection, measure

OPENED_AT_ONCE = 100


async def watch(url: str, run: str, ready: asyncio.Event) -> float:
    """When the stream's last event came."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = (
        f"GET /v1/runs/{run}/events HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        "Accept: text/event-stream\r\n\r\n"
    )
    writer.write(head.encode())
    await reader.readuntil(b"run.queued")
    ready.set()
    await reader.readuntil(b"event: end")
    ended = time.perf_counter()
    writer.close()
    return ended


async def measure_watchers(url: str, count: int, runs: int) -> dict[str, Any]:
    """Each run has its share of the watchers. Then all runs are cancelled, and every watcher
    receives the event."""
    async with Connection(url) as connection:
        ids = [await _submit(connection, number) for number in range(runs)]
    tasks: list[asyncio.Task[float]] = []
    begun = time.perf_counter()
    for start in range(0, count, OPENED_AT_ONCE):
        events = [asyncio.Event() for _ in range(min(OPENED_AT_ONCE, count - start))]
        tasks += [
            asyncio.create_task(watch(url, ids[(start + number) % runs], event))
            for number, event in enumerate(events)
        ]
        await asyncio.gather(*[event.wait() for event in events])
    opened = time.perf_counter() - begun
    others = await measure(url, lambda number: ("GET", f"/v1/runs/{ids[0]}", None), 500, 8)
    async with Connection(url) as connection:  # the first one was idle for too long
        announced_at = time.perf_counter()
        for id in ids:
            await connection.ask("POST", f"/v1/runs/{id}/cancel", {})
        cancelled = time.perf_counter() - announced_at
    last = max(await asyncio.gather(*tasks)) - announced_at
    return {
        "watchers": count,
        "opened_per_second": count / opened,
        "reads_meanwhile_p50_ms": others["p50_ms"],
        "reads_meanwhile_p99_ms": others["p99_ms"],
        "cancelled_within_s": cancelled,
        "all_told_within_s": last,
    }


async def _submit(connection: Connection, number: int) -> str:
    import json

    body = {"input": {"number": number}, "delay": 3600}
    _, answer = await connection.ask("POST", "/v1/pipelines/noop/runs", body)
    return json.loads(answer)["run"]["id"]
