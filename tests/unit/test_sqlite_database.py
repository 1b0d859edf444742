"""Opening the SQLite file: what is unsafe is refused, and the message says what to do."""

import asyncio
import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from holdfast.adapters.sqlite import database
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.errors import ConfigurationError, StoreUnavailable
from holdfast.model.commands import Acquire, DefineLane, PutRecord, RenewLocks
from holdfast.ports.store import RunFilter
from holdfast.testing.clock import ManualClock
from holdfast.testing.contracts.store_topics.harness import a_claim, a_submit


def refused(match):
    return pytest.raises(ConfigurationError, match=match)


def prepared(path):
    return database.prepare(path, time.monotonic())


def tables(path):
    with sqlite3.connect(path) as connection:
        pragmas = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
    connection.close()
    return pragmas


def test_a_new_file_is_made_durable_and_ours(tmp_path):
    connection = prepared(str(tmp_path / "a.db"))
    pragma = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous")
    }
    assert pragma == {"journal_mode": "wal", "synchronous": 2}
    assert connection.execute("PRAGMA application_id").fetchone()[0] == database.APPLICATION_ID
    connection.close()
    assert {"runs", "checkpoints", "events"} <= tables(tmp_path / "a.db")


def test_opening_again_changes_nothing(tmp_path):
    path = str(tmp_path / "a.db")
    prepared(path).close()
    before = tables(path)
    prepared(path).close()
    assert tables(path) == before


def test_a_corrupt_file_is_left_as_it_is(tmp_path):
    path = tmp_path / "a.db"
    path.write_bytes(b"this is not a database at all" * 100)
    before = path.read_bytes()
    with refused(r"not a usable SQLite database .*Restore it from a backup"):
        prepared(str(path))
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_left_as_it_is(tmp_path):
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with refused("of another program; nothing was changed. Choose another file"):
        prepared(str(path))
    assert tables(path) == {"theirs"}


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with refused("does its folder exist"):
        prepared(str(tmp_path / "no" / "a.db"))


def test_a_folder_instead_of_a_file_is_refused(tmp_path):
    with refused("can't be opened"):
        prepared(str(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_file_is_refused(tmp_path):
    path = tmp_path / "a.db"
    prepared(str(path)).close()
    path.chmod(0o400)
    with refused("is read-only; holdfast has to write to it"):
        prepared(str(path))


# --- schemas --------------------------------------------------------------------------------------


def newer(path, oldest_usable):
    connection = prepared(str(path))
    connection.execute("PRAGMA user_version = 99")
    sql = "UPDATE meta SET value = ? WHERE name = 'oldest_usable_schema'"
    assert connection.execute(sql, (str(oldest_usable),)).rowcount == 1
    connection.close()


@pytest.mark.parametrize("stored", [None, -1])
def test_the_file_of_a_pre_release_is_refused_and_left_as_it_is(tmp_path, stored):
    path = tmp_path / "a.db"
    connection = prepared(str(path))
    connection.execute("DELETE FROM meta WHERE name = 'format'")
    if stored is not None:
        connection.execute("INSERT INTO meta VALUES ('format', ?)", (str(stored),))
    connection.close()
    before = path.read_bytes()
    with refused(r"a\.db was written by a pre-release of holdfast.* begin with a new store"):
        prepared(str(path))
    assert path.read_bytes() == before


def test_a_pre_release_refuses_the_files_of_releases(tmp_path):
    connection = prepared(str(tmp_path / "a.db"))
    connection.execute("UPDATE meta SET value = '99' WHERE name = 'format'")
    connection.close()
    with refused(r"written by a newer holdfast \(format 99, .*\): upgrade holdfast"):
        prepared(str(tmp_path / "a.db"))


def test_a_newer_schema_is_refused(tmp_path):
    newer(tmp_path / "a.db", oldest_usable=99)
    with refused(r"written by a newer holdfast \(schema 99, .*\): upgrade holdfast"):
        prepared(str(tmp_path / "a.db"))


def test_a_newer_schema_that_says_it_can_be_used_is_used(tmp_path):
    newer(tmp_path / "a.db", oldest_usable=1)
    connection = prepared(str(tmp_path / "a.db"))
    assert connection.execute("PRAGMA user_version").fetchone()[0] == 99
    connection.close()


def test_a_newer_schema_that_says_it_can_not_be_used_is_refused(tmp_path):
    newer(tmp_path / "a.db", oldest_usable=98)
    with refused("upgrade holdfast"):
        prepared(str(tmp_path / "a.db"))


def test_many_may_migrate_a_new_file_at_once(tmp_path):
    def migrated(path):
        connection = database.connect(path)
        database.migrate(connection, path)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.close()
        return version

    with ThreadPoolExecutor(8) as pool:
        versions = set(pool.map(migrated, [str(tmp_path / "a.db")] * 8))
    assert len(versions) == 1
    assert "runs" in tables(tmp_path / "a.db")


def test_a_file_that_another_process_prepares_at_the_same_moment_is_not_foreign(tmp_path):
    path = str(tmp_path / "a.db")

    class Slow:
        """A connection that is overtaken after its first look."""

        def __init__(self):
            self.connection = database.connect(path)
            self.looks = 0

        def execute(self, *statement):
            rows = self.connection.execute(*statement).fetchall()
            self.looks += 1
            if self.looks == 1:
                prepared(path).close()
            return SimpleNamespace(
                fetchone=lambda: rows[0] if rows else None, fetchall=lambda: rows
            )

    slow = Slow()
    database.recognise(slow, path)
    slow.connection.close()


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def broken(connection, script):
        connection.execute("CREATE TABLE half (x)")
        raise sqlite3.OperationalError("broken")

    monkeypatch.setattr(database, "_execute_script", broken)
    with pytest.raises(StoreUnavailable, match="broken"):
        prepared(str(tmp_path / "a.db"))
    assert tables(tmp_path / "a.db") == set()


# --- network file systems -------------------------------------------------------------------------


@pytest.fixture
def mounts(tmp_path):
    file = tmp_path / "mounts"
    (tmp_path / "share").mkdir()
    file.write_text(
        "/dev/sda / ext4 rw 0 0\n"
        f"server:/x {tmp_path}/share nfs4 rw 0 0\n"
        f"tmpfs {tmp_path}/share/fast tmpfs rw 0 0\n"
        f"server:/y {tmp_path}/two\\040words cifs rw 0 0\n"
    )
    return file


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a.db", "ext4"),
        ("share/a.db", "nfs4"),
        ("share/fast/a.db", "tmpfs"),
        ("shared/a.db", "ext4"),
        ("two words/a.db", "cifs"),
    ],
)
def test_the_file_system_of_a_path_is_that_of_the_nearest_mount(tmp_path, mounts, path, kind):
    assert database.file_system_of(tmp_path / path, mounts) == kind


def test_a_link_does_not_hide_a_network_file_system(tmp_path, mounts):
    (tmp_path / "link").symlink_to(tmp_path / "share")
    assert database.file_system_of(tmp_path / "link" / "a.db", mounts) == "nfs4"


def test_where_the_system_does_not_tell_nothing_is_refused(tmp_path):
    assert database.file_system_of(tmp_path, tmp_path / "missing") is None


def test_a_network_file_system_is_refused_with_the_alternative(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "file_system_of", lambda path: "nfs4")
    with refused(
        r"network file system \(nfs4\).*Put the file on a local disk, or use a PostgreSQL or Redis "
        r"store"
    ):
        prepared(str(tmp_path / "a.db"))


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "opening", "kind", "match"),
    [
        (
            "database or disk is full",
            False,
            StoreUnavailable,
            "is full; nothing was accepted. Free some space",
        ),
        ("attempt to write a readonly database", False, StoreUnavailable, "read-only"),
        (
            "attempt to write a readonly database",
            True,
            ConfigurationError,
            "Check the file's and the folder's permissions",
        ),
        ("database disk image is malformed", False, ConfigurationError, "Restore it from a backup"),
        ("unable to open database file", True, ConfigurationError, "does its folder exist"),
        ("something else", False, StoreUnavailable, "something else"),
    ],
)
def test_errors_say_what_happened_and_what_to_do(text, opening, kind, match):
    error = database.explain(sqlite3.OperationalError(text), "/data/a.db", opening=opening)
    assert isinstance(error, kind)
    assert match in str(error)
    assert "/data/a.db" in str(error)


def test_a_locked_file_is_unavailable_for_now(tmp_path, monkeypatch):
    path = str(tmp_path / "a.db")
    holder = prepared(path)
    holder.execute("BEGIN IMMEDIATE")
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    with (
        pytest.raises(StoreUnavailable, match="stayed locked by another process"),
        database.translated(path),
    ):
        other.execute("BEGIN IMMEDIATE")
    other.close()
    holder.close()


# --- the store ------------------------------------------------------------------------------------


def test_a_closed_store_says_so(tmp_path):
    store = SqliteStore(tmp_path / "a.db", threads=False)
    with pytest.raises(StoreUnavailable, match="is closed"):
        asyncio.run(store.runs(RunFilter()))
    with pytest.raises(StoreUnavailable, match="is closed"):
        asyncio.run(store.apply([]))


def test_a_refused_lock_causes_no_notification(tmp_path):
    """Whoever waits for a lock asks again after every notification: one caused by the question
    itself would never stop."""

    async def story():
        store = SqliteStore(tmp_path / "a.db", threads=False)
        await store.open()
        await store.apply([Acquire("x", "token-1", "one", 30.0)])
        version = await store.wait(0, 0.0)
        await store.apply([Acquire("x", "token-2", "two", 30.0)])
        try:
            return version, await store.wait(version, 0.0)
        finally:
            await store.close()

    observed, then = asyncio.run(story())
    assert observed == then


@pytest.mark.parametrize("column", ["progress", "error", "labels", "input", "worker"])
def test_bytes_in_a_row_hide_no_other_run(tmp_path, column):
    """As after damage of the file, or a manual change."""

    async def story():
        store = SqliteStore(tmp_path / "holdfast.db")
        await store.open()
        await store.apply([a_submit(id) for id in ("r1", "r2", "r3")])
        store._reader.execute(f"UPDATE runs SET {column} = X'fffe00' WHERE id = 'r2'")
        runs = await store.runs(RunFilter())
        assert [run.id for run in runs] == ["r3", "r2", "r1"]
        assert [run.damage for run in runs if run.id != "r2"] == [None, None]
        [claimed] = await store.apply([a_claim(limit=3)])
        assert {"r1", "r3"} <= {run.run for run in claimed}
        await store.close()

    asyncio.run(story())


@pytest.mark.parametrize("look", ["locks", "lanes", "records"])
def test_what_is_renewed_while_somebody_looks_is_shown_as_held(look, tmp_path):
    """By a time from before the renewal its lease would end later than it can."""

    class Interrupted(ManualClock):
        """Something happens whenever the time is read."""

        def __init__(self):
            super().__init__()
            self.interrupt = lambda: None

        def monotonic(self):
            moment = super().monotonic()
            self.interrupt()
            return moment

    clock, later = Interrupted(), ManualClock()
    store = SqliteStore(tmp_path / "a.db", clock, threads=False)
    holder = SqliteStore(tmp_path / "a.db", later, threads=False)

    def renew():
        later.advance(1.0)
        commands = [RenewLocks([("lane:line", "t")], 30.0), PutRecord("mine", "", "v2", "v1", 30.0)]
        with ThreadPoolExecutor(1) as executor:
            executor.submit(asyncio.run, holder.apply(commands)).result()

    async def story():
        await store.open()
        await holder.open()
        commands = [Acquire("lane:line", "t", "mine", 30.0), PutRecord("mine", "", "v1", ttl=30.0)]
        await holder.apply([DefineLane("line", "fifo", "dead-letter"), *commands])
        clock.interrupt = renew
        view = await (store.records("") if look == "records" else getattr(store, look)())
        assert "mine" in repr(view)

    asyncio.run(story())
