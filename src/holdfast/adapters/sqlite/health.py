"""Checks a store in a file for what breaks SQLite in practice, without changing anything."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from holdfast.adapters import disk
from holdfast.adapters.sqlite import database
from holdfast.errors import ConfigurationError
from holdfast.ports.health import (
    SCHEMA,
    Finding,
    Findings,
    abandoned,
    bytes_of,
    make_finding,
    milliseconds,
)

OLDEST_SQLITE = (3, 35, 0)
LOCK_TIMEOUT = 2.0
"""How long to wait for a lock that somebody else holds, in seconds."""
QUICK_CHECK = 5.0
"""How long to read a large file for damage, in seconds."""
LONG_LOG = 256 << 20
OVERDUE = 60.0


async def findings(path: str) -> Findings:
    looking = _looked_at(Path(path))
    while (finding := await asyncio.to_thread(next, looking, None)) is not None:
        yield finding


def _looked_at(path: Path) -> Iterator[Finding]:
    yield _library()
    yield disk.file_system(path, refuse_network=True)
    yield disk.room(path)
    if not path.exists():
        yield _not_yet(path)
        return
    with closing(_connect(path)) as connection, database.translated(str(path), opening=True):
        yield _readable(connection, path)
        yield _schema(connection, path)
        yield _writable(connection, path)
        yield _log(connection, path)
        yield _undamaged(connection)
        yield _leases(connection)
    yield _users(path)


def _connect(path: Path) -> sqlite3.Connection:
    with database.translated(str(path), opening=True):
        uri = f"file:{quote(str(path.absolute()))}?mode=rw"
        return sqlite3.connect(
            uri, uri=True, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
        )


def _library() -> Finding:
    return make_finding(
        "library",
        f"SQLite {sqlite3.sqlite_version}",
        fail=sqlite3.sqlite_version_info < OLDEST_SQLITE,
        why="statements that holdfast uses are not known to older ones",
        fix="use a Python that is built with SQLite 3.35 or newer",
    )


def _not_yet(path: Path) -> Finding:
    folder = disk.nearest(path)
    can_be = (
        folder == path.absolute().parent and os.access(folder, os.W_OK) and _takes_files(folder)
    )
    return make_finding(
        SCHEMA,
        f"{path} is not there yet"
        + ("" if can_be else f", and can't be created in {path.absolute().parent}"),
        fail=not can_be,
        warn=True,
        why="it may be a mistyped name",
        fix="`holdfast run`, `holdfast worker` or `holdfast doctor --fix` creates it; --store if "
        "it is elsewhere"
        if can_be
        else "make the folder, and let this user write to it",
    )


def _takes_files(folder: Path) -> bool:
    """Asked by trying: a read-only disk allows what its permissions say, until somebody writes."""
    probe = folder / f".holdfast-doctor-{os.getpid()}"
    try:
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True


def _readable(connection: sqlite3.Connection, path: Path) -> Finding:
    began = time.perf_counter()
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    took = time.perf_counter() - began
    return make_finding(
        "readable", f"{path} ({bytes_of(path.stat().st_size)}) in {milliseconds(took)}"
    )


def _schema(connection: sqlite3.Connection, path: Path) -> Finding:
    database.recognise(connection, str(path))
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    newest = database.migrations()[-1].number
    database.refuse_other_schema(connection, str(path), version, newest)
    return make_finding(
        SCHEMA,
        f"version {version}" + ("" if version == newest else f", here {newest}"),
        warn=version < newest,
        why="the next process that opens the store brings it up to date; others wait meanwhile",
        fix="copy the file if you want to be able to go back, then start a worker or `holdfast "
        "doctor --fix`",
    )


def _writable(connection: sqlite3.Connection, path: Path) -> Finding:
    began = time.perf_counter()
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        problem = database.explain(error, str(path), opening=True)
        if isinstance(problem, ConfigurationError):
            raise problem from error
        return make_finding(
            "writable",
            f"locked by another process for {LOCK_TIMEOUT:g} s",
            warn=True,
            why="while somebody holds a transaction open, nothing is accepted and no step can be "
            "stored",
            fix="end the backup, the sqlite3 shell or the viewer that holds it (see `users` below)",
        )
    return make_finding(
        "writable", f"its lock was free within {milliseconds(time.perf_counter() - began)}"
    )


def _log(connection: sqlite3.Connection, path: Path) -> Finding:
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    log = path.with_name(path.name + "-wal")
    size = log.stat().st_size if log.exists() else 0
    return make_finding(
        "write-ahead log",
        f"journal_mode {mode}, {bytes_of(size)} not yet moved into the file",
        warn=mode != "wal" or size > LONG_LOG,
        why="a log that can't be moved into the file grows without end: somebody reads an old "
        "state, or the file was taken out of WAL mode",
        fix="end readers that hold a transaction open; opening the store switches WAL mode on "
        "again",
    )


def _undamaged(connection: sqlite3.Connection) -> Finding:
    deadline = time.monotonic() + QUICK_CHECK
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 100_000)
    try:
        answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        answer = f"ok as far as {QUICK_CHECK:g} s of reading went"
    finally:
        connection.set_progress_handler(None, 0)
    return make_finding(
        "integrity",
        answer,
        fail=not answer.startswith("ok"),
        why="the file is damaged: by a disk, by a copy made while it was written to, or by a "
        "network file system",
        fix="restore a backup, or save what can be read with `sqlite3 FILE .recover`",
    )


def _leases(connection: sqlite3.Connection) -> Finding:
    now = time.monotonic()
    ended = connection.execute(
        "SELECT count(*) FROM runs WHERE state = 'running' AND lease_until < ?", (now - OVERDUE,)
    ).fetchone()[0]
    return abandoned(ended)


def _users(path: Path) -> Finding:
    others = [name for pid, name in _having_open(path.resolve()) if pid != os.getpid()]
    return make_finding(
        "users",
        f"{len(others)} other processes have it open"
        + (f": {', '.join(others)}" if others else ""),
    )


def _having_open(path: Path) -> Iterator[tuple[int, str]]:
    """Processes that have a file open, as far as the system tells."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(link) == str(path) for link in (folder / "fd").iterdir()):
                yield int(folder.name), f"{(folder / 'comm').read_text().strip()} ({folder.name})"
        except OSError:  # it has ended, or belongs to somebody else
            continue
