"""How the store's values are packed on the server: as in `lua/run.lua`. Values that share a string
are packed one after another, so an array without its first byte."""

from __future__ import annotations

import math
from collections.abc import Sequence
from struct import Struct as Layout
from typing import Any

import msgspec
from msgspec.structs import replace

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
STATIC = (
    "tenant", "pipeline", "lane", "seq", "priority", "unique", "key", "inherits", "created",
    "fingerprint", "parent", "labels", "attributes",
)  # fmt: skip
"""What never changes of a run: in the field `s` of its hash, in this order."""
CHANGED = (
    "state", "holds_lane", "epoch", "events", "attempts", "attempt_limit", "lease_until",
    "lease_ttl", "available", "due", "delay", "started", "finished",
)  # fmt: skip
"""Numbers that change: in the field `f`, as `CHANGES` says. None is 0 there."""
CHANGES = Layout(">BBQIIIddddddd")
TEXTS = {
    "worker": "w",
    "reason": "r",
    "error": "e",
    "input": "i",
    "progress": "p",
    "result": "o",
    "result_checksum": "h",
}
"""What has a field of its own."""
SMALL = ("s", "f", "w", "r", "e")
WHOLE = ("s", "f", *TEXTS.values())
"""Fields of a run's hash: without and with what may be large."""


class Times(Now, frozen=True):
    """The server's time, with the third of its clocks: see `lua/clock.lua`."""

    later: float

    def to_mono(self, moment: float) -> float:
        """A moment of the third clock by the one of leases."""
        return moment - self.later + self.mono

    def to_later(self, moment: float) -> float:
        """The other way round."""
        return moment - self.mono + self.later


def score(moment: float) -> int:
    """What a moment is ordered by: microseconds."""
    return math.floor(moment * 1_000_000)


def unpack(count: int, packed: bytes) -> list[Any]:
    """`count` values that were packed one after another: with this in front they are an array."""
    return decode(bytes((0x90 | count,)) + packed)


def packed(*values: Any) -> bytes:
    """The other way round."""
    return pack(values)[1:]


def pairs(flat: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """What a server says as names and values in turn."""
    return list(zip(flat[::2], flat[1::2], strict=True))


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
    s, f, *texts = fields
    if s is None or f is None:
        return None
    values: dict[str, Any] = dict(zip(STATIC, unpack(13, s), strict=True))
    values |= zip(CHANGED, CHANGES.unpack(f), strict=True)
    for name in ("lease_until", "available", "due", "started", "finished"):
        values[name] = values[name] or None
    if values["due"] and times is not None:
        values["due"] = times.to_mono(values["due"])
    values["state"] = STATES[values["state"] - 1]
    values["holds_lane"] = bool(values["holds_lane"])
    values |= {
        name: text.decode(errors="replace")
        for name, text in zip(TEXTS, texts, strict=False)
        if text is not None
    }
    return RunFacts(id, **values)


def static(run: RunFacts) -> bytes:
    """What never changes of a run."""
    run = replace(run, unique=bool(run.unique), inherits=bool(run.inherits))
    return packed(*[getattr(run, name) for name in STATIC])


def changed(fields: dict[str, Any], times: Times) -> dict[str, Any]:
    """What changes of a run, of these fields, as the server's numbers."""
    numbers: dict[str, Any] = {name: fields[name] or 0 for name in CHANGED if name in fields}
    if "state" in numbers:
        numbers["state"] = STATES.index(numbers["state"]) + 1
    if "holds_lane" in numbers:
        numbers["holds_lane"] = int(numbers["holds_lane"])
    if numbers.get("due"):
        numbers["due"] = times.to_later(numbers["due"])
    return numbers


def event(run: str, number: int, packed: bytes, tenant: str, pipeline: str) -> Event:
    kind, at, data, position = unpack(4, packed)
    return Event(run, number, kind, at, data, tenant, pipeline, position)


def packed_event(event: Event) -> bytes:
    return packed(event.type, event.at, event.data, event.position)


def checkpoint_field(step: str, key: str) -> str:
    return f"c{step}\0{key}"


def checkpoint(field: bytes, packed: bytes) -> Checkpoint:
    step, _, key = field[1:].decode().partition("\0")
    return Checkpoint(step, key, *unpack(6, packed))


def packed_checkpoint(saved: Checkpoint) -> bytes:
    values = (saved.value, saved.checksum, saved.schema, saved.fingerprint, saved.record)
    return packed(*values, saved.epoch)


FREE = (None, None, None, None, None)
"""Behind the epoch of a lock that nobody holds."""


def lock(name: str, packed: bytes) -> LockFacts:
    epoch, token, owner, acquired, until, ttl = unpack(6, packed)
    return LockFacts(name, epoch, token, owner or "", acquired, until, ttl or 0.0)


def record(key: str, packed: bytes, times: Times) -> RecordFacts:
    """Its end is told by the clock of leases."""
    value, version, updated, until, ttl = unpack(5, packed)
    until = None if until is None else times.to_mono(until)
    return RecordFacts(key, value, version, updated, until, ttl)


def packed_record(record: RecordFacts, times: Times) -> bytes:
    until = None if record.lease_until is None else times.to_later(record.lease_until)
    return packed(record.value, record.version, record.updated, until, record.lease_ttl)


def letter(id: str, packed: bytes, body: bytes | None) -> DeadLetter:
    source, reason, attributes, *rest = unpack(8, packed)
    return DeadLetter(id, source, reason, body or b"", letter_attributes(attributes), *rest)


def packed_letter(letter: DeadLetter) -> bytes:
    attributes = msgspec.json.encode(letter.attributes).decode()
    named = (letter.source, letter.reason, attributes, letter.tenant, letter.created)
    return packed(*named, letter.run, letter.closed, letter.resolution)
