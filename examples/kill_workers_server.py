"""The server of kill_workers.py: a private PostgreSQL or Redis that is killed with SIGKILL and
started again."""

from __future__ import annotations

import argparse
import random
import threading
from collections.abc import Callable
from typing import Protocol

from holdfast.testing.servers.postgres import PostgresServer
from holdfast.testing.servers.redis import RedisServer

DOWNTIME = (0.0, 1.0)
"""Seconds between a kill and the start after it."""
DURABLE = {
    "postgres": {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"},
    "redis": {"appendonly": "yes", "appendfsync": "always"},
}
"""The settings with which acknowledged writes survive a power cut."""


class Killable(Protocol):
    def kill(self) -> None: ...
    def start(self) -> object: ...
    def end(self) -> None: ...


class Server:
    """A server that is started on entry and deleted on exit. Its settings are durable by
    default."""

    def __init__(self, kind: str, changes: dict[str, str]) -> None:
        settings = DURABLE[kind] | changes
        self.description = (
            f"{kind} with {', '.join(f'{name} {value}' for name, value in settings.items())}"
        )
        if kind == "postgres":
            postgres = PostgresServer(*[f"{name}={value}" for name, value in settings.items()])
            self._process: Killable = postgres
            self._begin: Callable[[], object] = postgres.create
            self.url = postgres.url(timeout="2s")
        else:
            redis = RedisServer(
                *[word for name, value in settings.items() for word in (f"--{name}", value)]
            )
            self._process = redis
            self._begin = redis.start
            self.url = redis.url(timeout="2")

    def __enter__(self) -> Server:
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.end()

    def kill(self) -> None:
        self._process.kill()

    def start(self) -> None:
        self._process.start()


class ServerKiller:
    """Kills and restarts a server at random moments, from the first executed step until `stop`."""

    def __init__(
        self, server: Server, options: argparse.Namespace, is_at_work: Callable[[], bool]
    ) -> None:
        self.kills = 0
        self.problems: list[str] = []
        self._server = server
        self._every: tuple[float, float] = tuple(options.server_every)
        self._strikes: int | None = options.server_strikes
        self._chance = random.Random(options.seed + 1)
        self._is_at_work = is_at_work
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="server-killer")
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread. The server is up afterwards."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._over.wait(self._chance.uniform(*self._every)):
                if self._is_at_work() and (self._strikes is None or self.kills < self._strikes):
                    self._interrupt()
        except Exception as error:  # any error fails the proof, and is reported with the figures
            self.problems.append(f"the server did not come back: {error}")

    def _interrupt(self) -> None:
        self._server.kill()
        self.kills += 1
        self._over.wait(self._chance.uniform(*DOWNTIME))
        self._server.start()


def pairs(words: list[str]) -> dict[str, str]:
    """`NAME=VALUE` words as names and values."""
    return {name: value for name, _, value in (word.partition("=") for word in words)}
