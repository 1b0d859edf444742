"""From a URL to what implements a port."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.bootstrap.adapters import Port, adapter_for, is_server, server_settings
from holdfast.bootstrap.urls import sqlite_path
from holdfast.errors import ConfigurationError
from holdfast.model.clock import Clock
from holdfast.ports.blobs import BlobStore
from holdfast.ports.bus import Bus
from holdfast.ports.documents import Documents
from holdfast.ports.mover import Mover
from holdfast.ports.records import Records
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
    """`memory:`, `file:./folder`, `gs://bucket` or `s3://bucket`."""
    return _make(url, "blobs", "blobs")


def make_bus(url: str) -> Bus | None:
    """`none`, `memory:`, `redis://host`, `rediss://host` or `pubsub://project`."""
    return None if url in ("none", "") else _make(url, "bus", "bus")


def make_documents(url: str, clock: Clock) -> Documents | None:
    """`none`, `redis://host`, `rediss://host`, `gs://bucket`, `s3://bucket`,
    `firestore://project`, `file:./folder` or `memory:`."""
    return None if url in ("none", "") else _make(url, "documents", "documents", clock=clock)


def make_records(url: str, collections: Sequence[Any] = ()) -> Records:
    """Records on their own: `firestore://project`, with the collections that show them to
    others."""
    adapter = adapter_for(url, "records", "locks.store")
    assert adapter.records is not None
    return adapter.make(adapter.records, url, collections=collections)


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
        f"{name}={values[name]:g}"
        for name in server_settings(url)
        if values[name] is not None and name not in named
    ]
    return url + ("&" if "?" in url else "?") + "&".join(more) if more else url
