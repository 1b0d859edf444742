"""Moving what is in a file: rows as they are, read in pages and written in one transaction a page.

The mark is a row of `meta`, and triggers that exist only while it does: whoever writes to a held
store is refused by SQLite itself, and a store that is not held pays nothing for it. A mover's
transaction says in `meta` that it is one, and takes that back before it commits, so nobody else
ever sees it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from holdfast.adapters.sqlite import database, operations, reads
from holdfast.adapters.sqlite.locks import HELD as LOCK_HELD
from holdfast.adapters.sqlite.transaction import HELD, Transaction, pack
from holdfast.errors import ConfigurationError
from holdfast.model.clock import Clock, SystemClock
from holdfast.model.commands import Sweep
from holdfast.model.lane import Lane
from holdfast.ports.mover import (
    PAGE_BYTES,
    AuditRecord,
    Holder,
    Kind,
    LockEpoch,
    Mark,
    Numbers,
    Page,
    Quarantined,
    RunRecord,
    Standing,
)
from holdfast.ports.store import DeadLetter

R = TypeVar("R")
ALL = 1 << 62


class SqliteMover:
    """A `Mover` of a store in a file."""

    def __init__(self, path: str | Path, clock: Clock | None = None) -> None:
        self.path = str(path)
        self._clock = clock or SystemClock()
        self._db: sqlite3.Connection

    async def exists(self) -> bool:
        return await asyncio.to_thread(self._exists)

    def _exists(self) -> bool:
        path = Path(self.path)
        if not path.parent.is_dir():
            raise ConfigurationError(f"{path} can't be created: there is no folder {path.parent}")
        return path.exists()

    async def open(self) -> None:
        self._db = await asyncio.to_thread(database.prepare_for_mover, self.path)

    async def close(self) -> None:
        self._db.close()

    async def _do(self, work: Callable[..., R], *arguments: Any) -> R:
        def translated() -> R:
            with database.translated(self.path):
                return work(*arguments)

        return await asyncio.to_thread(translated)

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        """A transaction that the triggers let pass."""
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            db.execute("INSERT INTO meta (name, value) VALUES ('mover', 'at work')")
            yield Transaction(db, self._clock.now(), self._clock.monotonic())
            db.execute("DELETE FROM meta WHERE name = 'mover'")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    # --- the mark ---

    async def standing(self) -> Standing:
        return await self._do(self._standing)

    def _standing(self) -> Standing:
        db, mono = self._db, {"mono": self._clock.monotonic()}
        leases = db.execute(
            f"SELECT 'run ' || id, coalesce(worker, '') FROM runs r WHERE {HELD} ORDER BY seq", mono
        )
        locks = db.execute(
            f"SELECT 'lock ' || name, owner FROM locks WHERE {LOCK_HELD} ORDER BY name", mono
        )
        return Standing(
            database.read_mark(db),
            empty=db.execute(_EMPTY).fetchone() is None,
            runs=db.execute("SELECT count(*) FROM runs").fetchone()[0],
            numbers=Numbers(*db.execute(_NUMBERS).fetchone()),
            last_run=next(
                (id for (id,) in db.execute("SELECT id FROM runs ORDER BY seq DESC LIMIT 1")), None
            ),
            holders=[Holder(*row) for row in (*leases, *locks)],
        )

    async def hold(self, mark: Mark) -> None:
        await self._do(self._hold, mark)

    def _hold(self, mark: Mark) -> None:
        with self._writing() as tx:
            tx.execute("UPDATE runs SET lease_until = ? WHERE state = 'running'", (tx.mono,))
            tx.execute(
                "UPDATE locks SET token = NULL, owner = NULL, acquired = NULL, lease_until = NULL"
            )
            operations.sweep(tx, Sweep(limit=ALL))
            _drop_triggers(tx)
            _create_triggers(tx, mark.meaning)
            tx.execute(
                "INSERT OR REPLACE INTO meta (name, value) VALUES ('mark', ?)", (_json(mark),)
            )

    async def release(self) -> None:
        await self._do(self._release)

    def _release(self) -> None:
        with self._writing() as tx:
            _drop_triggers(tx)
            tx.execute("DELETE FROM meta WHERE name = 'mark'")

    # --- reading ---

    async def export(self, kind: Kind, after: str | None, limit: int) -> Page:
        return await self._do(
            self._export_runs if kind == "runs" else EXPORT[kind], self._db, after, limit
        )

    def _export_runs(self, db: sqlite3.Connection, after: str | None, limit: int) -> Page:
        rows = db.execute(_RUNS, (after, limit)).fetchall()
        records: list[RunRecord] = []
        size = 0
        for row in rows:
            if size > PAGE_BYTES:
                break
            record = self._record(db, row)
            records.append(record)
            size += record.size
        is_last = len(rows) < limit and len(records) == len(rows)
        return Page(records, None if is_last else records[-1].run.id)

    def _record(self, db: sqlite3.Connection, row: tuple[Any, ...]) -> RunRecord:
        *columns, unique, inherited, holds_lane, due, delay = row
        run = reads._run(tuple(columns))
        left = due - self._clock.monotonic() if run.available is not None else 0.0
        return RunRecord(
            run,
            columns[-1],
            bool(unique),
            bool(inherited),
            bool(holds_lane),
            left
            if 0 < left <= delay
            else 0.0,  # more than it was: measured before the host was restarted
            reads.checkpoints(db, run.id, None),
            [Quarantined(*each) for each in db.execute(_QUARANTINE, (run.id,))],
            reads.history(db, run.id),
            reads.logs(db, run.id, 0, ALL),
            reads.dead_letter(db, f"run:{run.id}"),
        )

    # --- taking in ---

    async def adopt(self, kind: Kind, records: Sequence[Any]) -> None:
        await self._do(self._adopt, kind, records)

    def _adopt(self, kind: Kind, records: Sequence[Any]) -> None:
        with self._writing() as tx:
            ADOPT[kind](tx, records)

    async def go_on_from(self, numbers: Numbers) -> None:
        await self._do(self._go_on_from, numbers)

    def _go_on_from(self, numbers: Numbers) -> None:
        with self._writing() as tx:
            seq, position, _ = tx.one(_NUMBERS)
            tx.execute("DELETE FROM sqlite_sequence WHERE name = 'runs'")
            tx.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES ('runs', ?)",
                (max(seq, numbers.seq),),
            )
            if numbers.position > position:
                operations._hold_position(tx, numbers.position)
            sql = "INSERT OR REPLACE INTO meta (name, value) VALUES ('outbox_confirmed', ?)"
            tx.execute(sql, (str(numbers.confirmed),))


_NUMBERS = """
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'runs'), 0),
       coalesce((SELECT max(position) FROM events), 0),
       coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'outbox_confirmed'), 0)
"""

_EMPTY = (
    "SELECT 1 FROM runs UNION ALL SELECT 1 FROM dead_letters UNION ALL SELECT 1 FROM audit LIMIT 1"
)

# --- triggers ---


def _create_triggers(tx: Transaction, meaning: str) -> None:
    tables = tx.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'meta' AND name NOT LIKE "
        "'sqlite_%'"
    ).fetchall()
    text = meaning.replace("'", "''")
    for (table,) in tables:
        for act in ("INSERT", "UPDATE", "DELETE"):
            tx.execute(
                f"CREATE TRIGGER held_{table}_{act.lower()} BEFORE {act} ON {table} "
                "WHEN NOT EXISTS (SELECT 1 FROM meta WHERE name = 'mover') "
                f"BEGIN SELECT RAISE(ABORT, '{text}'); END"
            )


def _drop_triggers(tx: Transaction) -> None:
    for (name,) in tx.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        tx.execute(f"DROP TRIGGER {name}")


# --- pages ---

_RUNS = (
    f"SELECT {reads._RUN}, is_unique, inherited, holds_lane, due, delay FROM runs "
    "WHERE seq > coalesce((SELECT seq FROM runs WHERE id = ?), 0) ORDER BY seq LIMIT ?"
)
_QUARANTINE = "SELECT step, key, reason, value, at FROM quarantine WHERE run = ? ORDER BY id"


def _by_name(
    sql: str, typed: Callable[..., Any]
) -> Callable[[sqlite3.Connection, str | None, int], Page]:
    """Records in the order of the first column of the statement, which is asked for those after a
    name."""

    def export(db: sqlite3.Connection, after: str | None, limit: int) -> Page:
        rows = db.execute(sql, (after, limit)).fetchall()
        return Page([typed(*row) for row in rows], rows[-1][0] if len(rows) == limit else None)

    return export


def _export_audit(db: sqlite3.Connection, after: str | None, limit: int) -> Page:
    start = int(after or 0)
    sql = "SELECT at, actor, action, target, reason FROM audit ORDER BY id LIMIT ? OFFSET ?"
    rows = db.execute(sql, (limit, start)).fetchall()
    records = [AuditRecord(number, *row) for number, row in enumerate(rows, start + 1)]
    return Page(records, str(start + limit) if len(rows) == limit else None)


def _letter(*row: Any) -> DeadLetter:
    return reads._dead(row)


EXPORT: dict[str, Callable[[sqlite3.Connection, str | None, int], Page]] = {
    "lanes": _by_name(
        "SELECT name, sort, head FROM lanes WHERE ?1 IS NULL OR name > ?1 ORDER BY name LIMIT ?2",
        Lane,
    ),
    "locks": _by_name(
        "SELECT name, epoch FROM locks WHERE ?1 IS NULL OR name > ?1 ORDER BY name LIMIT ?2",
        LockEpoch,
    ),
    "letters": _by_name(
        f"SELECT {reads._DEAD} FROM dead_letters WHERE run IS NULL AND (?1 IS NULL OR id > ?1) "
        "ORDER BY id LIMIT ?2",
        _letter,
    ),
    "audit": _export_audit,
}

# --- rows ---


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _insert(tx: Transaction, table: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
    marks = ", ".join("?" * (columns.count(",") + 1))
    tx.connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)


def _adopt_lanes(tx: Transaction, lanes: Sequence[Lane]) -> None:
    sql = "INSERT OR REPLACE INTO lanes (name, sort, head) VALUES (?, ?, ?)"
    tx.connection.executemany(sql, [(lane.name, lane.order, lane.head) for lane in lanes])


def _adopt_locks(tx: Transaction, locks: Sequence[LockEpoch]) -> None:
    sql = (
        "INSERT INTO locks (name, epoch) VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET epoch = max(epoch, excluded.epoch)"
    )
    tx.connection.executemany(sql, [(lock.name, lock.epoch) for lock in locks])


def _adopt_letters(tx: Transaction, letters: Sequence[DeadLetter]) -> None:
    known = _known(tx, "dead_letters", [letter.id for letter in letters])
    _insert(
        tx,
        "dead_letters",
        reads._DEAD,
        [_letter_row(letter) for letter in letters if letter.id not in known],
    )


def _letter_row(letter: DeadLetter) -> tuple[Any, ...]:
    return (
        letter.id, letter.source, letter.reason, letter.body, _json(letter.attributes), letter.tenant, letter.created,
        letter.run, letter.closed, letter.resolution,
    )  # fmt: skip


def _adopt_audit(tx: Transaction, entries: Sequence[AuditRecord]) -> None:
    known = tx.value("SELECT count(*) FROM audit")
    rows = [(e.at, e.actor, e.action, e.target, e.reason) for e in entries if e.number > known]
    _insert(tx, "audit", "at, actor, action, target, reason", rows)


def _known(tx: Transaction, table: str, ids: list[str]) -> set[str]:
    sql = f"SELECT id FROM {table} WHERE id IN (SELECT value FROM json_each(?))"
    return {id for (id,) in tx.execute(sql, (pack(ids),))}


def _adopt_runs(tx: Transaction, records: Sequence[RunRecord]) -> None:
    known = _known(tx, "runs", [record.run.id for record in records])
    fresh = [record for record in records if record.run.id not in known]
    tx.execute(
        "DELETE FROM events WHERE run = ''"
    )  # a placeholder, which go_on_from puts back where it belongs
    for table, (columns, rows_of) in BELONGINGS.items():
        _insert(tx, table, columns, [row for record in fresh for row in rows_of(tx, record)])


def _run_rows(tx: Transaction, record: RunRecord) -> list[tuple[Any, ...]]:
    run = record.run
    row = (
        run.id, run.tenant, run.pipeline, run.lane, str(run.state), run.seq, run.priority, run.key, run.fingerprint,
        run.parent, run.epoch, run.attempts, run.attempt_limit, run.worker, run.created, run.available, run.started,
        run.finished, run.input, run.result, _json(run.error) if run.error else None, run.reason, record.progress,
        record.unique, record.inherits, record.holds_lane, tx.mono + record.delay, record.delay,
    )  # fmt: skip
    return [row]


def _checkpoint_rows(tx: Transaction, record: RunRecord) -> list[tuple[Any, ...]]:
    return [
        (
            record.run.id,
            c.step,
            c.key,
            c.value,
            c.checksum,
            c.schema,
            c.fingerprint,
            c.record,
            c.epoch,
        )
        for c in record.checkpoints
    ]


def _quarantine_rows(tx: Transaction, record: RunRecord) -> list[tuple[Any, ...]]:
    return [
        (record.run.id, bad.step, bad.key, bad.reason, bad.value, bad.at)
        for bad in record.quarantine
    ]


def _event_rows(tx: Transaction, record: RunRecord) -> list[tuple[Any, ...]]:
    return [
        (event.position, event.run, event.seq, event.type, event.at, event.data)
        for event in record.history
    ]


def _log_rows(tx: Transaction, record: RunRecord) -> list[tuple[Any, ...]]:
    return [
        (record.run.id, line.at, line.level, line.step, line.message, line.fields)
        for line in record.logs
    ]


def _letter_rows(tx: Transaction, record: RunRecord) -> list[tuple[Any, ...]]:
    return [_letter_row(record.letter)] if record.letter else []


BELONGINGS: dict[str, tuple[str, Callable[[Transaction, RunRecord], list[tuple[Any, ...]]]]] = {
    "runs": (f"{reads._RUN}, is_unique, inherited, holds_lane, due, delay", _run_rows),
    "checkpoints": (
        "run, step, key, value, checksum, schema, fingerprint, record, epoch",
        _checkpoint_rows,
    ),
    "quarantine": ("run, step, key, reason, value, at", _quarantine_rows),
    "events": ("position, run, seq, type, at, data", _event_rows),
    "logs": ("run, at, level, step, message, fields", _log_rows),
    "dead_letters": (reads._DEAD, _letter_rows),
}
"""Where the parts of a record go."""

ADOPT: dict[str, Callable[[Transaction, Sequence[Any]], None]] = {
    "lanes": _adopt_lanes,
    "locks": _adopt_locks,
    "letters": _adopt_letters,
    "audit": _adopt_audit,
    "runs": _adopt_runs,
}
