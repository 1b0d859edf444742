"""What is moved, as rows: read and written inside a mover's transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict, replace
from psycopg import AsyncCursor

from holdfast.adapters.moving import audit_page, named_page, without_lease
from holdfast.adapters.postgres.statements import RUN_COLUMNS
from holdfast.adapters.postgres.text import seal, seal_text, unseal_text
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event
from holdfast.model.lane import Lane
from holdfast.model.machine.facts import LockFacts, RunFacts
from holdfast.model.run import RunState
from holdfast.ports.mover import (
    PAGE_BYTES,
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
Fields = dict[str, Any]
"""A row to be written: the values of its columns by name; NULL for those that are not there."""


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


# --- reading --------------------------------------------------------------------------------------


async def export(
    cursor: AsyncCursor, kind: Kind, mono: float, after: str | None, limit: int
) -> Page:
    if kind == "runs":
        return await _export_runs(cursor, mono, after, limit)
    if kind == "audit":
        return await _export_audit(cursor, int(after or 0), limit)
    sql, make = NAMED[kind]
    page = {"after": seal_text(after or ""), "limit": limit, "mono": mono}
    return named_page(await rows(cursor, sql, page), make, limit)


async def _export_audit(cursor: AsyncCursor, after: int, limit: int) -> Page:
    sql = (
        "SELECT at, actor, action, target, reason FROM audit "
        "ORDER BY id OFFSET %(after)s LIMIT %(limit)s"
    )
    return audit_page(await rows(cursor, sql, {"after": after, "limit": limit}), after, limit)


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


async def _export_runs(cursor: AsyncCursor, mono: float, after: str | None, limit: int) -> Page:
    page = {"after": seal_text(after or ""), "limit": limit, "bytes": PAGE_BYTES}
    parameters = {"ids": [seal_text(id) for (id,) in await rows(cursor, _CHOSEN, page)]}
    runs = [msgspec.convert(row, RunFacts) for row in await rows(cursor, _RUNS, parameters)]
    records = {run.id: without_lease(run, mono) for run in runs}
    for sql, add in RUN_PARTS:
        for id, *values in await rows(cursor, sql, parameters):
            add(records[id], *values)
    if not records:
        return Page([], None)
    last = list(records.values())[-1].run
    more = "SELECT EXISTS (SELECT FROM requests WHERE seq > %(after)s)"
    [has_more] = await one_row(cursor, more, {"after": last.seq})
    return Page(list(records.values()), last.id if has_more else None)


def _of_runs(table: str, columns: str, order: str) -> str:
    return f"SELECT run, {columns} FROM {table} WHERE run = ANY (%(ids)s) ORDER BY run, {order}"


def _add_event(record: RunRecord, seq: int, kind: str, at: float, data: str, number: int) -> None:
    run = record.run
    event = Event(run.id, seq, kind, at, data, run.tenant, run.pipeline, number)
    record.history.append(event)


def _letter(*row: Any) -> DeadLetter:
    id, source, reason, body, attributes, *rest = row
    return DeadLetter(id, source, reason, bytes(body or b""), letter_attributes(attributes), *rest)


def _add_letter(record: RunRecord, *values: Any) -> None:
    record.letter = replace(_letter(*values), body=record.run.input.encode())


RUN_PARTS: list[tuple[str, Callable[..., None]]] = [
    (
        _of_runs("all_checkpoints", ", ".join(Checkpoint.__struct_fields__), "step, key"),
        lambda record, *values: record.checkpoints.append(Checkpoint(*values)),
    ),
    (
        _of_runs("quarantine", ", ".join(Quarantined.__struct_fields__), "id"),
        lambda record, *values: record.quarantine.append(Quarantined(*values)),
    ),
    (_of_runs("all_events", "seq, type, at, data, position", "seq"), _add_event),
    (
        _of_runs("logs", ", ".join(StoredLog.__struct_fields__), "n"),
        lambda record, *values: record.logs.append(StoredLog(*values)),
    ),
    (
        f"SELECT run, {', '.join(DeadLetter.__struct_fields__)} FROM dead_letters "
        "WHERE id IN (SELECT 'run:' || id FROM unnest(%(ids)s::text[]) AS id)",
        _add_letter,
    ),
]
"""The statements that read what belongs to runs, and where that goes."""


def _expiring(key: str, value: str, version: str, updated: float, remaining: Any) -> ExpiringRecord:
    return ExpiringRecord(Record(key, value, version, updated), remaining)


def _letter_record(*row: Any) -> LetterRecord:
    *columns, kind, at, data, position = row
    letter = _letter(*columns)
    return LetterRecord(letter, Event(letter.id, 1, kind, at, data, letter.tenant, "", position))


def _by_name(columns: str, table: str, where: str = "") -> str:
    """A page of rows, in the order of their first column."""
    name = columns.partition(",")[0]
    return (
        f"SELECT {columns} FROM {table} WHERE {name} > %(after)s {where} "
        f"ORDER BY {name} LIMIT %(limit)s"
    )


NAMED: dict[str, tuple[str, Callable[..., Any]]] = {
    "lanes": (_by_name('name, "order", head', "lanes"), Lane),
    "tenants": (_by_name("tenant, running", "tenants"), TenantLimit),
    "locks": (_by_name("name, epoch", "locks"), LockEpoch),
    "records": (
        _by_name(
            "key, value, version, updated, lease_until - %(mono)s",
            "records",
            "AND (lease_until IS NULL OR lasts(lease_until, lease_ttl, %(mono)s))",
        ),
        _expiring,
    ),
    "letters": (
        _by_name(
            f"{', '.join(f'd.{name}' for name in DeadLetter.__struct_fields__)}, "
            "e.type, e.at, e.data, e.position",
            "dead_letters d JOIN events e ON e.run = d.id AND e.seq = 1",
            "AND d.run IS NULL",
        ),
        _letter_record,
    ),
}

# --- taking in ------------------------------------------------------------------------------------


async def adopt(cursor: AsyncCursor, kind: Kind, mono: float, records: Sequence[Any]) -> None:
    tables: defaultdict[str, list[Fields]] = defaultdict(list)
    for record in await _unknown(cursor, kind, records):
        for table, fields in ROWS[kind](record, mono):
            tables[table].append(fields)
    for table, table_rows in tables.items():
        sql = (
            f"INSERT INTO {table} OVERRIDING USER VALUE "  # identities are the table's to give
            f"SELECT * FROM json_populate_recordset(NULL::{table}, %s) {CONFLICT.get(kind, '')}"
        )
        body = seal(msgspec.json.encode(table_rows)).decode()
        await cursor.execute(sql, [body])  # type: ignore[arg-type]


async def _unknown(cursor: AsyncCursor, kind: Kind, records: Sequence[Any]) -> Sequence[Any]:
    """Without runs and entries of the audit that were taken in already."""
    if kind == "audit":
        [known] = await one_row(cursor, "SELECT count(*) FROM audit")
        return [entry for entry in records if entry.number > known]
    if kind != "runs":
        return records
    ids = {"ids": [seal_text(record.run.id) for record in records]}
    known = set(await rows(cursor, "SELECT id FROM requests WHERE id = ANY (%(ids)s)", ids))
    return [record for record in records if (record.run.id,) not in known]


def _of_letter(letter: DeadLetter) -> tuple[str, Fields]:
    """The body of a run's letter is the run's input: it is not stored twice."""
    fields = asdict(letter)
    fields["attributes"] = msgspec.json.encode(letter.attributes).decode()
    fields["body"] = None if letter.run else "\\x" + letter.body.hex()
    return "dead_letters", fields


def _of_record(moved: ExpiringRecord, mono: float) -> list[tuple[str, Fields]]:
    until = None if moved.remaining is None else mono + moved.remaining
    lease = {"lease_until": until, "lease_ttl": moved.remaining or 0.0}
    return [("records", asdict(moved.record) | lease)]


def _of_run(record: RunRecord, mono: float) -> list[tuple[str, Fields]]:
    """What a run asked and what it has come to have columns of the same names."""
    run, history = record.run, record.history[1:]  # the first event is in the request
    fields = asdict(run) | {"is_unique": run.unique, "size": len(run.input.encode())}
    found: list[tuple[str, Fields]] = [("requests", fields)]
    if run.state is RunState.SUCCEEDED:
        completed = history.pop()  # it is in the result
        figures = msgspec.json.decode(completed.data)
        end = {"position": completed.position, "execution_ms": figures["execution_time_ms"]}
        found.append(("results", fields | end))
    else:
        due = mono + record.wait if run.available is not None else None
        found.append(("open_runs", fields | {"due": due, "delay": record.wait}))
    labels = msgspec.json.decode(run.labels) if run.labels else {}
    for name, value in labels.items():
        label = {"tenant": run.tenant, "name": name, "value": value, "seq": run.seq}
        found.append(("labels", label))
    found += [("events", asdict(event)) for event in history]
    for table in ("checkpoints", "quarantine", "logs"):
        for n, part in enumerate(getattr(record, table), 1):
            found.append((table, asdict(part) | {"run": run.id, "n": n}))
    if record.letter is not None:
        found.append(_of_letter(record.letter))
    return found


ROWS: dict[str, Callable[[Any, float], list[tuple[str, Fields]]]] = {
    "lanes": lambda lane, _: [("lanes", asdict(lane))],
    "tenants": lambda limit, _: [("tenants", asdict(limit))],
    "locks": lambda lock, _: [("locks", asdict(LockFacts(lock.name, lock.epoch)))],
    "records": _of_record,
    "letters": lambda moved, _: [_of_letter(moved.letter), ("events", asdict(moved.event))],
    "audit": lambda entry, _: [("audit", asdict(entry))],
    "runs": _of_run,
}
"""The rows of what is moved, each with its table."""

CONFLICT = {
    "lanes": 'ON CONFLICT (name) DO UPDATE SET "order" = excluded."order", head = excluded.head',
    "tenants": "ON CONFLICT (tenant) DO UPDATE SET running = excluded.running",
    "locks": "ON CONFLICT (name) DO UPDATE SET epoch = greatest(locks.epoch, excluded.epoch)",
    "records": "ON CONFLICT DO NOTHING",
    "letters": "ON CONFLICT DO NOTHING",
}
"""What becomes of rows that are there already. For runs and the audit there are none."""
