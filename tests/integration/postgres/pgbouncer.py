"""The real PgBouncer, in transaction mode: a skip on a laptop that has none, a failure in CI."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from tests.integration.postgres.conftest import until
from tests.missing import program
from tests.postgres_server import PostgresServer, unprivileged_user


class PgBouncer:
    """Many clients, two connections to the server. Reached by a socket in its folder and, with a
    `port`, over TCP."""

    def __init__(self, server: PostgresServer, *, port: int | None = None, **settings: str) -> None:
        self._program = program("pgbouncer", "`make pooler` installs it")
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-pgbouncer-"))
        self._user = unprivileged_user()
        self._to = f"host={server.folder} port={server.setting('port')} user=postgres"
        self._settings = {
            "unix_socket_dir": str(self.folder),
            "listen_port": str(port or 5432),
            "pool_mode": "transaction",
            "default_pool_size": "2",
            "auth_type": "any",
            **({"listen_addr": "127.0.0.1"} if port else {}),
            **settings,
        }

    def with_certificate(self, key: Path, certificate: Path) -> PgBouncer:
        for name, path in (("key", key), ("cert", certificate)):
            self._own(f"tls.{name}", path.read_text())
            self._settings[f"client_tls_{name}_file"] = f"tls.{name}"
        return self

    async def __aenter__(self) -> PgBouncer:
        self._start()
        await until(self._listens)
        return self

    def _listens(self) -> bool:
        """Its socket is there a little before it does."""
        with socket.socket(socket.AF_UNIX) as probe:
            path = self.folder / f".s.PGSQL.{self._settings['listen_port']}"
            return probe.connect_ex(str(path)) == 0

    def _start(self) -> None:
        settings = [f"{name} = {value}" for name, value in self._settings.items()]
        self._own(
            "pgbouncer.ini",
            "\n".join(["[databases]", f"* = {self._to}", "[pgbouncer]", *settings, ""]),
        )
        command = [self._program, "pgbouncer.ini"]
        with open(self.folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, user=self._user, cwd=self.folder
            )

    async def __aexit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)
        shutil.rmtree(self.folder)

    def _own(self, name: str, text: str) -> None:
        """It refuses to run as root, and reads what belongs to whoever it runs as."""
        (self.folder / name).write_text(text)
        if self._user is not None:
            for path in (self.folder, self.folder / name):
                shutil.chown(path, self._user)
