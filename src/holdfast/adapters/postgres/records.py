"""Rows as the records of the `Mover` port, and records as rows. All of it inside a mover's
transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import msgspec
from psycopg import AsyncCursor

from holdfast.adapters.postgres.text import seal_text, unseal_text
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event
from holdfast.model.lane import Lane
from holdfast.model.run import Run, RunState
from holdfast.ports.mover import (
    PAGE_BYTES,
    AuditRecord,
    Kind,
    LockEpoch,
    Page,
    Quarantined,
    RunRecord,
)
from holdfast.ports.store import DeadLetter, StoredLog

Row = tuple[Any, ...]

Present = float
"""The moment by which leases and delays are measured, in seconds."""


async def rows(cursor: AsyncCursor, sql: str, asked: dict[str, Any] | None = None) -> list[Row]:
    """What a statement answers, with all characters that were sealed."""
    await cursor.execute(sql, asked)  # type: ignore[arg-type]  # our own constants only
    return [tuple(map(_unsealed, row)) for row in await cursor.fetchall()]


async def one(cursor: AsyncCursor, sql: str, asked: dict[str, Any] | None = None) -> Row:
    [row] = await rows(cursor, sql, asked)
    return row


def _unsealed(value: Any) -> Any:
    return unseal_text(value) if isinstance(value, str) else value


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# --- reading --------------------------------------------------------------------------------------

_CHOSEN = """
SELECT id FROM (
    SELECT id, seq, sum(size) OVER (ORDER BY seq) - size AS before FROM (
        SELECT q.id, q.seq, octet_length(q.input) + coalesce(
            (SELECT sum(octet_length(value) + octet_length(record)) FROM checkpoints WHERE run = q.id), 0) AS size
        FROM requests q WHERE q.seq > coalesce((SELECT seq FROM requests WHERE id = %(after)s), 0)
        ORDER BY q.seq LIMIT %(limit)s) AS page) AS sized
WHERE before <= %(bytes)s ORDER BY seq
"""

_RUNS = """
SELECT q.id, q.tenant, q.pipeline, q.lane, coalesce(o.state, 'succeeded'), q.seq, q.priority, q.key, q.fingerprint,
       q.parent, coalesce(o.epoch, s.epoch), coalesce(o.attempts, s.attempts),
       coalesce(o.attempt_limit, s.attempt_limit), coalesce(o.worker, s.worker), seconds(q.created),
       seconds(o.available), seconds(coalesce(o.started, s.started)), seconds(coalesce(o.finished, s.finished)),
       q.input, s.result, o.error, o.reason, coalesce(o.progress, s.progress),
       q.is_unique, q.inherits, coalesce(o.holds_lane, false),
       CASE WHEN o.due > present.mono AND o.due <= present.mono + o.delay THEN seconds(o.due) - %(now)s ELSE 0 END
FROM requests q LEFT JOIN open_runs o ON o.id = q.id LEFT JOIN results s ON s.id = q.id,
     (SELECT to_timestamp(%(now)s) AS mono) AS present
WHERE q.id = ANY (%(ids)s) ORDER BY q.seq
"""

_MORE = "SELECT EXISTS (SELECT FROM requests WHERE seq > %(after)s)"


async def export_runs(cursor: AsyncCursor, now: Present, after: str | None, limit: int) -> Page:
    asked = {"after": seal_text(after or ""), "limit": limit, "bytes": PAGE_BYTES}
    chosen = await rows(cursor, _CHOSEN, asked)
    ids = [seal_text(id) for (id,) in chosen]
    found = {row[0]: _record(row) for row in await rows(cursor, _RUNS, {"ids": ids, "now": now})}
    for sql, add in PARTS.items():
        for id, mine in groupby(await rows(cursor, sql, {"ids": ids}), key=lambda row: row[0]):
            add(found[id], [row[1:] for row in mine])
    if not found:
        return Page([], None)
    last = list(found.values())[-1].run
    [more] = await one(cursor, _MORE, {"after": last.seq})
    return Page(list(found.values()), last.id if more else None)


def _record(row: Row) -> RunRecord:
    *columns, unique, inherits, holds_lane, delay = row
    values = dict(zip(Run.__struct_fields__, columns, strict=True))
    for name in ("error", "progress"):
        values[name] = msgspec.json.decode(values[name]) if values[name] else None
    return RunRecord(msgspec.convert(values, Run), columns[-1], unique, inherits, holds_lane, delay)


def _add_checkpoints(record: RunRecord, found: list[Row]) -> None:
    record.checkpoints = [Checkpoint(*row) for row in found]


def _add_quarantine(record: RunRecord, found: list[Row]) -> None:
    record.quarantine = [Quarantined(*row) for row in found]


def _add_history(record: RunRecord, found: list[Row]) -> None:
    run = record.run
    record.history = [
        Event(run.id, seq, kind, at, data, run.tenant, run.pipeline, position)
        for seq, kind, at, data, position in found
    ]


def _add_logs(record: RunRecord, found: list[Row]) -> None:
    record.logs = [StoredLog(*row) for row in found]


def _add_letter(record: RunRecord, found: list[Row]) -> None:
    record.letter = _letter(*found[0])


_LETTER = "id, source, reason, body, attributes, tenant, seconds(created), run, seconds(closed), resolution"


def _letter(*row: Any) -> DeadLetter:
    id, source, reason, body, attributes, *rest = row
    return DeadLetter(id, source, reason, bytes(body), msgspec.json.decode(attributes), *rest)


PARTS: dict[str, Callable[[RunRecord, list[Row]], None]] = {
    "SELECT run, step, key, value, checksum, schema, fingerprint, record, epoch FROM "
    "all_checkpoints "
    "WHERE run = ANY (%(ids)s) ORDER BY run, step, key": _add_checkpoints,
    "SELECT run, step, key, reason, value, seconds(at) FROM quarantine "
    "WHERE run = ANY (%(ids)s) ORDER BY run, id": _add_quarantine,
    "SELECT run, seq, type, seconds(at), data, position FROM all_events "
    "WHERE run = ANY (%(ids)s) ORDER BY run, seq": _add_history,
    "SELECT run, seconds(at), level, step, message, fields FROM logs "
    "WHERE run = ANY (%(ids)s) ORDER BY run, n": _add_logs,
    f"SELECT run, {_LETTER} FROM dead_letters "
    "WHERE id IN (SELECT 'run:' || id FROM unnest(%(ids)s::text[]) AS id)": _add_letter,
}
"""The statements that read what belongs to runs, and where that goes."""


async def export(cursor: AsyncCursor, kind: Kind, after: str | None, limit: int) -> Page:
    """Records of the other kinds."""
    if kind == "audit":
        return await _export_audit(cursor, int(after or 0), limit)
    sql, typed = NAMED[kind]
    found = await rows(
        cursor, sql, {"after": None if after is None else seal_text(after), "limit": limit}
    )
    return Page([typed(*row) for row in found], found[-1][0] if len(found) == limit else None)


async def _export_audit(cursor: AsyncCursor, after: int, limit: int) -> Page:
    sql = "SELECT seconds(at), actor, action, target, reason FROM audit ORDER BY id OFFSET %(after)s LIMIT %(limit)s"
    found = await rows(cursor, sql, {"after": after, "limit": limit})
    entries = [AuditRecord(number, *row) for number, row in enumerate(found, after + 1)]
    return Page(entries, str(after + limit) if len(found) == limit else None)


NAMED: dict[str, tuple[str, Callable[..., Any]]] = {
    "lanes": (
        "SELECT name, sort, head FROM lanes "
        "WHERE %(after)s::text IS NULL OR name > %(after)s ORDER BY name LIMIT %(limit)s",
        Lane,
    ),
    "locks": (
        "SELECT name, epoch FROM locks WHERE %(after)s::text IS NULL OR name > %(after)s ORDER BY "
        "name LIMIT %(limit)s",
        LockEpoch,
    ),
    "letters": (
        f"SELECT {_LETTER} FROM dead_letters "
        "WHERE run IS NULL AND (%(after)s::text IS NULL OR id > %(after)s) ORDER BY id LIMIT "
        "%(limit)s",
        _letter,
    ),
}

# --- taking in ------------------------------------------------------------------------------------


async def _copy(cursor: AsyncCursor, table: str, columns: str, given: list[Row]) -> None:
    if not given:
        return
    async with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:  # type: ignore[arg-type]
        for row in given:
            await copy.write_row(
                [seal_text(value) if isinstance(value, str) else value for value in row]
            )


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


async def _adopt_lanes(cursor: AsyncCursor, now: Present, lanes: Sequence[Lane]) -> None:
    sql = (
        "INSERT INTO lanes (name, sort, head) VALUES (%s, %s, %s) "
        "ON CONFLICT (name) DO UPDATE SET sort = excluded.sort, head = excluded.head"
    )
    for lane in lanes:
        await cursor.execute(sql, [seal_text(lane.name), lane.order, lane.head])


async def _adopt_locks(cursor: AsyncCursor, now: Present, locks: Sequence[LockEpoch]) -> None:
    sql = (
        "INSERT INTO locks (name, epoch) SELECT * FROM unnest(%s::text[], %s::bigint[]) "
        "ON CONFLICT (name) DO UPDATE SET epoch = greatest(locks.epoch, excluded.epoch)"
    )
    await cursor.execute(
        sql, [[seal_text(lock.name) for lock in locks], [lock.epoch for lock in locks]]
    )


async def _adopt_letters(cursor: AsyncCursor, now: Present, letters: Sequence[DeadLetter]) -> None:
    known = await _known(cursor, "dead_letters", [letter.id for letter in letters])
    await _copy(
        cursor,
        "dead_letters",
        _LETTERS,
        [_letter_row(each) for each in letters if each.id not in known],
    )


_LETTERS = "id, source, reason, body, attributes, tenant, created, run, closed, resolution"


def _letter_row(letter: DeadLetter) -> Row:
    return (
        letter.id, letter.source, letter.reason, letter.body, _json(letter.attributes), letter.tenant,
        _moment(letter.created), letter.run, _moment(letter.closed), letter.resolution,
    )  # fmt: skip


async def _adopt_audit(cursor: AsyncCursor, now: Present, entries: Sequence[AuditRecord]) -> None:
    [known] = await one(cursor, "SELECT count(*) FROM audit")
    fresh = [
        (_moment(e.at), e.actor, e.action, e.target, e.reason) for e in entries if e.number > known
    ]
    await _copy(cursor, "audit", "at, actor, action, target, reason", fresh)


async def _known(cursor: AsyncCursor, table: str, ids: list[str]) -> set[str]:
    sealed = [seal_text(id) for id in ids]
    return {
        id
        for (id,) in await rows(
            cursor, f"SELECT id FROM {table} WHERE id = ANY (%(ids)s)", {"ids": sealed}
        )
    }


async def _adopt_runs(cursor: AsyncCursor, now: Present, given: Sequence[RunRecord]) -> None:
    known = await _known(cursor, "requests", [record.run.id for record in given])
    fresh = [record for record in given if record.run.id not in known]
    for table, (columns, rows_of) in BELONGINGS.items():
        await _copy(
            cursor, table, columns, [row for record in fresh for row in rows_of(record, now)]
        )


def _request_rows(record: RunRecord, now: Present) -> list[Row]:
    run = record.run
    row = (
        run.seq, run.id, run.tenant, run.pipeline, run.lane, run.priority, run.attempt_limit, 0.0, record.unique,
        record.inherits, _moment(run.created), run.key, run.parent, run.fingerprint, run.input,
    )  # fmt: skip
    return [row]


def _open_rows(record: RunRecord, now: Present) -> list[Row]:
    run = record.run
    if run.state is RunState.SUCCEEDED:
        return []
    is_delayed = run.available is not None
    row = (
        run.id, run.seq, run.tenant, run.pipeline, run.lane, str(run.state), run.priority, len(run.input.encode()),
        run.epoch, len(record.history), run.attempts, run.attempt_limit, _moment(run.available),
        _moment(now + record.delay) if is_delayed else None, timedelta(seconds=record.delay) if is_delayed else None,
        _moment(run.started), _moment(run.finished), record.unique, record.holds_lane, run.worker, run.reason,
        _json(run.error) if run.error else None, record.progress,
    )  # fmt: skip
    return [row]


def _result_rows(record: RunRecord, now: Present) -> list[Row]:
    run = record.run
    if run.state is not RunState.SUCCEEDED:
        return []
    row = (
        run.id, record.history[-1].position, len(record.history), run.epoch, run.attempts, run.attempt_limit,
        _moment(run.started), _moment(run.finished), run.worker,
        record.progress, run.result,
    )  # fmt: skip
    return [row]


def _checkpoint_rows(record: RunRecord, now: Present) -> list[Row]:
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


def _quarantine_rows(record: RunRecord, now: Present) -> list[Row]:
    return [
        (record.run.id, bad.step, bad.key, bad.reason, bad.value, _moment(bad.at))
        for bad in record.quarantine
    ]


def _event_rows(record: RunRecord, now: Present) -> list[Row]:
    """Those that no other row says: a request says the first, a result the last."""
    end = -1 if record.run.state is RunState.SUCCEEDED else None
    return [
        (e.position, e.run, e.seq, e.type, _moment(e.at), e.data) for e in record.history[1:end]
    ]


def _log_rows(record: RunRecord, now: Present) -> list[Row]:
    return [
        (record.run.id, n, _moment(line.at), line.level, line.step, line.message, line.fields)
        for n, line in enumerate(record.logs, 1)
    ]


def _letter_rows(record: RunRecord, now: Present) -> list[Row]:
    return [_letter_row(record.letter)] if record.letter else []


BELONGINGS: dict[str, tuple[str, Callable[[RunRecord, Present], list[Row]]]] = {
    "requests": (
        "seq, id, tenant, pipeline, lane, priority, max_attempts, delay, is_unique, inherits, "
        "created, key, parent, "
        "fingerprint, input",
        _request_rows,
    ),
    "open_runs": (
        "id, seq, tenant, pipeline, lane, state, priority, size, epoch, events, attempts, "
        "attempt_limit, "
        "available, due, delay, started, finished, is_unique, holds_lane, worker, reason, error, "
        "progress",
        _open_rows,
    ),
    "results": (
        "id, position, events, epoch, attempts, attempt_limit, started, finished, worker, "
        "progress, result",
        _result_rows,
    ),
    "checkpoints": (
        "run, step, key, value, checksum, schema, fingerprint, record, epoch",
        _checkpoint_rows,
    ),
    "quarantine": ("run, step, key, reason, value, at", _quarantine_rows),
    "events": ("position, run, seq, type, at, data", _event_rows),
    "logs": ("run, n, at, level, step, message, fields", _log_rows),
    "dead_letters": (_LETTERS, _letter_rows),
}
"""Where the parts of a record go."""

ADOPT: dict[str, Callable[[AsyncCursor, Present, Sequence[Any]], Awaitable[None]]] = {
    "lanes": _adopt_lanes,
    "locks": _adopt_locks,
    "letters": _adopt_letters,
    "audit": _adopt_audit,
    "runs": _adopt_runs,
}
