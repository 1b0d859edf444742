"""TLS by URL. The wheel's server is built without it; POSTGRES_PROGRAMS names the folder of one that has it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import postgres_server
from tests.postgres_server import PostgresServer

from holdfast.adapters.postgres.store import PostgresStore
from holdfast.errors import ConfigurationError

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One that speaks nothing but TLS, on a free port, with a certificate that it made itself."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    server = PostgresServer("listen_addresses=127.0.0.1", f"port={postgres_server.free_port()}")
    try:
        server.create()
        if server.execute("SELECT setting FROM pg_config WHERE name = 'CONFIGURE'").find("--with-openssl") < 0:
            pytest.skip("this PostgreSQL is built without TLS")
        certify(server)
        server.kill()
        server.start()
        yield server
    finally:
        server.end()


def certify(server: PostgresServer) -> None:
    key, certificate = server.data / "server.key", server.data / "server.crt"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    for path in (key, certificate):
        shutil.copymode(server.data / "postgresql.conf", path)
        shutil.chown(path, server.data.owner())
    with open(server.data / "postgresql.auto.conf", "a") as settings:
        settings.write("ssl = on\n")
    (server.data / "pg_hba.conf").write_text("local all all trust\nhostssl all all 127.0.0.1/32 trust\n")


def url(server: PostgresServer, **parameters: str) -> str:
    port = server.setting("port")
    return f"postgresql://postgres@localhost:{port}/postgres?" + "&".join(f"{k}={v}" for k, v in parameters.items())


async def is_encrypted(url: str) -> bool:
    store = PostgresStore(url)
    await store.open()
    try:
        ours = b"pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'holdfast'"
        return await store._home.pool.call(b"SELECT bool_and(ssl) FROM " + ours) == b"t"
    finally:
        await store.close()


def test_connections_are_encrypted_and_the_server_is_checked(server: PostgresServer, tmp_path: Path) -> None:
    root = tmp_path / "root.crt"
    shutil.copy(server.data / "server.crt", root)
    assert asyncio.run(is_encrypted(url(server, sslmode="require")))
    assert asyncio.run(is_encrypted(url(server, sslmode="verify-full", sslrootcert=str(root))))


def test_unknown_servers_and_plain_connections_are_refused(server: PostgresServer, tmp_path: Path) -> None:
    other = tmp_path / "other.crt"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other", "-keyout", "/dev/null"]
    subprocess.run([*command, "-out", str(other)], check=True, capture_output=True)
    with pytest.raises(ConfigurationError, match="certificate verify failed"):
        asyncio.run(is_encrypted(url(server, sslmode="verify-full", sslrootcert=str(other))))
    with pytest.raises(ConfigurationError, match="no pg_hba"):
        asyncio.run(is_encrypted(url(server, sslmode="disable")))
