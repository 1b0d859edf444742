"""The reads that people need: parameters in, one JSON value out, typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from holdfast.adapters.postgres.text import seal, unseal
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event
from holdfast.model.lease import LockInfo
from holdfast.model.machine.facts import BrokenRun, RunFacts
from holdfast.model.run import Run
from holdfast.ports.mover import MoveMark
from holdfast.ports.records import Record, RecordPage
from holdfast.ports.store import (
    Audit,
    DeadLetter,
    LaneInfo,
    RunFilter,
    StoredLog,
    letter_attributes,
)

INDEXED_STATES = ("paused", "failed", "cancelled")
"""States whose runs are listed by an index of their own."""

_ID, _SEQ = (RunFacts.__struct_fields__.index(name) for name in ("id", "seq"))
_run = msgspec.json.Decoder(RunFacts).decode
_raw = msgspec.json.Decoder(list[msgspec.Raw]).decode
_runs = msgspec.json.Decoder(list[RunFacts]).decode
_checkpoints = msgspec.json.Decoder(list[Checkpoint]).decode
_letters = msgspec.json.Decoder(
    list[tuple[str, str, str, bytes, str, str, float, str | None, float | None, str | None]]
).decode
_triples = msgspec.json.Decoder(list[tuple[str, str, str]]).decode
counts = msgspec.json.Decoder(dict[str, int]).decode

S = TypeVar("S", bound=Struct)


def _rows_of(kind: type[S]) -> Callable[[bytes], list[S]]:
    """Reads arrays of the fields of a struct, in their order."""
    columns = tuple(field.type for field in msgspec.structs.fields(kind))
    decode = msgspec.json.Decoder(list[tuple[columns]]).decode  # type: ignore[valid-type]
    return lambda answer: [kind(*row) for row in decode(unseal(answer))]


history = _rows_of(Event)
logs = _rows_of(StoredLog)
locks = _rows_of(LockInfo)
lanes = _rows_of(LaneInfo)
audits = _rows_of(Audit)


def filtered(where: RunFilter) -> list[Any]:
    labels = seal(msgspec.json.encode(where.labels)) if where.labels else None
    names = [where.tenant, where.pipeline, where.state, where.lane, where.key, where.id_prefix]
    return [*names, labels]


def names(values: Sequence[str]) -> bytes:
    return seal(msgspec.json.encode(values))


def runs(answer: bytes) -> list[Run]:
    rows = unseal(answer)
    try:
        return [run.view() for run in _runs(rows)]
    except msgspec.MsgspecError:  # one of them is damaged
        return [_facts(row).view() for row in _raw(rows)]


def _facts(row: msgspec.Raw) -> RunFacts:
    try:
        return _run(row)
    except msgspec.MsgspecError as error:
        values = msgspec.json.decode(row)
        return BrokenRun.of(values[_ID], values[_SEQ], error)


def one_run(answer: bytes) -> Run | None:
    return next(iter(runs(answer)), None)


def checkpoints(answer: bytes) -> list[Checkpoint]:
    return _checkpoints(unseal(answer))


def quarantined(answer: bytes) -> list[tuple[str, str, str]]:
    return _triples(unseal(answer))


def letters(answer: bytes) -> list[DeadLetter]:
    return [_letter(*row) for row in _letters(unseal(answer))]


def _letter(
    id: str, source: str, reason: str, body: bytes, attributes: str, *rest: Any
) -> DeadLetter:
    return DeadLetter(id, source, reason, body, letter_attributes(attributes), *rest)


def one_letter(answer: bytes) -> DeadLetter | None:
    return next(iter(letters(answer)), None)


class _RecordPage(Struct):
    now: float
    records: list[tuple[str, str, str, float]]


_record_page = msgspec.json.Decoder(_RecordPage).decode


def records(answer: bytes) -> RecordPage:
    page = _record_page(unseal(answer))
    return RecordPage([Record(*row) for row in page.records], page.now)


def mark(answer: bytes) -> MoveMark | None:
    return msgspec.json.decode(unseal(answer), type=MoveMark) if answer else None
