"""Blobs as files: complete or absent, whatever crashes and whoever else writes.

An object is written to a temporary file in `.incoming` of the same folder, flushed to the disk, and
only then given its name with a hard link. Linking fails if the name is taken, so two writers never
overwrite one another, and a crash leaves a forgotten temporary file at worst, never half an object.
New folder entries are flushed as well: what `put` has answered survives a power cut.

Names in `.incoming` begin with a dot and no key may, so that they are never listed or read.
"""

from __future__ import annotations

import asyncio
import builtins
import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from holdfast.adapters import private
from holdfast.adapters.object_keys import SEGMENT, blob_folder, blob_segments
from holdfast.errors import StoreUnavailable

INCOMING = ".incoming"
ABANDONED_AFTER = 86_400.0
"""Seconds after which a temporary file belongs to no writer any more."""
TRIES = 10
"""How often a folder may vanish under a writer (somebody deletes next to it) before that is an
error."""

REMEDIES = {
    errno.ENOSPC: "the disk is full: free some space, then try again",
    errno.EDQUOT: "the disk quota is used up: free some space, then try again",
    errno.EROFS: "the file system is read-only: mount it for writing or choose another folder",
    errno.EACCES: "this user may not write there: check the permissions of the folder",
    errno.EPERM: "this is not permitted: check the folder, and that its file system has hard links",
    errno.ENOTSUP: "this file system has no hard links: choose a folder on a local disk",
    errno.EMFILE: "too many files are open: raise the limit (ulimit -n)",
    errno.EIO: "the disk reports an error: check it before going on",
    errno.ENOTDIR: "a file stands where a folder is needed: choose another folder or move the file",
    errno.EEXIST: "a file stands where a folder is needed: choose another folder or move the file",
}


class FileBlobs:
    """A `BlobStore` in a folder. Several processes may share it."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self._tidied = False

    async def put(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        return await asyncio.to_thread(self._put, self._path(key), data, durable)

    async def get(self, key: str) -> bytes | None:
        return await asyncio.to_thread(self._get, self._path(key))

    async def list(self, prefix: str) -> builtins.list[str]:
        return await asyncio.to_thread(self._list, self._folder(prefix))

    async def delete(self, prefix: str) -> int:
        return await asyncio.to_thread(self._delete, self._folder(prefix))

    # --- keys ---

    def _path(self, key: str) -> Path:
        return self.root.joinpath(*blob_segments(key))

    def _folder(self, prefix: str) -> Path:
        return self.root.joinpath(*blob_folder(prefix))

    # --- writing ---

    def _put(self, path: Path, data: bytes, durable: bool) -> bool:
        with self._translated(path):
            created = not path.exists() and self._create(path, data, durable)
            if durable:
                # whoever made it may not have flushed it, and our caller relies on it from now on
                if not created:
                    _flush(path)
                _flush(path.parent)
            return created

    def _create(self, path: Path, data: bytes, durable: bool) -> bool:
        temporary = self._write(data, durable)
        try:
            return self._link(temporary, path)
        finally:
            temporary.unlink()

    def _write(self, data: bytes, durable: bool) -> Path:
        """The data in a temporary file, on the disk if it has to be durable."""
        incoming = self.root / INCOMING
        _make_folder(incoming)
        self._tidy(incoming)
        temporary = incoming / uuid4().hex
        try:
            with os.fdopen(private.open_new(temporary), "wb") as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    def _link(self, temporary: Path, path: Path) -> bool:
        for _ in range(TRIES):
            try:
                _make_folder(path.parent)
                os.link(temporary, path)
            except FileExistsError:
                return False
            except FileNotFoundError:
                continue  # `delete` removed the folder while it was empty
            return True
        raise FileNotFoundError(
            errno.ENOENT, "its folder is removed again and again", str(path.parent)
        )

    def _tidy(self, incoming: Path) -> None:
        """Remove what crashed writers left behind; once is enough."""
        if self._tidied:
            return
        self._tidied = True
        for leftover in incoming.iterdir():
            with suppress(FileNotFoundError):
                if time.time() - leftover.stat().st_mtime > ABANDONED_AFTER:
                    leftover.unlink()

    # --- reading ---

    def _get(self, path: Path) -> bytes | None:
        with self._translated(path):
            try:
                return path.read_bytes()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None

    def _list(self, folder: Path) -> builtins.list[str]:
        with self._translated(folder):
            return sorted(path.relative_to(self.root).as_posix() for path in _files_below(folder))

    # --- deleting ---

    def _delete(self, folder: Path) -> int:
        with self._translated(folder):
            count = 0
            for path in builtins.list(_files_below(folder)):
                with suppress(FileNotFoundError):
                    path.unlink()
                    count += 1
            self._remove_empty(folder)
            return count

    def _remove_empty(self, folder: Path) -> None:
        """The folder, those below it and those above it, as far as nothing is left in them."""
        below = [Path(path) for path, _, _ in os.walk(folder, topdown=False)]
        above = [
            path for path in folder.parents if path.is_relative_to(self.root) and path != self.root
        ]
        for path in below + above:
            with suppress(OSError):  # not empty, filled again just now, or removed by somebody else
                path.rmdir()

    # --- errors ---

    @contextmanager
    def _translated(self, path: Path) -> Iterator[None]:
        """Turn the system's errors into ours: what happened, to which file, what to do."""
        try:
            yield
        except OSError as error:
            remedy = REMEDIES.get(error.errno or 0, "check the folder and its disk, then try again")
            raise StoreUnavailable(f"blob {path}: {error.strerror or error} ({remedy})") from error


def _files_below(folder: Path) -> Iterator[Path]:
    for path, _, names in os.walk(folder, onerror=_unless_missing):
        yield from (Path(path, name) for name in names if SEGMENT.fullmatch(name))


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _make_folder(folder: Path) -> None:
    """Create a folder and those above it, each entry flushed to the disk."""
    missing = [path for path in (folder, *folder.parents) if not path.is_dir()]
    for path in reversed(missing):
        with suppress(FileExistsError):
            private.make_folder(path)
        _flush(path.parent)


def _flush(path: Path) -> None:
    """Make a file, or the names in a folder, survive a power cut. Whoever removed it meanwhile did
    so for us too."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
