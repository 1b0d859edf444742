"""Which addresses media may be fetched from: public ones, by HTTPS.

A worker stands inside a network, and a URL in a message comes from outside of it. So a name is
resolved once, every address that it has is looked at, and the connection goes to one of those and
to nothing else; each redirect is looked at anew. Hosts that are named as allowed may also be
private and speak plain HTTP: then nothing else is allowed at all."""

from __future__ import annotations

import re
import socket
import unicodedata
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from holdfast.errors import Permanent, Transient

PORTS = {"https": 443, "http": 80}
LOCAL_NAMES = ("localhost", "local", "internal", "localdomain", "home.arpa", "lan", "intranet")
NUMERIC = re.compile(r"(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+))*", re.IGNORECASE)
NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))+", re.IGNORECASE)
CARRIES_IPV4 = tuple(
    ip_network(text)
    for text in ("2002::/16", "2001::/32", "64:ff9b::/96", "64:ff9b:1::/48", "::/96", "fec0::/10")
)
"""Ranges of IPv6 whose addresses lead to one of IPv4, and the old site-local ones."""

Resolve = Callable[[str, int], list[str]]


class Refused(Permanent):
    """A URL that media may not be fetched from."""


class FetchTarget(Struct, frozen=True):
    """A URL that may be fetched, and the addresses that it may be fetched from."""

    scheme: str
    host: str
    port: int
    path: str
    addresses: tuple[str, ...]

    @property
    def host_header(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == PORTS[self.scheme] else f"{name}:{self.port}"


def resolve(host: str, port: int) -> list[str]:
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in addresses))


def check_url(url: str, allowed: tuple[str, ...] = (), resolver: Resolve = resolve) -> FetchTarget:
    """Raises Refused with the reason, and Transient if the name can't be resolved now."""
    if any(c.isspace() or unicodedata.category(c) in ("Cc", "Cf") for c in url) or "\\" in url:
        raise Refused("the URL has blanks, control characters or backslashes in it")
    try:
        parts = urlsplit(url)
        port, host = parts.port, _host(parts.hostname or "")
    except (ValueError, UnicodeError) as error:
        raise Refused(f"the URL can't be read: {error}") from error
    is_allowed = _is_allowed(host, port, allowed)
    if allowed and not is_allowed:
        raise Refused(f"{host} is not among the hosts that media may come from: {_list(allowed)}")
    _check_form(parts, port, is_allowed)
    port = port or PORTS[parts.scheme]
    addresses = _literal(host) or _resolved(host, port, resolver, is_allowed)
    if not is_allowed:
        for address in addresses:
            _check_public(host, address)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return FetchTarget(parts.scheme, host, port, path, tuple(addresses))


def _host(name: str) -> str:
    """As it is looked up: other scripts' digits and dots are those of ASCII, names are IDNA."""
    text = unicodedata.normalize("NFKC", name).rstrip(".").lower()
    if not text or "%" in text:
        raise ValueError("it names no host")
    return text if ":" in text else text.encode("idna").decode()


def _is_allowed(host: str, port: int | None, allowed: tuple[str, ...]) -> bool:
    return host in allowed or f"{host}:{port}" in allowed


def _check_form(parts: Any, port: int | None, is_allowed: bool) -> None:
    if parts.scheme not in (PORTS if is_allowed else ("https",)):
        raise Refused(f"media is fetched by https, not by {parts.scheme or 'nothing'}")
    if parts.username is not None or parts.password is not None:
        raise Refused("the URL brings a user name or password: give one without")
    if not is_allowed and port not in (None, 443):
        raise Refused(f"media is fetched from port 443, not from {port}")


def _literal(host: str) -> list[str]:
    """The address that is written in place of a name. Other notations than the usual one are
    refused: programs differ in what they take them for."""
    try:
        return [str(ip_address(host))]
    except ValueError:
        pass
    if ":" in host or NUMERIC.fullmatch(host):
        raise Refused(f"{host} is an unusual way to write an address")
    return []


def _resolved(host: str, port: int, resolver: Resolve, is_allowed: bool) -> list[str]:
    is_local = any(host == name or host.endswith(f".{name}") for name in LOCAL_NAMES)
    if not is_allowed and (is_local or not NAME.fullmatch(host)):
        raise Refused(f"{host} is no name of a public host")
    try:
        addresses = resolver(host, port)
    except OSError as error:
        raise Transient(f"{host} can't be resolved: {error}") from error
    if not addresses:
        raise Transient(f"{host} has no address")
    return addresses


def _check_public(host: str, text: str) -> None:
    address = ip_address(text.partition("%")[0])
    inner = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    if inner is not None or not _is_public(address):
        raise Refused(f"{host} leads to {text}, which is not a public address")


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address) and any(address in network for network in CARRIES_IPV4):
        return False
    return address.is_global and not (
        address.is_multicast
        or address.is_private
        or address.is_reserved
        or address.is_loopback
        or address.is_link_local
        or address.is_unspecified
    )


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)
