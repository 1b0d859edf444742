"""Decisions as the script `batch` takes them: see `lua/decisions.lua`. What there is not is False:
the server's arrays have no holes. What needs nothing that only the server knows is a plain command;
a mover writes with the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import astuple

from holdfast.adapters.decisions import Expectation, LoadedFacts, Unit
from holdfast.adapters.redis import codec
from holdfast.adapters.redis.codec import (
    STATES,
    TEXTS,
    pack,
    pack_raw,
    packed,
    packed_checkpoint,
    unpack,
)
from holdfast.adapters.redis.facts import Raw, place
from holdfast.model.commands import RUN_LETTER
from holdfast.model.event import EventType
from holdfast.model.lane import Lane
from holdfast.model.machine import changes as ch
from holdfast.model.machine.facts import RecordFacts, RunFacts
from holdfast.ports.store import DeadLetter

Plain = tuple[Any, ...]
"""A command of the server, its second word a key of ours."""
Written = Iterator[Sequence[Any]]
"""As `lua/decisions.lua` takes it: a kind of write and its arguments."""

_strings = msgspec.json.Decoder(dict[str, str]).decode
_DECIDE = pack("decisions") + pack("decide")


def encode(unit: Unit, loaded: LoadedFacts) -> bytes:
    expects = [_expected(expectation, loaded.raw) for expectation in unit.expectations]
    written = [write for change in unit.changes for write in WRITTEN[type(change)](change, loaded)]
    return encoded(expects, written, unit.until)


def encoded(expects: Sequence[Any], changes: Sequence[Any], before: float | None = None) -> bytes:
    decision: dict[str, Any] = {"expects": expects, "changes": changes}
    if before is not None:
        decision["before"] = before
    return _DECIDE + pack_raw(decision)


# --- expectations ---------------------------------------------------------------------------------


NAME_LENGTHS = {"checkpoint": 3, "key": 2, "slot": 2}
"""How many words name a fact, where it is more than one; behind them comes what was seen."""


def _expected(expectation: Expectation, raw: Raw) -> list[Any]:
    """Of all but runs the stored bytes are compared."""
    kind, *names = expectation
    match kind:
        case "run":
            id, state, epoch = names
            return ["run", id, state is not None and STATES.index(state) + 1, _or_false(epoch)]
        case "lease":
            return ["lease", *names]
        case "quarantined":
            return ["length", f"quarantine:{names[0]}", raw.lengths.get(names[0], 0)]
    fact = (kind, *names[: NAME_LENGTHS.get(kind, 1)])
    return ["field", *place(*fact), _or_false(raw.stored.get(fact))]


def _or_false(value: Any) -> Any:
    return False if value is None else value


# --- plain commands -------------------------------------------------------------------------------


def put_letter(letter: DeadLetter) -> Iterator[Plain]:
    """All of it but its body."""
    yield "HSET", f"letter:{letter.id}", "m", codec.packed_letter(letter)
    for index in _letter_indexes(letter.tenant, "all", *["open"] * (letter.closed is None)):
        yield "ZADD", index, codec.score(letter.created), letter.id


def _letter_indexes(tenant: str, *kinds: str) -> list[str]:
    return [f"letters:{kind}{end}" for kind in kinds for end in ("", f":{tenant}")]


def put_lane(lane: Lane) -> Plain:
    return "HSET", "lanes", lane.name, packed(lane.order, lane.head)


def put_limit(tenant: str, running: int | None) -> Plain:
    if running is None:
        return "HDEL", "limits", tenant
    return "HSET", "limits", tenant, running


def put_record(record: RecordFacts, times: codec.Times) -> Iterator[Plain]:
    yield "HSET", "records", record.key, codec.packed_record(record, times)
    yield "ZADD", "records:keys", 0, record.key


# --- changes --------------------------------------------------------------------------------------


def _calls(*commands: Plain) -> Written:
    for command in commands:
        yield ("call", *command)


def strings_of(run: RunFacts) -> dict[str, str]:
    """Its labels."""
    return _strings(run.labels) if run.labels else {}


def _change_run(change: ch.ChangeRun, loaded: LoadedFacts) -> Written:
    numbers = codec.changed(change.fields, loaded.raw.times)
    texts = {field: _or_false(change.fields[n]) for n, field in TEXTS.items() if n in change.fields}
    yield "run", change.run, numbers, texts


def _remove_run(change: ch.RemoveRun, loaded: LoadedFacts) -> Written:
    run = loaded.runs[change.run]
    letter = f"{RUN_LETTER}{run.id}"
    yield "remove", run.id, strings_of(run)
    yield from _calls(*[("UNLINK", f"{of}:{run.id}") for of in ("run", "log", "quarantine")])
    yield from _calls(("UNLINK", f"letter:{letter}"))
    indexes = _letter_indexes(run.tenant, "all", "open")
    yield from _calls(*[("ZREM", index, letter) for index in indexes])


def _add_event(change: ch.AddEvent, loaded: LoadedFacts) -> Written:
    if change.type != EventType.QUEUED:  # that comes with the run
        yield "event", *astuple(change)


def _put_checkpoint(change: ch.PutCheckpoint, loaded: LoadedFacts) -> Written:
    saved = change.checkpoint
    stored_at = place("checkpoint", change.run, saved.step, saved.key)
    yield "call", "HSET", *stored_at, packed_checkpoint(saved)


def _quarantine(change: ch.MoveToQuarantine, loaded: LoadedFacts) -> Written:
    fact = ("checkpoint", change.run, change.step, change.key)
    value, *_ = unpack(6, loaded.raw.stored[fact])
    bad = packed(change.step, change.key, change.reason, value, loaded.now.wall)
    yield from _calls(("HDEL", *place(*fact)), ("RPUSH", f"quarantine:{change.run}", bad))


def _open_letter(change: ch.OpenLetter, loaded: LoadedFacts) -> Written:
    """One that is opened again keeps the time of its creation."""
    before = loaded.raw.stored.get(("letter", change.id))
    created = loaded.now.wall if before is None else codec.letter(change.id, before, None).created
    letter = DeadLetter(
        change.id, change.source, change.reason, b"", change.attributes, change.tenant, created,
        change.run,
    )  # fmt: skip
    yield from _calls(*put_letter(letter))
    if change.body is not None:
        yield from _calls(("HSET", f"letter:{change.id}", "b", change.body))


def _close_letter(change: ch.CloseLetter, loaded: LoadedFacts) -> Written:
    fact = ("letter", change.id)
    *opened, _, _ = unpack(8, loaded.raw.stored[fact])
    closed = packed(*opened, loaded.now.wall, change.resolution)
    indexes = _letter_indexes(opened[3], "open")
    yield from _calls(
        ("HSET", *place(*fact), closed), *[("ZREM", index, change.id) for index in indexes]
    )


def _put_lane(change: ch.PutLane, loaded: LoadedFacts) -> Written:
    yield from _calls(put_lane(change.lane))
    if change.lane.order == "fifo" and change.lane.name not in loaded.lanes:
        yield "fifo", change.lane.name


def _remove_record(change: ch.RemoveRecord, loaded: LoadedFacts) -> Written:
    yield from _calls(("HDEL", "records", change.key), ("ZREM", "records:keys", change.key))


WRITTEN: dict[type, Callable[[Any, LoadedFacts], Written]] = {
    ch.AddRun: lambda change, _: iter([("submit", change.submit)]),
    ch.ChangeRun: _change_run,
    ch.RemoveRun: _remove_run,
    ch.AddEvent: _add_event,
    ch.AddLetterEvent: lambda change, _: iter([("letter_event", *astuple(change))]),
    ch.PutCheckpoint: _put_checkpoint,
    ch.MoveToQuarantine: _quarantine,
    ch.OpenLetter: _open_letter,
    ch.CloseLetter: _close_letter,
    ch.AddAudit: lambda change, loaded: _calls(
        ("LPUSH", "audit", packed(loaded.now.wall, *astuple(change)))
    ),
    ch.PutLock: lambda change, _: iter([("lock", change.lock.name, change.lock.epoch)]),
    ch.PutLane: _put_lane,
    ch.PutTenant: lambda change, _: _calls(put_limit(*astuple(change))),
    ch.WriteRecord: lambda change, loaded: _calls(*put_record(change.record, loaded.raw.times)),
    ch.RemoveRecord: _remove_record,
}
