"""Few statements for many rows.

The interpreter lock is given back while SQLite works and asked for again after every statement, and
a busy event loop makes each of these turns cost up to milliseconds. So a batch is few statements,
whatever its size: reads answer one JSON array and unpack another with `json_each`, updates unpack
one, inserts carry many rows in one VALUES list."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from holdfast.model.machine.facts import ROUNDING, RunFacts

MAX_ROWS = 128
"""Rows of one INSERT: well below SQLite's limit of parameters for every table here."""

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode
_decode_runs = msgspec.json.Decoder(list[RunFacts], strict=False).decode  # booleans are numbers

_decode_run = msgspec.json.Decoder(RunFacts, strict=False).decode
_decode_raw = msgspec.json.Decoder(list[msgspec.Raw]).decode
log = logging.getLogger("holdfast.sqlite")

Row = tuple[Any, ...]


def pack(values: Sequence[Any]) -> str:
    """The JSON array that a statement unpacks with `json_each`."""
    return encode(values).decode()


def quoted(names: Sequence[str], table: str = "") -> str:
    """Names of columns; some are words of SQL."""
    return ", ".join(f'{table}"{name}"' for name in names)


def lasts(mono: str) -> str:
    """Whether the lease of a row has not ended at `mono`: the rule of `model/machine/facts.py`."""
    return f"lease_until > {mono} AND lease_until <= {mono} + lease_ttl + {ROUNDING}"


def is_live(mono: str) -> str:
    """Whether a record has not expired at `mono`."""
    return f"(lease_until IS NULL OR {lasts(mono)})"


RUN_COLUMNS = RunFacts.__struct_fields__
SMALL_COLUMNS = RUN_COLUMNS[: RUN_COLUMNS.index("input")]


FREE_TEXT = ("labels", "attributes", "error", "reason", "worker", "input", "progress", "result")
"""Read as text even if the column holds bytes: one such row must not hide the others."""


def as_array(columns: Sequence[str], table: str = "r.") -> str:
    """What a statement selects to answer all its rows as one JSON array of arrays."""
    selected = [
        f"CAST({quoted([name], table)} AS TEXT)" if name in FREE_TEXT else quoted([name], table)
        for name in columns
    ]
    return f"json_group_array(json_array({', '.join(selected)}))"


def select_runs(db: sqlite3.Connection, sql: str, parameters: Any) -> list[RunFacts]:
    """The runs of a statement that selects `as_array(RUN_COLUMNS)`, or the small ones."""
    rows = db.execute(sql, parameters).fetchone()[0]
    try:
        return _decode_runs(rows)
    except msgspec.MsgspecError:
        return list(_readable_runs(rows))


def _readable_runs(rows: str) -> Iterator[RunFacts]:
    """Without damaged ones: they are not claimed, and hold up no other run."""
    for row in _decode_raw(rows):
        try:
            yield _decode_run(row)
        except msgspec.MsgspecError as error:
            log.error("run %s is damaged and left alone: %s", decode(row)[0], error)


@lru_cache(maxsize=256)
def _insert(head: str, width: int, count: int) -> str:
    row = "(" + ", ".join("?" * width) + ")"
    return f"{head} VALUES " + ", ".join([row] * count)


def insert(db: sqlite3.Connection, head: str, rows: Sequence[Row]) -> None:
    """Insert rows, as many as a power of two at a time, so that few texts are ever prepared.
    `head` is the statement up to its VALUES."""
    written = 0
    while written < len(rows):
        count = min(MAX_ROWS, 1 << (len(rows) - written).bit_length() - 1)
        chunk = rows[written : written + count]
        values = [value for row in chunk for value in row]
        db.execute(_insert(head, len(chunk[0]), count), values)
        written += count


def insert_into(table: str, columns: Sequence[str], verb: str = "INSERT") -> str:
    """The head of an insert."""
    return f"{verb} INTO {table} ({quoted(columns)})"


@lru_cache(maxsize=256)
def _update_runs(columns: tuple[str, ...]) -> str:
    values = ", ".join(f'"{name}" = j.value->>{at}' for at, name in enumerate(columns, 1))
    return f"UPDATE runs SET {values} FROM json_each(?) j WHERE runs.id = j.value->>0"


def update_runs(db: sqlite3.Connection, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
    """Set the same columns of many runs; each row is the run's id and its values."""
    packed = pack(rows)
    if "\\u0000" not in packed:
        db.execute(_update_runs(columns), (packed,))
        return
    # SQLite's JSON functions would end a text at U+0000.
    values = ", ".join(f'"{name}" = ?' for name in columns)
    db.executemany(f"UPDATE runs SET {values} WHERE id = ?", [(*row[1:], row[0]) for row in rows])
