"""TLS by URL. The wheel's server is built without it, so PgBouncer stands in front of it and speaks
nothing else."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests import postgres_server
from tests.integration.postgres.conftest import Schema
from tests.integration.postgres.pgbouncer import PgBouncer
from tests.missing import openssl

from holdfast.adapters.postgres.store import PostgresStore
from holdfast.errors import ConfigurationError

pytestmark = pytest.mark.slow

Url = Callable[..., str]


def certify(name: str, folder: Path) -> tuple[Path, Path]:
    """A key, and a certificate that it made itself."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
    subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1"]
    command = [openssl(), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run(
        [*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True
    )
    return key, certificate


async def is_encrypted(url: str) -> bool:
    store = PostgresStore(url)
    await store.open()
    try:
        return all(connection._pq.ssl_in_use for connection in store._pool._all)
    finally:
        await store.close()


def behind_tls(schema: Schema, folder: Path, story: Callable[[Url], Awaitable[None]]) -> None:
    """What happens where only TLS leads, with a certificate for `localhost` in `folder`."""
    key, certificate = certify("localhost", folder)
    port = postgres_server.free_port()

    def url(**parameters: str) -> str:
        options = {"schema": schema.name, "listen": "off", **parameters}
        return f"postgresql://postgres@localhost:{port}/postgres?" + "&".join(
            f"{k}={v}" for k, v in options.items()
        )

    async def told() -> None:
        bouncer = PgBouncer(schema.server, port=port, client_tls_sslmode="require")
        async with bouncer.with_certificate(key, certificate):
            await story(url)

    asyncio.run(told())


def test_connections_are_encrypted_and_the_server_is_checked(
    schema: Schema, tmp_path: Path
) -> None:
    async def story(url: Url) -> None:
        assert await is_encrypted(url(sslmode="require"))
        assert await is_encrypted(
            url(sslmode="verify-full", sslrootcert=str(tmp_path / "localhost.crt"))
        )

    behind_tls(schema, tmp_path, story)


def test_unknown_servers_and_plain_connections_are_refused(schema: Schema, tmp_path: Path) -> None:
    _, other = certify("other", tmp_path)

    async def story(url: Url) -> None:
        with pytest.raises(ConfigurationError, match="certificate verify failed"):
            await is_encrypted(url(sslmode="verify-full", sslrootcert=str(other)))
        with pytest.raises(ConfigurationError, match="SSL required"):
            await is_encrypted(url(sslmode="disable"))

    behind_tls(schema, tmp_path, story)
