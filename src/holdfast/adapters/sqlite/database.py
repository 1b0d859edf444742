"""Opening the file: pragmas, refusals, migrations, and errors that say what to do."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec

from holdfast.adapters import private
from holdfast.adapters.compatibility import FORMAT, FORMAT_NAME, OLDEST_NAME, refuse_unusable
from holdfast.adapters.disk import NETWORK_FILE_SYSTEMS, file_system_of
from holdfast.adapters.migrations import load
from holdfast.errors import ConfigurationError, HoldfastError, StoreUnavailable, Unwritable
from holdfast.ports.mover import MoveMark, refuse_marked

APPLICATION_ID = 0x686F6C64  # "hold"
BUSY_TIMEOUT = 10.0
OLDEST_USABLE_SCHEMA = 1
"""Programs that know this schema or a later one can use what this one writes."""
migrations = partial(load, "holdfast.adapters.sqlite")


def connect(path: str) -> sqlite3.Connection:
    """A connection in autocommit mode: transactions are begun and ended by name. Text that is
    damaged is read all the same: its digest tells."""
    connection = sqlite3.connect(
        path,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA cache_size = -16000")
    return connection


@contextmanager
def snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """What can be seen from here on is what was committed before."""
    db.execute("BEGIN")
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()  # the first look decides what
        yield
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def prepare(path: str, mono: float) -> sqlite3.Connection:
    """Create or migrate the file and return a connection to it. Raises ConfigurationError when it
    can't be used."""
    connection = prepare_for_mover(path)
    try:
        with translated(path, opening=True):
            refuse_marked(read_mark(connection), path)
            forget_old_delays(connection, mono)
    except BaseException:
        connection.close()
        raise
    return connection


def prepare_for_mover(path: str) -> sqlite3.Connection:
    """The same, whatever mark the store carries."""
    if path != ":memory:":
        refuse_network_file_system(Path(path))
        create_private(path)
    with translated(path, opening=True):
        connection = connect(path)
        try:
            recognise(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            migrate(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def create_private(path: str) -> None:
    """A new file is its owner's alone, whatever the umask; SQLite gives what it keeps beside it the
    same rights."""
    with suppress(OSError):  # it is there, or can't be: SQLite will say so
        os.close(private.open_new(path))


def read_mark(connection: sqlite3.Connection) -> MoveMark | None:
    """Whether the store takes part in a move."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'mark'").fetchone()
    return msgspec.json.decode(row[0], type=MoveMark) if row else None


def forget_old_delays(connection: sqlite3.Connection, mono: float) -> None:
    """A delay that ends later than it can was measured before the host was restarted: take it as
    over."""
    connection.execute(
        "UPDATE runs SET available = NULL, due = NULL WHERE state = 'queued' AND due > ? + delay",
        (mono,),
    )


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the schema up to date; concurrent openers wait for the first. A migration only adds: a
    program of the version before goes on with what it knows."""
    known = migrations()
    newest = known[-1].number
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        refuse_other_schema(connection, path, version, newest)
        for number, _, sql in known:
            if number > version:
                _execute_script(connection, sql)
                connection.execute(f"PRAGMA user_version = {number}")
        if version < newest:
            noted = [(FORMAT_NAME, str(FORMAT)), (OLDEST_NAME, str(OLDEST_USABLE_SCHEMA))]
            connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", noted)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _execute_script(connection: sqlite3.Connection, script: str) -> None:
    """Like executescript, but inside the transaction that is open."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def recognise(connection: sqlite3.Connection, path: str) -> None:
    # In this order: another opener may create everything, application id included, in between.
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID and not empty:
        raise ConfigurationError(
            f"{path} is an SQLite database of another program; nothing was changed. Choose another "
            "file, "
            "for example sqlite:///holdfast.db"
        )


def refuse_other_schema(
    connection: sqlite3.Connection, path: str, version: int, newest: int
) -> None:
    """Raise ConfigurationError for a file that this program can't use."""
    if version == 0:
        return
    is_there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
    noted = dict(connection.execute("SELECT name, value FROM meta")) if is_there else {}
    refuse_unusable(noted, version, newest, path)


def refuse_network_file_system(path: Path) -> None:
    """SQLite's locks and shared memory do not work across machines: two workers would corrupt the
    file."""
    kind = file_system_of(path)
    if kind in NETWORK_FILE_SYSTEMS:
        raise ConfigurationError(
            f"{path} is on a network file system ({kind}), where SQLite's locks are not reliable. "
            "Put the file on a local disk, or use a PostgreSQL or Redis store to share work "
            "between machines"
        )


@contextmanager
def translated(path: str, *, opening: bool = False) -> Iterator[None]:
    """Turn SQLite's errors into ours: what happened, to which file, what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(error, path, opening=opening) from error


def explain(error: sqlite3.Error, path: str, *, opening: bool = False) -> HoldfastError:
    text = str(error)
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_TOOBIG", "SQLITE_MISMATCH")) or "binding parameter" in text:
        return Unwritable(f"it can't be stored: {text}")
    if name.startswith("SQLITE_CONSTRAINT") and name != "SQLITE_CONSTRAINT_TRIGGER":
        return Unwritable(f"it can't be stored: {text}")
    if (
        name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT"))
        or "disk image is malformed" in text
        or "not a database" in text
    ):
        return ConfigurationError(
            f"{path} is not a usable SQLite database ({text}); the file was left as it is. Restore "
            "it from a "
            "backup, try `sqlite3 FILE .recover`, or choose another file"
        )
    # SHMSIZE: there is not even room for the index of the write-ahead log
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")) or "disk is full" in text:
        return StoreUnavailable(
            f"the disk that holds {path} is full; nothing was accepted. Free some space, then try "
            "again"
        )
    if name.startswith("SQLITE_READONLY") or "readonly" in text:
        kind = ConfigurationError if opening else StoreUnavailable
        return kind(
            f"{path} is read-only; holdfast has to write to it. Check the file's and the folder's "
            "permissions"
        )
    if name.startswith("SQLITE_CANTOPEN") or "unable to open" in text:
        return ConfigurationError(
            f"{path} can't be opened ({text}): does its folder exist, and may this user write to "
            "it?"
        )
    if name == "SQLITE_CONSTRAINT_TRIGGER":  # only a store that takes part in a move has triggers
        return StoreUnavailable(f"{path} {text}; nothing was accepted")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreUnavailable(
            f"{path} stayed locked by another process for {BUSY_TIMEOUT:.0f} s; nothing was "
            "accepted. "
            "Is a backup or a `sqlite3` shell holding a transaction open?"
        )
    return StoreUnavailable(f"{path}: {text} ({name or type(error).__name__})")
