"""Changes as the server's function `write_change` takes them: see `06_decisions.sql`."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import msgspec
from msgspec.structs import asdict, astuple

from holdfast.adapters.decisions import Expectation, LoadedFacts, Unit
from holdfast.adapters.postgres.batch import encode, some, submission
from holdfast.model.commands import Settle
from holdfast.model.event import EventType
from holdfast.model.machine import changes as ch
from holdfast.model.run import RunState

SAID_BY_OTHERS = (EventType.QUEUED, EventType.COMPLETED)
"""Events that have no row of their own: a request and a result say them."""


def envelope(loaded: LoadedFacts, units: Sequence[Unit]) -> dict[str, Any]:
    """The only part of a batch, and the names of what it rests on."""
    locked: dict[str, set[str]] = {"runs": set(), "names": set()}
    decisions: list[dict[str, Any]] = []
    for unit in units:
        for kind, name, *_ in unit.expectations:
            if kind == "run":
                locked["runs"].add(name)
            elif kind in ("lock", "letter", "record"):
                locked["names"].add(f"{kind} {name}")
        expects = [_expected(loaded, expectation) for expectation in unit.expectations]
        written = _written(unit.changes)
        decisions.append({"expects": expects, "until": unit.until, "changes": written})
    return {"parts": [["decisions", decisions]], **some(locked)}


def _expected(loaded: LoadedFacts, expectation: Expectation) -> Expectation:
    """A lock must not have been renewed meanwhile either: who takes one that has ended rests on
    that."""
    if expectation[0] != "lock":
        return expectation
    lock = loaded.locks.get(expectation[1])
    return (*expectation, lock and lock.lease_until)


def _written(changes: Sequence[ch.Change]) -> list[list[Any]]:
    return [
        WRITTEN[type(change)](change) if not _is_success(change) else _succeed(change, changes)
        for change in changes
        if not (isinstance(change, ch.AddEvent) and change.type in SAID_BY_OTHERS)
    ]


def _is_success(change: ch.Change) -> TypeGuard[ch.ChangeRun]:
    return isinstance(change, ch.ChangeRun) and change.fields.get("state") is RunState.SUCCEEDED


def _succeed(change: ch.ChangeRun, changes: Sequence[ch.Change]) -> list[Any]:
    """The server moves the run to where results are; its own epoch is filled in there."""
    [event] = [c for c in changes if isinstance(c, ch.AddEvent) and c.type == EventType.COMPLETED]
    settle = Settle(
        change.run,
        0,
        "succeeded",
        result=change.fields["result"],
        progress=change.fields["progress"],
        execution_ms=msgspec.json.decode(event.data)["execution_time_ms"],
        checksum=change.fields["result_checksum"],
    )
    return ["succeed", settle]


def _open_letter(change: ch.OpenLetter) -> list[Any]:
    body = None if change.body is None else b64encode(change.body).decode()
    attributes = encode(change.attributes).decode()
    named = [change.id, change.source, change.reason, attributes, change.tenant, change.run]
    return ["letter", *named, body]


WRITTEN: dict[type, Callable[[Any], list[Any]]] = {
    ch.AddRun: lambda change: ["submit", submission(change.submit)],
    ch.ChangeRun: lambda change: ["run", change.run, change.fields],
    ch.RemoveRun: lambda change: ["remove", change.run],
    ch.AddEvent: lambda change: ["event", change.run, change.type, change.data],
    ch.AddLetterEvent: lambda change: ["event", *astuple(change)],
    ch.PutCheckpoint: lambda change: [
        "checkpoint",
        {"run": change.run, **asdict(change.checkpoint)},
    ],
    ch.MoveToQuarantine: lambda change: ["quarantine", *astuple(change)],
    ch.OpenLetter: _open_letter,
    ch.CloseLetter: lambda change: ["close", change.id, change.resolution],
    ch.AddAudit: lambda change: ["audit", *astuple(change)],
    ch.PutLock: lambda change: ["lock", asdict(change.lock)],
    ch.PutLane: lambda change: ["lane", *astuple(change.lane)],
    ch.PutTenant: lambda change: ["tenant", *astuple(change)],
    ch.WriteRecord: lambda change: ["record", asdict(change.record)],
    ch.RemoveRecord: lambda change: ["remove_record", change.key],
}
