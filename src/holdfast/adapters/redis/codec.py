"""How the store's values are packed on the server: as in `lua/run.lua`. Values that share a string
are packed one after another, so an array without its first byte."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import Any

import msgspec

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event
from holdfast.model.machine.facts import (
    UNREADABLE,
    BrokenRun,
    LockFacts,
    Now,
    RecordFacts,
    RunFacts,
)
from holdfast.model.run import RunState
from holdfast.ports.store import DeadLetter, letter_attributes

pack = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder().decode

STATES = list(RunState)
"""Their numbers on the server are these, from 1."""

CHANGES = Layout(">BBQIIIddddddd")
"""What changes of a run, as in `lua/run.lua`."""

SMALL = ("s", "f", "w", "r", "e")
WHOLE = (*SMALL, "i", "p", "o", "h")
"""Fields of a run's hash: without and with what may be large."""


class Times(Now, frozen=True):
    """The server's time, with the third of its clocks: see `lua/clock.lua`."""

    later: float


def unpack(count: int, packed: bytes) -> list[Any]:
    """`count` values that were packed one after another: with this in front they are an array."""
    return decode(bytes((0x90 | count,)) + packed)


def packed(*values: Any) -> bytes:
    """The other way round."""
    return pack(values)[1:]


def pack_raw(value: Any) -> bytes:
    """The same as `pack`, with bytes as text: the server's own codec knows no bytes."""
    match value:
        case bytes():
            return b"\xdb" + len(value).to_bytes(4, "big") + value
        case list() | tuple():
            return b"\xdd" + len(value).to_bytes(4, "big") + b"".join(map(pack_raw, value))
        case dict():
            pairs = [pack_raw(name) + pack_raw(part) for name, part in value.items()]
            return b"\xdf" + len(value).to_bytes(4, "big") + b"".join(pairs)
    return pack(value)


def run(id: str, fields: Sequence[bytes | None], times: Times | None = None) -> RunFacts | None:
    """A run as it is stored, if it is there."""
    try:
        return _run(id, fields, times)
    except UNREADABLE as error:
        return BrokenRun.of(id, 0, error)


def _run(id: str, fields: Sequence[bytes | None], times: Times | None) -> RunFacts | None:
    """A run from `SMALL` or `WHOLE` fields. Delays are measured by a clock of their own on the
    server: with `times` their ends are told by that of leases."""
    s, f, worker, reason, error, *large = fields
    if s is None or f is None:
        return None
    (
        tenant, pipeline, lane, seq, priority, unique, key, inherits, created, fingerprint, parent,
        labels, attributes,
    ) = unpack(13, s)  # fmt: skip
    (
        state, holds, epoch, events, attempts, limit, until, ttl, available, due, delay, started,
        finished,
    ) = CHANGES.unpack(f)  # fmt: skip
    if due and times is not None:
        due = due - times.later + times.mono
    facts = RunFacts(
        id,
        tenant,
        pipeline,
        lane,
        STATES[state - 1],
        seq,
        priority,
        key,
        fingerprint,
        unique,
        parent,
        inherits,
        created,
        labels,
        attributes,
        epoch,
        attempts,
        limit,
        _text(worker),
        until or None,
        ttl,
        available or None,
        due or None,
        delay,
        started or None,
        finished or None,
        _text(error),
        _text(reason),
        bool(holds),
        events,
    )
    if large:
        input, progress, result, result_checksum = large
        facts.input = _text(input) or ""
        facts.progress = _text(progress) or "{}"
        facts.result = _text(result)
        facts.result_checksum = _text(result_checksum)
    return facts


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def static(run: RunFacts) -> bytes:
    """What never changes of a run."""
    return packed(
        run.tenant,
        run.pipeline,
        run.lane,
        run.seq,
        run.priority,
        bool(run.unique),
        run.key,
        bool(run.inherits),
        run.created,
        run.fingerprint,
        run.parent,
        run.labels,
        run.attributes,
    )


def event(run: str, number: int, packed: bytes, tenant: str, pipeline: str) -> Event:
    kind, at, data, position = unpack(4, packed)
    return Event(run, number, kind, at, data, tenant, pipeline, position)


def checkpoint_field(step: str, key: str) -> str:
    return f"c{step}\0{key}"


def checkpoint(field: bytes, packed: bytes) -> Checkpoint:
    step, _, key = field[1:].decode().partition("\0")
    return Checkpoint(step, key, *unpack(6, packed))


def packed_checkpoint(saved: Checkpoint) -> bytes:
    values = (saved.value, saved.checksum, saved.schema, saved.fingerprint, saved.record)
    return packed(*values, saved.epoch)


def lock(name: str, packed: bytes) -> LockFacts:
    epoch, token, owner, acquired, until, ttl = unpack(6, packed)
    return LockFacts(name, epoch, token, owner or "", acquired, until, ttl or 0.0)


def record(key: str, packed: bytes, times: Times) -> RecordFacts:
    """Its end is told by the clock of leases."""
    value, version, updated, until, ttl = unpack(5, packed)
    if until is not None:
        until = until - times.later + times.mono
    return RecordFacts(key, value, version, updated, until, ttl)


def letter(id: str, packed: bytes, body: bytes | None) -> DeadLetter:
    source, reason, attributes, tenant, created, run, closed, resolution = unpack(8, packed)
    return DeadLetter(
        id,
        source,
        reason,
        body or b"",
        letter_attributes(attributes),
        tenant,
        created,
        run,
        closed,
        resolution,
    )


def packed_letter(letter: DeadLetter) -> bytes:
    attributes = msgspec.json.encode(letter.attributes).decode()
    named = (letter.source, letter.reason, attributes, letter.tenant, letter.created)
    return packed(*named, letter.run, letter.closed, letter.resolution)
