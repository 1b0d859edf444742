"""Addresses on the web that other people give us, and where calling them may not lead.

Whoever may name a URL that a server then calls can make it call its own neighbours: the metadata
service of a cloud, a database on the loopback interface. So a URL is taken apart strictly, and each
address that its host has must be a public one. The check is made on the address that is called, not
on the name: a name can have another address a moment later."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from holdfast.errors import InvalidInput

MAX_URL = 2048
"""Characters."""
DEFAULT_PORTS = {"https": 443, "http": 80}

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
_NUMERIC = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+))*")
"""What old libraries take for an IPv4 address: decimal, octal, hexadecimal, one to four parts."""

NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
NOT_PUBLIC = tuple(map(IPv4Network, ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24")))
"""Networks that look public and lead to a cloud's own services, or nowhere."""

Address = IPv4Address | IPv6Address


class WebAddress(Struct, frozen=True):
    """A URL that was taken apart. `host` is a name in lower case or an address."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query."""

    @property
    def authority(self) -> str:
        """Host and port as they stand in a URL and in the header `Host`."""
        return self.at(self.host)

    @property
    def literal(self) -> Address | None:
        """The address, if the host is one."""
        return _address(self.host)

    def at(self, host: str) -> str:
        shown = f"[{host}]" if ":" in host else host
        is_default = self.port == DEFAULT_PORTS[self.scheme]
        return shown if is_default else f"{shown}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_web_address(url: str, allowed: Collection[str] = ()) -> WebAddress:
    """A URL as an address. Plain `http` is only for the hosts that are `allowed`. Raises
    InvalidInput; the message shows neither path nor query, which may hold secrets."""
    parts = _split(url)
    host = _host(parts)
    if parts.scheme not in DEFAULT_PORTS or (parts.scheme == "http" and host not in allowed):
        raise InvalidInput(f"the address is no https:// URL, but {parts.scheme or 'without a'!s}:")
    if "@" in parts.netloc:
        raise InvalidInput(f"the address of {host} holds a user or a password: leave it out")
    try:
        port = parts.port
    except ValueError as error:
        raise InvalidInput(f"the port of {host} is no port: {error}") from error
    if port == 0:
        raise InvalidInput(f"the port of {host} is 0")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebAddress(parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], target)


def is_public(address: Address) -> bool:
    """Whether an address may be called: it belongs to the internet, and so does any IPv4 address
    inside an IPv6 one."""
    if isinstance(address, IPv6Address) and (inner := _inner(address)) is not None:
        return is_public(inner)
    if (
        any(address in network for network in NOT_PUBLIC)
        or address.is_multicast
        or address.is_reserved
    ):
        return False
    return address.is_global


def refuse_private(address: Address, host: str) -> None:
    if not is_public(address):
        raise InvalidInput(
            f"{host} is at {address}, which is no public address: it is not called. An operator "
            "can allow the host by name"
        )


def _split(url: str) -> SplitResult:
    if len(url) > MAX_URL:
        raise InvalidInput(f"the address has {len(url)} characters: at most {MAX_URL}")
    if any(ord(character) <= 32 or ord(character) == 127 for character in url) or "\\" in url:
        raise InvalidInput("the address holds blanks, control characters or backslashes")
    try:
        return urlsplit(url)
    except ValueError as error:
        raise InvalidInput(f"the address is no URL: {error}") from error


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").removesuffix(".")
    if not host:
        raise InvalidInput("the address has no host")
    if _address(host) is not None:
        return host
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError as error:
            raise InvalidInput(f"the host {host!r:.100} is no name: {error}") from error
    if _NUMERIC.fullmatch(host) or not _HOST.fullmatch(host):
        raise InvalidInput(f"the host {host!r:.100} is neither a name nor an address")
    return host


def _address(host: str) -> Address | None:
    if "%" in host:  # a zone: an address of one network card
        return None
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a translator or a tunnel would lead to."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    value = int(address)
    if any(address in network for network in NAT64) or 0xFFFF < value < 1 << 32:
        return IPv4Address(value & 0xFFFFFFFF)
    return None
