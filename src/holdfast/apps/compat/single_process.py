"""Locks in memory keep the tasks of one process apart, and nobody else. Where there is a second
process they would let both in, so they are refused there."""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import tempfile
from pathlib import Path
from threading import Lock

from holdfast.errors import ConfigurationError

REMEDY = (
    "locks in memory are known to one process only: give the locks a store that all share, for "
    "example HOLDFAST_STORE=redis://host:6379/0 or sqlite:///locks.db"
)

_held: dict[str, tuple[int, int]] = {}
"""By app: the process that holds its lock file, and the open file. It is closed when the process
ends."""
_guard = Lock()


def refuse_other_processes(app: str | None = None) -> None:
    """Raise ConfigurationError unless this is the only process of the app on this host, and the
    only one there is going to be."""
    _refuse_web_workers()
    if service := os.environ.get("K_SERVICE"):
        raise ConfigurationError(
            f"this is Cloud Run service {service!r}, which may run several instances: {REMEDY}"
        )
    _refuse_second(app or _this_program())


def _refuse_web_workers() -> None:
    workers = os.environ.get("WEB_CONCURRENCY", "").strip()
    if workers not in ("", "1"):
        raise ConfigurationError(f"WEB_CONCURRENCY is {workers}: {REMEDY}")


def _refuse_second(app: str) -> None:
    with _guard:
        if _held.get(app, (0, 0))[0] == os.getpid():
            return
        path = _path(app)
        # A new open file in each process: a lock is shared with those who inherited the file.
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.pread(file, 20, 0).decode() or "another one"
            os.close(file)
            raise ConfigurationError(
                f"process {other} of this program already holds pipeline locks in memory: {REMEDY}"
                " (programs that have nothing to do with one another: set HOLDFAST_LOCKS_APP)"
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        _held[app] = (os.getpid(), file)


def _this_program() -> str:
    """The same for all processes of one deployment: what was started, and where."""
    return f"{Path(sys.argv[0] or '-').absolute()} {Path.cwd()}"


def _path(app: str) -> Path:
    digest = hashlib.sha256(app.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"holdfast-locks-{os.getuid()}-{digest}"
