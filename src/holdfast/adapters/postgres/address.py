"""Where the server is: a URL taken apart into libpq's part, which is secret, and ours."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.adapters.url_parameters import Readers, duration, read, whole_number
from holdfast.errors import ConfigurationError
from holdfast.model.secrecy import MASK

DEFAULTS: dict[str, Any] = {
    "application_name": "holdfast",
    "client_encoding": "UTF8",
    # A server that vanished without a word is noticed within half a minute also on connections that
    # only listen.
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""What libpq is told unless the URL says otherwise."""


class Address(Struct, frozen=True):
    """`conninfo` may hold a password: only `shown` goes into messages."""

    conninfo: str
    shown: str
    schema: str = "holdfast"
    pool: int = 4
    timeout: float = 10.0
    connect: float | None = None
    """How long connecting may take, in seconds; None for as long as anything else."""
    listen: str | None = None
    """Where to listen for wake-ups: None for the same server, "" for nowhere, else a conninfo of
    its own."""

    @property
    def quoted_schema(self) -> str:
        return '"' + self.schema.replace('"', '""') + '"'

    @property
    def connect_timeout(self) -> float:
        """How long connecting may take, in seconds."""
        return self.timeout if self.connect is None else self.connect

    def __repr__(self) -> str:
        return f"Address({self.shown})"


def parse(url: str) -> Address:
    """`postgresql://user:password@host:5432/database` with `?pool=4&timeout=10s&connect=10s`
    `&schema=holdfast&listen=…`.

    What is not ours goes to libpq, which knows TLS (`sslmode`, `sslrootcert`), several hosts and
    much else."""
    parts = urlsplit(url)
    shown = _shown(parts)
    parameters = [part.partition("=") for part in parts.query.split("&") if part]
    own = {
        name: read(OWN, name, unquote(value), f"store = {shown!r}:")
        for name, _, value in parameters
        if name in OWN
    }
    libpq_query = "&".join(
        name + sign + value for name, sign, value in parameters if name not in OWN
    )
    # Put together by hand: urlunsplit drops the // of a URL without a host, which means a socket of
    # this machine.
    tail = f"#{parts.fragment}" if parts.fragment else ""
    # libpq takes the first @ for the end of the password, and would name the rest as the host.
    login, sign, hosts = parts.netloc.rpartition("@")
    netloc = login.replace("@", "%40") + sign + hosts
    conninfo = _conninfo(f"postgresql://{netloc}{parts.path}?{libpq_query}{tail}", shown)
    if own.get("listen"):
        own["listen"] = _at_host_port(conninfo, own["listen"], shown)
    return Address(conninfo, shown, **own)


def _shown(parts: SplitResult) -> str:
    """The address without password and parameters. Refuses a URL in which a part of the password
    could pass for something else."""
    login, _, hosts = parts.netloc.rpartition("@")
    if "@" in parts.path + parts.fragment or not _HOSTS.fullmatch(hosts):
        raise _not_understood("postgresql://…")
    user = login.partition(":")[0]
    user = MASK if "@" in user else user  # it may be a part of the password
    return f"postgresql://{user + '@' if user else ''}{hosts}{parts.path}"


_HOSTS = re.compile(r"(?:(?:\[[0-9A-Fa-f:.%]*\]|[^:,\[\]]*)(?::\d*)?(?:,|$))*")
"""`host`, `host:port`, `[address]:port`, and several of them with commas."""


def _conninfo(url: str, shown: str) -> str:
    try:
        parameters = conninfo_to_dict(url)
    except ProgrammingError:  # its text may quote the password
        raise _not_understood(shown) from None
    return make_conninfo(**{**DEFAULTS, **parameters})


def _not_understood(shown: str) -> ConfigurationError:
    return ConfigurationError(
        f"store = {shown!r}: PostgreSQL's library does not understand the URL; write "
        "postgresql://user:password@host:5432/database?…, with special characters "
        "percent-encoded. Parameters are "
        f"{', '.join(sorted(OWN))} and those of libpq (sslmode, sslrootcert, …)"
    )


def _at_host_port(conninfo: str, host_port: str, shown: str) -> str:
    """The same login at another host and port: past a pooler, which can't pass notifications on."""
    host, _, port = host_port.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigurationError(
            f"store = {shown!r}: listen={host_port!r}: write listen=host:port, or listen=off"
        )
    return make_conninfo(conninfo, host=host, port=port)


def _name(text: str) -> str:
    if not 1 <= len(text.encode()) <= 63 or "\0" in text:
        raise ValueError("write a name of 1 to 63 characters")
    return text


def _listen_address(text: str) -> str | None:
    return {"on": None, "off": ""}.get(text, text)


OWN: Readers = {
    "pool": whole_number,
    "timeout": duration,
    "connect": duration,
    "schema": _name,
    "listen": _listen_address,
}
"""The parameters that are ours, and how each is read."""
