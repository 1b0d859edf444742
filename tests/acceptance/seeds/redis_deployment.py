"""A worker process on Redis, messages to it, and everything that it publishes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.redis_server import fresh_prefix, shared_server

from holdfast import Holdfast
from holdfast.adapters.redis.bus import RedisBus, message_of
from holdfast.adapters.redis.wire import ask
from holdfast.ports.bus import Message
from holdfast.ports.store import RunFilter

ROOT = Path(__file__).parents[3]
TIMEOUT = 60.0
SHORT_LEASE = {
    "HOLDFAST_LEASE_TTL": "2s",
    "HOLDFAST_LEASE_RENEW": "500ms",
    "HOLDFAST_LEASE_MARGIN": "500ms",
    "HOLDFAST_LEASE_SWEEP": "300ms",
}
"""For workers that are killed: on a busy machine the others could lose theirs."""


class RedisDeployment:
    """Store and bus on one server, under a prefix of their own."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.url = shared_server().url(fresh_prefix())
        self.folder = folder
        self.settings = settings
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def environment(self) -> dict[str, str]:
        settings = {
            k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "PUBSUB"))
        }
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        blobs = {"HOLDFAST_BLOBS": f"file:{self.folder / 'blobs'}"}
        return {**settings, **blobs, **self.urls, "PYTHONPATH": path, **self.settings}

    @property
    def urls(self) -> dict[str, str]:
        return {"HOLDFAST_STORE": self.url, "HOLDFAST_BUS": self.url}

    # --- processes ---

    def start(
        self, *command: str, ready: str = " receives ", **more: str
    ) -> subprocess.Popen[bytes]:
        """A process of its own, once it says that it receives."""
        number = len(self.processes)
        log = self.folder / f"worker-{number}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env={**self.environment, **more},
                stdout=out,
                stderr=out,
            )
        self.processes.append(process)
        self.wait(lambda: ready in self.log(number) or process.poll() is not None)
        return process

    def holdfast(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command, when it has ended."""
        command = [sys.executable, "-m", "holdfast", *words]
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=60
        )

    def log(self, number: int = 0) -> str:
        return (self.folder / f"worker-{number}.log").read_text()

    def stop(self) -> list[int]:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        return [process.wait(30) for process in self.processes]

    def kill(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()

    @staticmethod
    def wait(condition: Callable[[], Any], timeout: float = TIMEOUT) -> Any:
        until = time.monotonic() + timeout
        while not (answer := condition()):
            assert time.monotonic() < until, "it did not happen in time"
            time.sleep(0.05)
        return answer

    # --- messages ---

    def subscribe(self, *topics: str, group: str = "test") -> None:
        """Keep what is published there from now on, for a group."""

        async def begin(bus: RedisBus) -> None:
            for topic in topics:
                await bus.subscribe(topic, group).begun()

        self._on_bus(begin)

    def publish(self, topic: str, *messages: tuple[str, Any, Mapping[str, str]]) -> None:
        async def send(bus: RedisBus) -> None:
            for id, body, attributes in messages:
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                await bus.publish(topic, Message(id, data, attributes))

        self._on_bus(send)

    def published(self, topic: str) -> list[Message]:
        """All that was published there, in order, copies included."""
        stream = f"{self._prefix}holdfast:topic:{topic}"
        [rows] = self._ask(("XRANGE", stream, "-", "+"))
        return [message_of(row[0], row[1]) for row in rows]

    @property
    def _prefix(self) -> str:
        return RedisBus(self.url).address.prefix

    def _ask(self, *commands: tuple[str, ...]) -> list[Any]:
        async def read(bus: RedisBus) -> list[Any]:
            wire = await bus._links.here().command_wire()
            return [await ask(wire, *command) for command in commands]

        return self._on_bus(read)

    def pending(self, topic: str, group: str) -> int:
        """Deliveries that no worker has ended."""
        [summary] = self._ask(("XPENDING", f"{self._prefix}holdfast:topic:{topic}", group))
        return summary[0]

    def bodies(self, topic: str) -> list[Any]:
        """What was published, each id once."""
        unique = {message.id: json.loads(message.body) for message in self.published(topic)}
        return list(unique.values())

    def bodies_as_text(self, topic: str) -> str:
        """All that was published there, attributes included, to be searched."""
        return repr(self.published(topic))

    def _on_bus(self, story: Any) -> Any:
        async def run() -> Any:
            bus = RedisBus(self.url)
            await bus.open()
            try:
                return await story(bus)
            finally:
                await bus.close()

        return asyncio.run(run())

    # --- the store ---

    def look(self, story: Any) -> Any:
        async def run() -> Any:
            async with Holdfast(self.url, worker=False) as app:
                return await story(app)

        return asyncio.run(run())

    def runs(self) -> list[Any]:
        return self.look(lambda app: app.store.runs(RunFilter(), limit=1000))

    def letters(self) -> list[Any]:
        return self.look(lambda app: app.store.dead_letters(limit=1000))

    def everything(self, excluded: str = "") -> str:
        """All that the server holds under the prefix, but for one key."""
        [key_names] = self._ask(("KEYS", f"{self._prefix}*"))
        keys = [key for key in key_names if not (excluded and _text(key).endswith(excluded))]
        types = self._ask(*(("TYPE", key) for key in keys))
        reads = [READS[_text(kind)](_text(key)) for kind, key in zip(types, keys, strict=True)]
        return repr(keys) + repr(self._ask(*reads))


READS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "string": lambda key: ("GET", key),
    "hash": lambda key: ("HGETALL", key),
    "list": lambda key: ("LRANGE", key, "0", "-1"),
    "set": lambda key: ("SMEMBERS", key),
    "zset": lambda key: ("ZRANGE", key, "0", "-1"),
    "stream": lambda key: ("XRANGE", key, "-", "+"),
}


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
