"""Moving what is in a file: rows as they are, read in pages and written in one transaction a page.

The mark is a row of `meta`, and triggers that exist only while it does: whoever writes to a held
store is refused by SQLite itself, and a store that is not held pays nothing for it. A mover's
transaction notes in `meta` that it is one, and removes the note before it commits, so no other
connection ever sees it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import astuple, replace

from holdfast.adapters.moving import audit_page, named_page, without_lease
from holdfast.adapters.sqlite import batch, database, reads
from holdfast.adapters.sqlite.statements import (
    RUN_COLUMNS,
    Row,
    decode,
    insert_into,
    is_live,
    lasts,
    pack,
    quoted,
)
from holdfast.adapters.sqlite.writes import hold_position
from holdfast.errors import ConfigurationError
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.clock import Clock, SystemClock
from holdfast.model.commands import RUN_LETTER, Sweep
from holdfast.model.event import Event
from holdfast.model.lane import Lane
from holdfast.model.machine.facts import Now, RecordFacts
from holdfast.ports.mover import (
    PAGE_BYTES,
    AuditRecord,
    ExpiringRecord,
    Holder,
    Kind,
    LetterRecord,
    LockEpoch,
    MoveMark,
    MoveState,
    Numbers,
    Page,
    Quarantined,
    RunRecord,
    TenantLimit,
)
from holdfast.ports.records import Record
from holdfast.ports.store import DeadLetter, StoredLog

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
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that the triggers let pass."""
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            db.execute("INSERT INTO meta (name, value) VALUES ('mover', 'at work')")
            yield db
            db.execute("DELETE FROM meta WHERE name = 'mover'")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    # --- the mark ---

    async def move_state(self) -> MoveState:
        return await self._do(self._move_state)

    def _move_state(self) -> MoveState:
        db, mono = self._db, {"mono": self._clock.monotonic()}
        leases = db.execute(
            f"SELECT 'run ' || id, coalesce(worker, '') FROM runs WHERE {_LEASED} ORDER BY seq",
            mono,
        )
        locks = db.execute(
            f"SELECT 'lock ' || name, owner FROM locks WHERE {reads.LOCK_HELD} ORDER BY name", mono
        )
        return MoveState(
            database.read_mark(db),
            empty=db.execute(_EMPTY).fetchone() is None,
            runs=db.execute("SELECT count(*) FROM runs").fetchone()[0],
            numbers=Numbers(*db.execute(_NUMBERS).fetchone()),
            last_run=next(
                (id for (id,) in db.execute("SELECT id FROM runs ORDER BY seq DESC LIMIT 1")), None
            ),
            holders=[Holder(*row) for row in (*leases, *locks)],
        )

    async def hold(self, mark: MoveMark) -> None:
        await self._do(self._hold, mark)

    def _hold(self, mark: MoveMark) -> None:
        with self._writing() as db:
            db.execute("UPDATE runs SET lease_until = 0 WHERE state = 'running'")
            db.execute("UPDATE locks SET token = NULL, lease_until = NULL")
            batch.decide_all(db, self._now(), [Sweep(limit=ALL)])
            _drop_triggers(db)
            _create_triggers(db, mark.meaning)
            db.execute(
                "INSERT OR REPLACE INTO meta (name, value) VALUES ('mark', ?)", (_json(mark),)
            )

    def _now(self) -> Now:
        return Now(self._clock.now(), self._clock.monotonic())

    async def release(self) -> None:
        await self._do(self._release)

    def _release(self) -> None:
        with self._writing() as db:
            _drop_triggers(db)
            db.execute("DELETE FROM meta WHERE name = 'mark'")

    # --- reading ---

    async def export(self, kind: Kind, after: str | None, limit: int) -> Page:
        if kind == "runs":
            return await self._do(self._export_runs, self._db, after, limit)
        if kind == "records":
            return await self._do(self._export_records, self._db, after, limit)
        return await self._do(EXPORT[kind], self._db, after, limit)

    def _export_records(self, db: sqlite3.Connection, after: str | None, limit: int) -> Page:
        rows = db.execute(_EXPIRING, (after or "", self._clock.monotonic(), limit)).fetchall()
        return named_page(rows, _expiring, limit)

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

    def _record(self, db: sqlite3.Connection, row: Row) -> RunRecord:
        run = reads.facts(row)
        record = without_lease(run, self._clock.monotonic())
        record.checkpoints = reads.checkpoints(db, run.id, None)
        record.quarantine = [Quarantined(*bad) for bad in db.execute(_QUARANTINE, (run.id,))]
        record.history = reads.history(db, run.id)
        record.logs = reads.logs(db, run.id, 0, ALL)
        record.letter = reads.dead_letter(db, f"{RUN_LETTER}{run.id}")
        return record

    # --- taking in ---

    async def adopt(self, kind: Kind, records: Sequence[Any]) -> None:
        await self._do(self._adopt, kind, records)

    def _adopt(self, kind: Kind, records: Sequence[Any]) -> None:
        with self._writing() as db:
            ADOPT[kind](db, self._now(), records)

    async def continue_from(self, numbers: Numbers) -> None:
        await self._do(self._continue_from, numbers)

    def _continue_from(self, numbers: Numbers) -> None:
        with self._writing() as db:
            seq, position = db.execute(_NUMBERS).fetchone()
            db.execute("DELETE FROM sqlite_sequence WHERE name = 'runs'")
            db.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES ('runs', ?)",
                (max(seq, numbers.seq),),
            )
            if numbers.position > position:
                hold_position(db, numbers.position, self._now())


_LEASED = f"state = 'running' AND {lasts(':mono')}"

_NUMBERS = """
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'runs'), 0),
       coalesce((SELECT max(position) FROM events), 0)
"""

_EMPTY = (
    "SELECT 1 FROM runs UNION ALL SELECT 1 FROM dead_letters UNION ALL SELECT 1 FROM audit LIMIT 1"
)

# --- triggers ---


def _create_triggers(db: sqlite3.Connection, meaning: str) -> None:
    tables = db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'meta' AND name NOT LIKE "
        "'sqlite_%'"
    ).fetchall()
    text = meaning.replace("'", "''")
    for (table,) in tables:
        for act in ("INSERT", "UPDATE", "DELETE"):
            db.execute(
                f"CREATE TRIGGER held_{table}_{act.lower()} BEFORE {act} ON {table} "
                "WHEN NOT EXISTS (SELECT 1 FROM meta WHERE name = 'mover') "
                f"BEGIN SELECT RAISE(ABORT, '{text}'); END"
            )


def _drop_triggers(db: sqlite3.Connection) -> None:
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        db.execute(f"DROP TRIGGER {name}")


# --- pages ---

_RUNS = (
    f"SELECT {quoted(RUN_COLUMNS)} FROM runs "
    "WHERE seq > coalesce((SELECT seq FROM runs WHERE id = ?), 0) ORDER BY seq LIMIT ?"
)
_EXPIRING = f"""
SELECT key, value, version, updated, lease_until - ?2 FROM records
WHERE key > ?1 AND {is_live("?2")}
ORDER BY key LIMIT ?3
"""
_QUARANTINE = "SELECT step, key, reason, value, at FROM quarantine WHERE run = ? ORDER BY id"


def _expiring(*row: Any) -> ExpiringRecord:
    return ExpiringRecord(Record(*row[:4]), row[4])


def _by_name(
    sql: str, typed: Callable[..., Any]
) -> Callable[[sqlite3.Connection, str | None, int], Page]:
    """Records in the order of the first column of the statement, which is asked for those after a
    name."""

    def export(db: sqlite3.Connection, after: str | None, limit: int) -> Page:
        return named_page(db.execute(sql, (after, limit)).fetchall(), typed, limit)

    return export


def _export_audit(db: sqlite3.Connection, after: str | None, limit: int) -> Page:
    start = int(after or 0)
    sql = "SELECT at, actor, action, target, reason FROM audit ORDER BY id LIMIT ? OFFSET ?"
    return audit_page(db.execute(sql, (limit, start)).fetchall(), start, limit)


def _export_letters(db: sqlite3.Connection, after: str | None, limit: int) -> Page:
    letters = reads.message_letters(db, after, limit)
    events = [reads.letter_event(db, letter) for letter in letters]
    records = [LetterRecord(*pair) for pair in zip(letters, events, strict=True)]
    return Page(records, letters[-1].id if len(letters) == limit else None)


EXPORT: dict[str, Callable[[sqlite3.Connection, str | None, int], Page]] = {
    "lanes": _by_name(
        'SELECT name, "order", head FROM lanes WHERE ?1 IS NULL OR name > ?1 '
        "ORDER BY name LIMIT ?2",
        Lane,
    ),
    "tenants": _by_name(
        "SELECT tenant, running FROM tenants WHERE ?1 IS NULL OR tenant > ?1 "
        "ORDER BY tenant LIMIT ?2",
        TenantLimit,
    ),
    "locks": _by_name(
        "SELECT name, epoch FROM locks WHERE ?1 IS NULL OR name > ?1 ORDER BY name LIMIT ?2",
        LockEpoch,
    ),
    "letters": _export_letters,
    "audit": _export_audit,
}

# --- rows ---


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _insert(
    db: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    rows: Sequence[Row],
    verb: str = "INSERT",
) -> None:
    marks = ", ".join("?" * len(columns))
    db.executemany(f"{insert_into(table, columns, verb)} VALUES ({marks})", rows)


def _adopt_lanes(db: sqlite3.Connection, now: Now, lanes: Sequence[Lane]) -> None:
    rows = [astuple(lane) for lane in lanes]
    _insert(db, "lanes", Lane.__struct_fields__, rows, "INSERT OR REPLACE")


def _adopt_locks(db: sqlite3.Connection, now: Now, locks: Sequence[LockEpoch]) -> None:
    sql = (
        "INSERT INTO locks (name, epoch, owner, lease_ttl) VALUES (?, ?, '', 0.0) "
        "ON CONFLICT (name) DO UPDATE SET epoch = max(epoch, excluded.epoch)"
    )
    db.executemany(sql, [(lock.name, lock.epoch) for lock in locks])


def _adopt_tenants(db: sqlite3.Connection, now: Now, limits: Sequence[TenantLimit]) -> None:
    rows = [astuple(limit) for limit in limits]
    _insert(db, "tenants", TenantLimit.__struct_fields__, rows, "INSERT OR REPLACE")


def _adopt_records(db: sqlite3.Connection, now: Now, moved: Sequence[ExpiringRecord]) -> None:
    rows = [
        (
            *astuple(m.record),
            None if m.remaining is None else now.mono + m.remaining,
            m.remaining or 0,
        )
        for m in moved
    ]
    _insert(db, "records", RecordFacts.__struct_fields__, rows, "INSERT OR IGNORE")


def _adopt_letters(db: sqlite3.Connection, now: Now, moved: Sequence[LetterRecord]) -> None:
    rows = [(*_letter_row(m.letter), m.letter.body) for m in moved]
    _insert(db, "dead_letters", (*LETTER_COLUMNS, "body"), rows, "INSERT OR IGNORE")
    events = [_event_row(m.event) for m in moved]
    _insert(db, "events", EVENT_COLUMNS, events, "INSERT OR IGNORE")


LETTER_COLUMNS = tuple(name for name in DeadLetter.__struct_fields__ if name != "body")


def _letter_row(letter: DeadLetter) -> Row:
    values = {name: getattr(letter, name) for name in LETTER_COLUMNS}
    return tuple((values | {"attributes": _json(letter.attributes)}).values())


def _adopt_audit(db: sqlite3.Connection, now: Now, entries: Sequence[AuditRecord]) -> None:
    known = db.execute("SELECT count(*) FROM audit").fetchone()[0]
    rows = [(e.at, e.actor, e.action, e.target, e.reason) for e in entries if e.number > known]
    _insert(db, "audit", ("at", "actor", "action", "target", "reason"), rows)


def _adopt_runs(db: sqlite3.Connection, now: Now, records: Sequence[RunRecord]) -> None:
    sql = "SELECT id FROM runs WHERE id IN (SELECT value FROM json_each(?))"
    known = {id for (id,) in db.execute(sql, (pack([record.run.id for record in records]),))}
    fresh = [record for record in records if record.run.id not in known]
    db.execute("DELETE FROM events WHERE run = ''")  # `continue_from` puts the placeholder back
    for table, (columns, rows_of) in RUN_PARTS.items():
        _insert(db, table, columns, [row for record in fresh for row in rows_of(record, now)])


def _run_rows(record: RunRecord, now: Now) -> list[Row]:
    due = now.mono + record.wait if record.run.available is not None else None
    return [astuple(replace(record.run, due=due, delay=record.wait))]


def _label_rows(record: RunRecord, now: Now) -> list[Row]:
    run = record.run
    labels = decode(run.labels) if run.labels else {}
    return [(run.tenant, name, value, run.seq) for name, value in labels.items()]


def _checkpoint_rows(record: RunRecord, now: Now) -> list[Row]:
    return [(record.run.id, *astuple(saved)) for saved in record.checkpoints]


def _quarantine_rows(record: RunRecord, now: Now) -> list[Row]:
    return [(record.run.id, *astuple(bad)) for bad in record.quarantine]


EVENT_COLUMNS = ("position", "run", "seq", "type", "at", "data")


def _event_row(event: Event) -> Row:
    return (event.position, event.run, event.seq, event.type, event.at, event.data)


def _event_rows(record: RunRecord, now: Now) -> list[Row]:
    return [_event_row(event) for event in record.history]


def _log_rows(record: RunRecord, now: Now) -> list[Row]:
    return [(record.run.id, *astuple(line)) for line in record.logs]


def _letter_rows(record: RunRecord, now: Now) -> list[Row]:
    return [_letter_row(record.letter)] if record.letter else []


RUN_PARTS: dict[str, tuple[tuple[str, ...], Callable[[RunRecord, Now], list[Row]]]] = {
    "runs": (RUN_COLUMNS, _run_rows),
    "checkpoints": (("run", *Checkpoint.__struct_fields__), _checkpoint_rows),
    "quarantine": (("run", *Quarantined.__struct_fields__), _quarantine_rows),
    "labels": (("tenant", "name", "value", "seq"), _label_rows),
    "events": (EVENT_COLUMNS, _event_rows),
    "logs": (("run", *StoredLog.__struct_fields__), _log_rows),
    "dead_letters": (LETTER_COLUMNS, _letter_rows),
}
"""Where the parts of a record go."""

ADOPT: dict[str, Callable[[sqlite3.Connection, Now, Sequence[Any]], None]] = {
    "lanes": _adopt_lanes,
    "tenants": _adopt_tenants,
    "locks": _adopt_locks,
    "records": _adopt_records,
    "letters": _adopt_letters,
    "audit": _adopt_audit,
    "runs": _adopt_runs,
}
