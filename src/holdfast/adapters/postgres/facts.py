"""Facts for decisions that are made here: one read for all that some commands need."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from holdfast.adapters.decisions import Loaded, Needs
from holdfast.adapters.postgres.text import seal, unseal
from holdfast.model.lane import Lane
from holdfast.model.machine.facts import LetterFacts, LockFacts, Now, RecordFacts, RunFacts


class Answer(Struct):
    """What the statement `facts` answers."""

    now: float
    runs: list[RunFacts]
    keys: list[tuple[str, str, str]]
    slots: list[tuple[str, str, str]]
    lanes: list[tuple[Any, ...]]
    locks: list[tuple[Any, ...]]
    letters: list[tuple[Any, ...]]
    checkpoints: list[tuple[str, str, str, int]]
    quarantined: list[tuple[str, str, int]]
    records: list[tuple[Any, ...]]


_decode = msgspec.json.Decoder(Answer).decode


def question(needs: Needs) -> bytes:
    return seal(msgspec.json.encode(needs))


def loaded(answer: bytes, wall: float | None) -> Loaded:
    """`wall` is that of the clock that a test moves; for others there is one time."""
    found = _decode(unseal(answer))
    return Loaded(
        Now(found.now if wall is None else wall, found.now),
        runs={run.id: run for run in found.runs},
        keys={(tenant, key): run for tenant, key, run in found.keys},
        slots={(tenant, pipeline): run for tenant, pipeline, run in found.slots},
        lanes={row[0]: Lane(*row) for row in found.lanes},
        locks={row[0]: LockFacts(*row) for row in found.locks},
        letters={row[0]: LetterFacts(*row) for row in found.letters},
        checkpoints={(run, step, key): epoch for run, step, key, epoch in found.checkpoints},
        quarantined={(run, step): count for run, step, count in found.quarantined},
        records={row[0]: RecordFacts(*row) for row in found.records},
    )
