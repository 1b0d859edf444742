"""Facts for decisions that are made here: one read for all that some commands need."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from holdfast.adapters.decisions import LoadedFacts, Needs
from holdfast.adapters.postgres.text import seal, unseal
from holdfast.model.lane import Lane
from holdfast.model.machine.facts import LetterFacts, LockFacts, Now, RecordFacts, RunFacts


class FactsAnswer(Struct):
    """What the statement `facts` answers."""

    now: float
    runs: list[RunFacts]
    keys: list[tuple[str, str, str]]
    slots: list[tuple[str, str, str]]
    lanes: list[Lane]
    locks: list[LockFacts]
    letters: list[LetterFacts]
    checkpoints: list[tuple[str, str, str, int]]
    quarantined: list[tuple[str, str, int]]
    records: list[RecordFacts]


_decode = msgspec.json.Decoder(FactsAnswer).decode


def question(needs: Needs) -> bytes:
    return seal(msgspec.json.encode(needs))


def loaded(answer: bytes, wall: float | None) -> LoadedFacts:
    """`wall` is that of the clock that a test moves; for others there is one time."""
    facts = _decode(unseal(answer))
    return LoadedFacts(
        Now(facts.now if wall is None else wall, facts.now),
        runs={run.id: run for run in facts.runs},
        keys={(tenant, key): run for tenant, key, run in facts.keys},
        slots={(tenant, pipeline): run for tenant, pipeline, run in facts.slots},
        lanes={lane.name: lane for lane in facts.lanes},
        locks={lock.name: lock for lock in facts.locks},
        letters={letter.id: letter for letter in facts.letters},
        checkpoints={(run, step, key): epoch for run, step, key, epoch in facts.checkpoints},
        quarantined={(run, step): count for run, step, count in facts.quarantined},
        records={record.key: record for record in facts.records},
    )
