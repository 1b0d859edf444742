"""What the URLs of all ports have in common."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import TypeVar
from urllib.parse import unquote

from holdfast.errors import ConfigurationError
from holdfast.settings.secrecy import redacted
from holdfast.settings.values import Settings

T = TypeVar("T")

SERVERS = ("postgresql://", "postgres://", "redis://", "rediss://")
"""Adapters that are reached over the network, and take parameters after `?`."""


def with_server_settings(url: str, settings: Settings) -> str:
    """The URL of a server with the settings for servers in it; what the URL says itself wins."""
    if not url.startswith(SERVERS):
        return url
    said = {part.partition("=")[0] for part in url.partition("?")[2].split("&")}
    wanted = {
        "pool": settings.pool.size,
        "connect": settings.timeout.connect,
        "timeout": settings.timeout.command,
    }
    more = [
        f"{name}={value:g}"
        for name, value in wanted.items()
        if value is not None and name not in said
    ]
    return url + ("&" if "?" in url else "?") + "&".join(more) if more else url


def choose(url: str, setting: str, known: dict[str, Callable[[], T]]) -> T:
    scheme = url.split(":", 1)[0]
    if ":" not in url or scheme not in known:
        close = get_close_matches(scheme, known, n=1)
        hint = f"; did you mean {close[0]}:?" if close else ""
        raise ConfigurationError(
            f"{setting} = {redacted(url)!r} is not understood: known are "
            f"{', '.join(f'{k}:' for k in known)}{hint}"
        )
    if "?" in url and not url.startswith(SERVERS):
        raise ConfigurationError(
            f"{setting} = {redacted(url)!r}: this adapter takes no parameters after '?'"
        )
    return known[scheme]()


def sqlite_path(url: str) -> str:
    if not url.startswith("sqlite:///") or len(url) == len("sqlite:///"):
        raise ConfigurationError(
            f"store = {redacted(url)!r}: write sqlite:///file.db, or "
            "sqlite:////absolute/path/file.db"
        )
    if url == "sqlite:///:memory:":
        raise ConfigurationError(f"store = {url!r}: use memory: for a store that is not kept")
    return unquote(url[len("sqlite:///") :])


def not_installed(url: str, extra: str) -> ConfigurationError:
    return ConfigurationError(
        f"{redacted(url)!r} needs the package that comes with `pip install holdfast[{extra}]`"
    )


def missing_extra(error: ModuleNotFoundError, extra: str, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{what} needs {error.name}, which is not installed: pip install 'holdfast[{extra}]'"
    )
