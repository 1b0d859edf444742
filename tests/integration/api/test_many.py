"""Many open streams, slow callers and large bodies keep nobody else waiting."""

from __future__ import annotations

import asyncio
import socket
import time
from urllib.parse import urlsplit

import pytest
from benchmarks.http.watchers import watch
from tests.integration.api.live import LiveApi

STREAMS = 300
SLOW_CALLERS = 50
SOON = 2.0
"""Seconds within which others are answered, on a busy machine."""


def test_hundreds_of_streams_hear_of_the_end_and_others_are_answered_meanwhile() -> None:
    with LiveApi() as api:
        runs = [api.submit(f"n{number}", delay=3600) for number in range(10)]

        async def scenario() -> None:
            events = [asyncio.Event() for _ in range(STREAMS)]
            tasks = [
                asyncio.create_task(watch(api.url, runs[number % 10], event))
                for number, event in enumerate(events)
            ]
            async with asyncio.timeout(60):
                await asyncio.gather(*[event.wait() for event in events])
                assert api.app.state.hub.followers == STREAMS
                for run in runs:
                    begun = time.monotonic()
                    answer = await asyncio.to_thread(api.post, f"/v1/runs/{run}/cancel")
                    assert answer.json()["state"] == "cancelled"
                    assert time.monotonic() - begun < SOON
                await asyncio.gather(*tasks)

        asyncio.run(scenario())
        deadline = time.monotonic() + 10
        while api.app.state.hub.followers and time.monotonic() < deadline:
            time.sleep(0.02)
        assert api.app.state.hub.followers == 0


def test_callers_who_send_slowly_or_read_nothing_keep_nobody_waiting() -> None:
    with LiveApi() as api:
        run = api.submit("Ada")
        api.ended(run)
        where = urlsplit(api.url)
        slow = []
        for number in range(SLOW_CALLERS):
            caller = socket.create_connection((where.hostname, where.port))
            slow.append(caller)
            head = f"POST /v1/pipelines/greet/runs HTTP/1.1\r\nHost: {where.netloc}\r\n"
            if number % 2:  # a body that never comes whole
                caller.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode() + b'{"input"')
            else:  # not even a head
                caller.sendall(head.encode())
        begun = time.monotonic()
        assert api.get(f"/v1/runs/{run}").status_code == 200
        api.submit("Bob")
        assert time.monotonic() - begun < SOON
        for caller in slow:
            caller.close()


def test_a_body_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.api.bodies.READ_TIMEOUT", 0.1)
    with LiveApi() as api:
        where = urlsplit(api.url)
        with socket.create_connection((where.hostname, where.port), timeout=10) as caller:
            head = f"POST /v1/pipelines/greet/runs HTTP/1.1\r\nHost: {where.netloc}\r\n"
            caller.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode() + b'{"input"')
            assert caller.recv(100).startswith(b"HTTP/1.1 408")


def test_a_follower_that_does_not_keep_up_is_told_everything_from_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.services.event_hub.MOST_WAITING", 1)
    with LiveApi() as api:
        lines: list[str] = []
        headers = {"Accept": "text/event-stream", "Last-Event-ID": "0"}
        with api.http.stream("GET", "/v1/events", headers=headers) as response:
            stream = response.iter_lines()
            next(stream)
            runs = {api.submit(f"n{number}") for number in range(20)}
            for line in stream:
                if line.startswith("id: "):
                    lines.append(line)
                if len(lines) == 5 * len(runs):
                    break
        positions = [int(line.removeprefix("id: ")) for line in lines]
        assert positions == sorted(set(positions))
