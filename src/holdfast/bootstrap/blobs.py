"""The blob store of a URL, and where blobs are if nobody says."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from holdfast.bootstrap.urls import SERVERS, choose, sqlite_path
from holdfast.errors import ConfigurationError
from holdfast.ports.blobs import BlobStore


def make_blobs(url: str) -> BlobStore:
    """`memory:` or `file:./folder`."""
    return choose(url, "blobs", {"memory": _memory_blobs, "file": lambda: _files(url)})


def default_blobs(store_url: str) -> str | None:
    """Blobs live beside the store unless somebody says otherwise; a server has no place beside it
    that all its users share, so there it has to be said."""
    if store_url.startswith("memory:"):
        return "memory:"
    if store_url.startswith(SERVERS):
        return None
    path = Path(sqlite_path(store_url))
    return f"file:{path.with_name(path.stem + '-files')}"


def _memory_blobs() -> BlobStore:
    from holdfast.adapters.memory.blobs import MemoryBlobs

    return MemoryBlobs()


def _files(url: str) -> BlobStore:
    from holdfast.adapters.files.blobs import FileBlobs

    path = url[len("file:") :]
    if path.startswith("//"):
        path = path[2:]
    if not path:
        raise ConfigurationError(f"blobs = {url!r}: write file:./folder")
    return FileBlobs(Path(unquote(path)))
