"""Documents as files: the file at `<folder>/<key>` is the document and nothing else. Its version
and when it expires stand beside it, under `<folder>/.versions/<key>`.

Writers take turns by a lock on the folder; a document is written to a temporary file that is then
renamed, so that whoever reads it sees all of one version. The version is noted before the document
is written and confirmed after it: one that a crash left unconfirmed may be written again, and none
below it."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import InvalidInput, Transient
from holdfast.model.clock import Clock, SystemClock
from holdfast.ports.documents import REMEMBERED

VERSIONS = ".versions"
LOCK = ".lock"
MAX_SEGMENT = 200
"""Bytes of a part of a path; a longer one is cut and ends with a digest of the whole."""
TIDY_INTERVAL = 60.0
"""Between two looks for expired documents, in seconds."""


class _Entry(Struct, frozen=True, omit_defaults=True):
    version: str
    expires: float | None = None
    confirmed: bool = False

    def is_before(self, version: str) -> bool:
        return self.version < version or (self.version == version and not self.confirmed)


class FileDocuments:
    """`Documents` in a folder. Several processes of one host may share it."""

    def __init__(self, root: str | Path, clock: Clock | None = None) -> None:
        self.root = Path(root)
        self._clock = clock or SystemClock()
        self._tidied: float | None = None

    async def put(self, key: str, body: bytes, *, version: str, ttl: float | None = None) -> bool:
        return await asyncio.to_thread(self._write, key, version, body, ttl)

    async def delete(self, key: str, *, version: str) -> bool:
        return await asyncio.to_thread(self._write, key, version, None, 0.0)

    async def close(self) -> None:
        """Nothing to let go of."""

    def path(self, key: str) -> Path:
        """Where the document of a key is. What can't stand in a path is percent-encoded."""
        return self.root.joinpath(*[_segment(part) for part in key.split("/")])

    def _write(self, key: str, version: str, body: bytes | None, ttl: float | None) -> bool:
        path = self.path(key)
        beside = self.root / VERSIONS / path.relative_to(self.root)
        try:
            with self._locked():
                now = self._clock.now()
                self._tidy(now)
                before = _read(beside)
                if before is not None and not before.is_before(version):
                    return False
                entry = _Entry(version, None if ttl is None else now + ttl)
                _replace(beside, msgspec.json.encode(entry))
                if body is None:
                    path.unlink(missing_ok=True)
                else:
                    _replace(path, body)
                _replace(beside, msgspec.json.encode(replace(entry, confirmed=True)))
                return True
        except (NotADirectoryError, IsADirectoryError) as error:
            raise InvalidInput(
                f"document {path}: a document stands where a folder is needed, or the other way "
                "round; choose keys of which none is the beginning of another's path"
            ) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise Transient(f"document {path} can't be written: {reason}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.root / LOCK, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _tidy(self, now: float) -> None:
        """Remove expired documents, and versions that no delayed writer can need any more."""
        if self._tidied is not None and now - self._tidied < TIDY_INTERVAL:
            return
        self._tidied = now
        versions = self.root / VERSIONS
        for beside in [path for path in versions.rglob("*") if path.is_file()]:
            entry = _read(beside)
            if entry is None or entry.expires is None or entry.expires > now:
                continue
            (self.root / beside.relative_to(versions)).unlink(missing_ok=True)
            if entry.expires + REMEMBERED <= now:
                beside.unlink()


def _segment(part: str) -> str:
    if not part:
        raise InvalidInput("a document's key has an empty part: no '//' and no '/' at an end")
    name = quote(part, safe=" !#$&'()+,:;=@[]{}~")
    if part.startswith("."):
        name = "%2E" + name[1:]
    if len(name) <= MAX_SEGMENT:
        return name
    return f"{name[: MAX_SEGMENT - 65]}~{sha256(part.encode()).hexdigest()}"


def _read(path: Path) -> _Entry | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Entry)
    except FileNotFoundError:
        return None


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{uuid4().hex}")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
