"""Decisions as the script `batch` takes them: see `lua/decisions.lua`. What there is not is False:
the server's arrays have no holes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import astuple

from holdfast.adapters.decisions import Expectation, LoadedFacts, Unit
from holdfast.adapters.redis import batch
from holdfast.adapters.redis.codec import (
    STATES,
    checkpoint_field,
    pack,
    pack_raw,
    packed_checkpoint,
)
from holdfast.adapters.redis.facts import Raw
from holdfast.model.event import EventType
from holdfast.model.machine import changes as ch
from holdfast.model.machine.facts import Now

_json = msgspec.json.Encoder().encode
_strings = msgspec.json.Decoder(dict[str, str]).decode
_DECIDE = pack("Decide")


def encode(unit: Unit, loaded: LoadedFacts) -> bytes:
    raw: Raw = loaded.raw
    decision: dict[str, Any] = {
        "expects": [_expected(expectation, raw) for expectation in unit.expectations],
        "changes": _written(unit.changes, raw),
    }
    if unit.until is not None:
        decision["before"] = unit.until
    return _DECIDE + pack_raw(decision)


# --- expectations ---------------------------------------------------------------------------------


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
        case "checkpoint":
            key, field = f"run:{names[0]}", checkpoint_field(names[1], names[2])
        case "key" | "slot":
            key, field = f"{kind}s", f"{names[0]}\0{names[1]}"
        case "letter":
            key, field = f"letter:{names[0]}", "m"
        case _:  # lane, lock, record
            key, field = f"{kind}s", names[0]
    return ["field", key, field, _or_false(raw.fields.get((key, field)))]


def _or_false(value: Any) -> Any:
    return False if value is None else value


# --- changes --------------------------------------------------------------------------------------


def _written(changes: Sequence[ch.Change], raw: Raw) -> list[list[Any]]:
    return [
        WRITTEN[type(change)](change, raw)
        for change in changes
        if not (isinstance(change, ch.AddEvent) and change.type == EventType.QUEUED)
    ]


NUMBERS = {
    "epoch": "epoch",
    "attempts": "attempts",
    "attempt_limit": "limit",
    "lease_until": "until_",
    "lease_ttl": "ttl",
    "available": "available",
    "delay": "delay",
    "started": "started",
    "finished": "finished",
}
"""Fields of a run that are packed, and their names on the server. None is 0 there."""
TEXTS = {
    "worker": "w",
    "reason": "r",
    "error": "e",
    "progress": "p",
    "result": "o",
    "result_checksum": "h",
}
"""Fields of a run that are fields of its hash, too."""


def _change_run(change: ch.ChangeRun, raw: Raw) -> list[Any]:
    return ["run", change.run, *run_fields(change.fields, raw.times)]


def run_fields(fields: dict[str, Any], now: Now) -> tuple[dict[str, Any], dict[str, Any]]:
    numbers: dict[str, Any] = {NUMBERS[n]: fields[n] or 0 for n in NUMBERS if n in fields}
    if "state" in fields:
        numbers["state"] = STATES.index(fields["state"]) + 1
    if "holds_lane" in fields:
        numbers["holds"] = int(fields["holds_lane"])
    if "due" in fields:
        due = fields["due"]
        numbers |= {"due": 0} if due is None else {"due_in": due - now.mono}
    return numbers, {TEXTS[n]: _or_false(fields[n]) for n in TEXTS if n in fields}


def _put_checkpoint(change: ch.PutCheckpoint, raw: Raw) -> list[Any]:
    saved = change.checkpoint
    return ["checkpoint", change.run, saved.step, saved.key, packed_checkpoint(saved)]


def _open_letter(change: ch.OpenLetter, raw: Raw) -> list[Any]:
    attributes = _json(change.attributes).decode()
    named = [change.id, change.source, change.reason, attributes, change.tenant]
    return ["letter", *named, _or_false(change.run), _or_false(change.body)]


def _put_lane(change: ch.PutLane, raw: Raw) -> list[Any]:
    is_new = ("lanes", change.lane.name) not in raw.fields
    return ["lane", *astuple(change.lane), is_new]


def _write_record(change: ch.WriteRecord, raw: Raw) -> list[Any]:
    r = change.record
    remaining = False if r.lease_until is None else r.lease_until - raw.times.mono
    return ["record", r.key, r.value, r.version, r.updated, remaining]


def _remove_run(change: ch.RemoveRun, raw: Raw) -> list[Any]:
    return ["remove", change.run, raw.labels[change.run]]


def _as_it_is(kind: str) -> Callable[[Any, Raw], list[Any]]:
    return lambda change, raw: [kind, *map(_or_false, astuple(change))]


WRITTEN: dict[type, Callable[[Any, Raw], list[Any]]] = {
    ch.AddRun: lambda change, raw: ["submit", batch.encode([change.submit])[0]],
    ch.ChangeRun: _change_run,
    ch.RemoveRun: _remove_run,
    ch.AddEvent: _as_it_is("event"),
    ch.AddLetterEvent: _as_it_is("letter_event"),
    ch.PutCheckpoint: _put_checkpoint,
    ch.MoveToQuarantine: _as_it_is("quarantine"),
    ch.OpenLetter: _open_letter,
    ch.CloseLetter: _as_it_is("close"),
    ch.AddAudit: _as_it_is("audit"),
    ch.PutLock: lambda change, raw: ["lock", change.lock.name, change.lock.epoch],
    ch.PutLane: _put_lane,
    ch.PutTenant: _as_it_is("tenant"),
    ch.WriteRecord: _write_record,
    ch.RemoveRecord: _as_it_is("remove_record"),
}
