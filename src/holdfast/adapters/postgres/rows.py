"""What is moved, as rows: read and written inside a mover's transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import astuple, replace
from psycopg import AsyncCursor

from holdfast.adapters.postgres.statements import RUN_COLUMNS
from holdfast.adapters.postgres.text import seal_text, unseal_text
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event
from holdfast.model.lane import Lane
from holdfast.model.machine.facts import RunFacts
from holdfast.model.run import RunState
from holdfast.ports.mover import (
    PAGE_BYTES,
    AuditRecord,
    ExpiringRecord,
    Kind,
    LetterRecord,
    LockEpoch,
    Page,
    Quarantined,
    RunRecord,
    TenantLimit,
)
from holdfast.ports.records import Record
from holdfast.ports.store import DeadLetter, StoredLog, letter_attributes

Row = tuple[Any, ...]


async def rows(
    cursor: AsyncCursor, sql: str, parameters: dict[str, Any] | None = None
) -> list[Row]:
    """What a statement answers, with all characters that were sealed."""
    await cursor.execute(sql, parameters)  # type: ignore[arg-type]  # our own constants only
    return [tuple(map(_unsealed, row)) for row in await cursor.fetchall()]


async def one_row(cursor: AsyncCursor, sql: str, parameters: dict[str, Any] | None = None) -> Row:
    [row] = await rows(cursor, sql, parameters)
    return row


def _unsealed(value: Any) -> Any:
    return unseal_text(value) if isinstance(value, str) else value


def _sealed(value: Any) -> Any:
    return seal_text(value) if isinstance(value, str) else value


# --- reading --------------------------------------------------------------------------------------

_CHOSEN = """
SELECT id FROM (
    SELECT id, seq, sum(size) OVER (ORDER BY seq) - size AS before FROM (
        SELECT q.id, q.seq, octet_length(q.input) + coalesce((
            SELECT sum(octet_length(value) + octet_length(record))
            FROM checkpoints WHERE run = q.id), 0) AS size
        FROM requests q
        WHERE q.seq > coalesce((SELECT seq FROM requests WHERE id = %(after)s), 0)
        ORDER BY q.seq LIMIT %(limit)s) AS page) AS sized
WHERE before <= %(bytes)s ORDER BY seq
"""

_RUNS = f"SELECT {', '.join(RUN_COLUMNS)} FROM all_runs r WHERE id = ANY (%(ids)s) ORDER BY seq"


async def export_runs(cursor: AsyncCursor, mono: float, after: str | None, limit: int) -> Page:
    page = {"after": seal_text(after or ""), "limit": limit, "bytes": PAGE_BYTES}
    chosen = {"ids": [seal_text(id) for (id,) in await rows(cursor, _CHOSEN, page)]}
    records = {row[0]: _record(row, mono) for row in await rows(cursor, _RUNS, chosen)}
    for sql, add in RUN_PARTS.items():
        for id, belongings in groupby(await rows(cursor, sql, chosen), key=lambda row: row[0]):
            add(records[id], [row[1:] for row in belongings])
    if not records:
        return Page([], None)
    last = list(records.values())[-1].run
    more = "SELECT EXISTS (SELECT FROM requests WHERE seq > %(after)s)"
    [has_more] = await one_row(cursor, more, {"after": last.seq})
    return Page(list(records.values()), last.id if has_more else None)


def _record(row: Row, mono: float) -> RunRecord:
    run = RunFacts(*row)
    wait = 0.0 if run.due is None else run.due - mono
    state = RunState(run.state)
    moved = replace(run, state=state, due=None, delay=0.0, lease_until=None, lease_ttl=0.0)
    return RunRecord(moved, wait if 0.0 < wait <= run.delay else 0.0)


def _add_history(record: RunRecord, events: list[Row]) -> None:
    run = record.run
    record.history = [
        Event(run.id, seq, kind, at, data, run.tenant, run.pipeline, position)
        for seq, kind, at, data, position in events
    ]


def _setter(name: str, make: Callable[..., Any]) -> Callable[[RunRecord, list[Row]], None]:
    return lambda record, rows_of_run: setattr(record, name, [make(*row) for row in rows_of_run])


_LETTER = "id, source, reason, body, attributes, tenant, created, run, closed, resolution"


def _letter(*row: Any) -> DeadLetter:
    id, source, reason, body, attributes, *rest = row
    return DeadLetter(id, source, reason, bytes(body or b""), letter_attributes(attributes), *rest)


def _add_letter(record: RunRecord, letters: list[Row]) -> None:
    record.letter = replace(_letter(*letters[0]), body=record.run.input.encode())


RUN_PARTS: dict[str, Callable[[RunRecord, list[Row]], None]] = {
    "SELECT run, step, key, value, checksum, schema, fingerprint, record, epoch "
    "FROM all_checkpoints WHERE run = ANY (%(ids)s) ORDER BY run, step, key": _setter(
        "checkpoints", Checkpoint
    ),
    "SELECT run, step, key, reason, value, at FROM quarantine "
    "WHERE run = ANY (%(ids)s) ORDER BY run, id": _setter("quarantine", Quarantined),
    "SELECT run, seq, type, at, data, position FROM all_events "
    "WHERE run = ANY (%(ids)s) ORDER BY run, seq": _add_history,
    "SELECT run, at, level, step, message, fields FROM logs "
    "WHERE run = ANY (%(ids)s) ORDER BY run, n": _setter("logs", StoredLog),
    f"SELECT run, {_LETTER} FROM dead_letters "
    "WHERE id IN (SELECT 'run:' || id FROM unnest(%(ids)s::text[]) AS id)": _add_letter,
}
"""The statements that read what belongs to runs, and where that goes."""


async def export(
    cursor: AsyncCursor, kind: Kind, mono: float, after: str | None, limit: int
) -> Page:
    """Records of the other kinds."""
    if kind == "audit":
        return await _export_audit(cursor, int(after or 0), limit)
    sql, make = NAMED[kind]
    page = {"after": seal_text(after or ""), "limit": limit, "mono": mono}
    page_rows = await rows(cursor, sql, page)
    return Page(
        [make(*row) for row in page_rows], page_rows[-1][0] if len(page_rows) == limit else None
    )


async def _export_audit(cursor: AsyncCursor, after: int, limit: int) -> Page:
    sql = (
        "SELECT at, actor, action, target, reason FROM audit "
        "ORDER BY id OFFSET %(after)s LIMIT %(limit)s"
    )
    page_rows = await rows(cursor, sql, {"after": after, "limit": limit})
    entries = [AuditRecord(number, *row) for number, row in enumerate(page_rows, after + 1)]
    return Page(entries, str(after + limit) if len(page_rows) == limit else None)


def _expiring(key: str, value: str, version: str, updated: float, remaining: Any) -> ExpiringRecord:
    return ExpiringRecord(Record(key, value, version, updated), remaining)


def _letter_record(*row: Any) -> LetterRecord:
    *columns, kind, at, data, position = row
    letter = _letter(*columns)
    return LetterRecord(letter, Event(letter.id, 1, kind, at, data, letter.tenant, "", position))


NAMED: dict[str, tuple[str, Callable[..., Any]]] = {
    "lanes": (
        'SELECT name, "order", head FROM lanes WHERE name > %(after)s '
        "ORDER BY name LIMIT %(limit)s",
        Lane,
    ),
    "tenants": (
        "SELECT tenant, running FROM tenants WHERE tenant > %(after)s "
        "ORDER BY tenant LIMIT %(limit)s",
        TenantLimit,
    ),
    "locks": (
        "SELECT name, epoch FROM locks WHERE name > %(after)s ORDER BY name LIMIT %(limit)s",
        LockEpoch,
    ),
    "records": (
        "SELECT key, value, version, updated, lease_until - %(mono)s FROM records WHERE key > "
        "%(after)s AND (lease_until IS NULL OR lasts(lease_until, lease_ttl, %(mono)s)) ORDER BY "
        "key LIMIT %(limit)s",
        _expiring,
    ),
    "letters": (
        "SELECT d.id, d.source, d.reason, d.body, d.attributes, d.tenant, d.created, d.run, "
        "d.closed, d.resolution, e.type, e.at, e.data, e.position "
        "FROM dead_letters d JOIN events e ON e.run = d.id AND e.seq = 1 "
        "WHERE d.run IS NULL AND d.id > %(after)s ORDER BY d.id LIMIT %(limit)s",
        _letter_record,
    ),
}

# --- taking in ------------------------------------------------------------------------------------


async def _insert(
    cursor: AsyncCursor, table: str, columns: str, new_rows: Sequence[Row], conflict: str = ""
) -> None:
    marks = ", ".join(["%s"] * (columns.count(",") + 1))
    sql = f"INSERT INTO {table} ({columns}) VALUES ({marks}) {conflict}"
    await cursor.executemany(sql, [list(map(_sealed, row)) for row in new_rows])  # type: ignore[arg-type]


async def _copy(cursor: AsyncCursor, table: str, columns: str, new_rows: list[Row]) -> None:
    if not new_rows:
        return
    async with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:  # type: ignore[arg-type]
        for row in new_rows:
            await copy.write_row(list(map(_sealed, row)))


async def _adopt_lanes(cursor: AsyncCursor, mono: float, lanes: Sequence[Lane]) -> None:
    update = 'ON CONFLICT (name) DO UPDATE SET "order" = excluded."order", head = excluded.head'
    lane_rows = [astuple(lane) for lane in lanes]
    await _insert(cursor, "lanes", 'name, "order", head', lane_rows, update)


async def _adopt_tenants(cursor: AsyncCursor, mono: float, limits: Sequence[TenantLimit]) -> None:
    update = "ON CONFLICT (tenant) DO UPDATE SET running = excluded.running"
    limit_rows = [astuple(limit) for limit in limits]
    await _insert(cursor, "tenants", "tenant, running", limit_rows, update)


async def _adopt_locks(cursor: AsyncCursor, mono: float, locks: Sequence[LockEpoch]) -> None:
    update = "ON CONFLICT (name) DO UPDATE SET epoch = greatest(locks.epoch, excluded.epoch)"
    await _insert(cursor, "locks", "name, epoch", [astuple(lock) for lock in locks], update)


async def _adopt_records(cursor: AsyncCursor, mono: float, moved: Sequence[ExpiringRecord]) -> None:
    record_rows = [
        (
            *astuple(m.record),
            None if m.remaining is None else mono + m.remaining,
            m.remaining or 0.0,
        )
        for m in moved
    ]
    columns = "key, value, version, updated, lease_until, lease_ttl"
    await _insert(cursor, "records", columns, record_rows, "ON CONFLICT DO NOTHING")


async def _adopt_letters(cursor: AsyncCursor, mono: float, moved: Sequence[LetterRecord]) -> None:
    letters = [_letter_row(m.letter, m.letter.body) for m in moved]
    await _insert(cursor, "dead_letters", _LETTER, letters, "ON CONFLICT DO NOTHING")
    events = [_event_row(m.event) for m in moved]
    await _insert(cursor, "events", EVENTS, events, "ON CONFLICT DO NOTHING")


def _letter_row(letter: DeadLetter, body: bytes | None) -> Row:
    attributes = msgspec.json.encode(letter.attributes).decode()
    id, source, reason, _, _, *rest = astuple(letter)
    return (id, source, reason, body, attributes, *rest)


EVENTS = "position, run, seq, type, at, data"


def _event_row(event: Event) -> Row:
    return (event.position, event.run, event.seq, event.type, event.at, event.data)


async def _adopt_audit(cursor: AsyncCursor, mono: float, entries: Sequence[AuditRecord]) -> None:
    [known] = await one_row(cursor, "SELECT count(*) FROM audit")
    fresh = [astuple(entry)[1:] for entry in entries if entry.number > known]
    await _copy(cursor, "audit", "at, actor, action, target, reason", fresh)


async def _adopt_runs(cursor: AsyncCursor, mono: float, records: Sequence[RunRecord]) -> None:
    ids = {"ids": [seal_text(record.run.id) for record in records]}
    sql = "SELECT id FROM requests WHERE id = ANY (%(ids)s)"
    known = {id for (id,) in await rows(cursor, sql, ids)}
    fresh = [record for record in records if record.run.id not in known]
    for table, (columns, rows_of) in TABLES.items():
        await _copy(
            cursor, table, columns, [row for record in fresh for row in rows_of(record, mono)]
        )


def _request_rows(record: RunRecord, mono: float) -> list[Row]:
    r = record.run
    row = (
        r.seq, r.id, r.tenant, r.pipeline, r.lane, r.priority, r.unique, r.inherits, r.created,
        r.key, r.parent, r.labels, r.attributes, r.fingerprint, r.input,
    )  # fmt: skip
    return [row]


def _label_rows(record: RunRecord, mono: float) -> list[Row]:
    run = record.run
    labels = msgspec.json.decode(run.labels) if run.labels else {}
    return [(run.tenant, name, value, run.seq) for name, value in labels.items()]


def _open_rows(record: RunRecord, mono: float) -> list[Row]:
    r = record.run
    if r.state is RunState.SUCCEEDED:
        return []
    due = mono + record.wait if r.available is not None else None
    row = (
        r.id, r.seq, r.tenant, r.pipeline, r.lane, str(r.state), r.priority, len(r.input.encode()),
        r.epoch, r.events, r.attempts, r.attempt_limit, r.available, due, record.wait, r.started,
        r.finished, r.unique, r.holds_lane, r.worker, r.reason, r.error, r.progress,
    )  # fmt: skip
    return [row]


def _result_rows(record: RunRecord, mono: float) -> list[Row]:
    r = record.run
    if r.state is not RunState.SUCCEEDED:
        return []
    completed = record.history[-1]
    row = (
        r.id, completed.position, r.events, r.epoch, r.attempts, r.attempt_limit, r.started,
        r.finished, r.worker, msgspec.json.decode(completed.data)["execution_time_ms"], r.progress,
        r.result, r.result_checksum,
    )  # fmt: skip
    return [row]


def _event_rows(record: RunRecord, mono: float) -> list[Row]:
    """Those that no other row says: a request says the first, a result the last."""
    end = -1 if record.run.state is RunState.SUCCEEDED else None
    return [_event_row(event) for event in record.history[1:end]]


TABLES: dict[str, tuple[str, Callable[[RunRecord, float], list[Row]]]] = {
    "requests": (
        "seq, id, tenant, pipeline, lane, priority, is_unique, inherits, created, key, parent, "
        "labels, attributes, fingerprint, input",
        _request_rows,
    ),
    "labels": ("tenant, name, value, seq", _label_rows),
    "open_runs": (
        "id, seq, tenant, pipeline, lane, state, priority, size, epoch, events, attempts, "
        "attempt_limit, available, due, delay, started, finished, is_unique, holds_lane, worker, "
        "reason, error, progress",
        _open_rows,
    ),
    "results": (
        "id, position, events, epoch, attempts, attempt_limit, started, finished, worker, "
        "execution_ms, progress, result, result_checksum",
        _result_rows,
    ),
    "checkpoints": (
        "run, step, key, value, checksum, schema, fingerprint, record, epoch",
        lambda record, _: [(record.run.id, *astuple(saved)) for saved in record.checkpoints],
    ),
    "quarantine": (
        "run, step, key, reason, value, at",
        lambda record, _: [(record.run.id, *astuple(bad)) for bad in record.quarantine],
    ),
    "events": (EVENTS, _event_rows),
    "logs": (
        "run, n, at, level, step, message, fields",
        lambda record, _: [
            (record.run.id, n, *astuple(line)) for n, line in enumerate(record.logs, 1)
        ],
    ),
    "dead_letters": (
        _LETTER,
        lambda record, _: [_letter_row(record.letter, None)] if record.letter else [],
    ),
}
"""Where the parts of a record go."""

ADOPT: dict[str, Callable[[AsyncCursor, float, Sequence[Any]], Awaitable[None]]] = {
    "lanes": _adopt_lanes,
    "tenants": _adopt_tenants,
    "locks": _adopt_locks,
    "records": _adopt_records,
    "letters": _adopt_letters,
    "audit": _adopt_audit,
    "runs": _adopt_runs,
}
