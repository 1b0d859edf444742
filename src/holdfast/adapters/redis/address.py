"""Where the server is:
`redis://user:password@host:port/database?prefix=…&pool=2&timeout=5s&connect=5s`."""

from __future__ import annotations

import ssl
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from holdfast.adapters.url_parameters import Readers, duration, read_all, whole_number
from holdfast.errors import ConfigurationError

PORT = 6379
POOL = 2
TIMEOUT = 5.0
EXAMPLE = "redis://localhost:6379/0"
URL_SYNTAX = "redis://user:password@host:6379/0"


class Address(Struct, frozen=True):
    """Several hosts are tried in turn until one answers that is a master."""

    hosts: tuple[tuple[str, int], ...]
    user: str | None = None
    password: str | None = None
    database: int = 0
    tls: bool = False
    ca: str | None = None
    """A file with the certificates to trust instead of the system's."""
    prefix: str = ""
    """What every key begins with."""
    pool: int = POOL
    """Connections per event loop: one for commands, the others for reads."""
    timeout: float = TIMEOUT
    """Seconds that the server may take to answer."""
    connect: float | None = None
    """Seconds that connecting may take; None for as long as an answer."""

    def __str__(self) -> str:
        """Fit to be shown: without user and password."""
        hosts = ",".join(f"{host}:{port}" for host, port in self.hosts)
        return f"{'rediss' if self.tls else 'redis'}://{hosts}/{self.database}"

    def __repr__(self) -> str:
        return f"<Address {self}>"

    @property
    def connect_timeout(self) -> float:
        """Seconds that connecting may take."""
        return self.timeout if self.connect is None else self.connect

    @property
    def credentials(self) -> tuple[str, ...]:
        """What AUTH is given."""
        if self.password is None:
            return ()
        return (self.user, self.password) if self.user else (self.password,)

    def tls_context(self) -> ssl.SSLContext | None:
        if not self.tls:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca)
        except OSError as error:
            raise ConfigurationError(
                f"{self}: the certificates in ca={self.ca} can't be read: {error}"
            ) from error


def parse(url: str) -> Address:
    """Errors name the part that is wrong, never the password."""
    parts = urlsplit(url)
    if "@" in parts.path + parts.query + parts.fragment or parts.fragment:
        raise ConfigurationError(
            f"the Redis URL is not understood; write {URL_SYNTAX}, special characters "
            "percent-encoded"
        )
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    return Address(
        _hosts(hosts),
        user=unquote(user) or None,
        password=unquote(password) or None,
        database=_database(parts.path),
        tls=parts.scheme == "rediss",
        **read_all(PARAMETERS, parts.query, "the Redis parameter"),
    )


def _hosts(text: str) -> tuple[tuple[str, int], ...]:
    return tuple(_host(host) for host in (text or "localhost").split(","))


def _host(text: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigurationError(f"the Redis address {text!r} is not host:port: {error}") from error
    if not host:
        raise ConfigurationError(
            f"the Redis address {text!r} names no host; write for example {EXAMPLE}"
        )
    return host, port or PORT


def _database(path: str) -> int:
    name = path.strip("/")
    if name and not name.isdecimal():
        raise ConfigurationError(
            f"the Redis database {name!r} is not a number; write for example {EXAMPLE}"
        )
    return int(name or 0)


PARAMETERS: Readers = {
    "prefix": str,
    "pool": whole_number,
    "timeout": duration,
    "connect": duration,
    "ca": str,
}
