"""From a URL to what implements a port."""

from __future__ import annotations

from pathlib import Path

from holdfast.bootstrap.adapters import Port, adapter_for, is_server
from holdfast.bootstrap.urls import sqlite_path
from holdfast.errors import ConfigurationError
from holdfast.model.clock import Clock
from holdfast.ports.blobs import BlobStore
from holdfast.ports.bus import Bus
from holdfast.ports.mover import Mover
from holdfast.ports.store import Store
from holdfast.settings.values import Settings


def make_store(url: str, clock: Clock) -> Store:
    """`memory:`, `sqlite:///file`, `postgresql://host/database`, `redis://host` or
    `rediss://host`."""
    return _make(url, "store", "store", clock=clock)


def make_mover(url: str, clock: Clock) -> Mover:
    """What reads and fills the store of a URL, past everybody else."""
    if url.startswith("memory:"):
        raise ConfigurationError(
            "memory: lives in one process and ends with it: there is nothing to move"
        )
    return _make(url, "mover", "store", clock=clock)


def make_blobs(url: str) -> BlobStore:
    """`memory:` or `file:./folder`."""
    return _make(url, "blobs", "blobs")


def make_bus(url: str) -> Bus | None:
    """`none`, `memory:`, `redis://host` or `rediss://host`."""
    return None if url in ("none", "") else _make(url, "bus", "bus")


def _make(url: str, port: Port, setting: str, *, clock: Clock | None = None):
    adapter = adapter_for(url, port, setting)
    return adapter.make(getattr(adapter, port), url, clock=clock)


def default_blobs(store_url: str) -> str | None:
    """Blobs live beside the store unless somebody says otherwise; a server has no place beside it
    that all its users share, so there it has to be said."""
    if store_url.startswith("memory:"):
        return "memory:"
    if is_server(store_url):
        return None
    path = Path(sqlite_path(store_url))
    return f"file:{path.with_name(path.stem + '-files')}"


def missing_file(store_url: str) -> Path | None:
    """The file of a store that nobody has created yet: for those who only want to look."""
    if not store_url.startswith("sqlite:"):
        return None
    path = Path(sqlite_path(store_url))
    return None if path.exists() else path


def with_server_settings(url: str, settings: Settings) -> str:
    """The URL of a server with the settings for servers in it; what the URL says itself wins."""
    if not is_server(url):
        return url
    named = {part.partition("=")[0] for part in url.partition("?")[2].split("&")}
    values = {
        "pool": settings.pool.size,
        "connect": settings.timeout.connect,
        "timeout": settings.timeout.command,
    }
    more = [
        f"{name}={value:g}"
        for name, value in values.items()
        if value is not None and name not in named
    ]
    return url + ("&" if "?" in url else "?") + "&".join(more) if more else url
