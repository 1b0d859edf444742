"""Facts for decisions that are made here: plain reads, all of them in one round trip, one more for
the runs that are found by key or slot, and one for the time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec import Struct

from holdfast.adapters.decisions import LoadedFacts, Needs
from holdfast.adapters.redis import codec
from holdfast.adapters.redis.codec import SMALL, Times, checkpoint_field, unpack
from holdfast.model.lane import Lane
from holdfast.model.machine.facts import LetterFacts

Ask = Callable[[Sequence[Sequence[Any]]], Awaitable[list[Any]]]
"""Sends commands that leave together, if there are any; keys are without the store's own prefix."""
Fact = tuple[str, ...]
"""A kind and a name, as expectations begin with them; of all but runs."""
Rows = dict[str, Any]
"""The fields of runs, by id."""


def place(kind: str, *name: str) -> tuple[str, str]:
    """Where a fact is stored: a key and a field."""
    if kind == "checkpoint":
        run, step, key = name
        return f"run:{run}", checkpoint_field(step, key)
    if kind == "letter":
        return f"letter:{name[0]}", "m"
    return f"{kind}s", "\0".join(name)


class Raw(Struct):
    """What was read, as it is stored, and when: that is what the server compares."""

    times: Times
    stored: dict[Fact, bytes]
    lengths: dict[str, int]
    """Of the quarantine of runs."""


async def load(ask: Ask, clock: Callable[[], Awaitable[Times]], needs: Needs) -> LoadedFacts:
    """The time is read last: by an earlier one, a lease that is renewed meanwhile would end later
    than it can."""
    facts: list[Fact] = [
        *[("key", *name) for name in needs.keys],
        *[("slot", *name) for name in needs.slots],
        *[("lock", name) for name in needs.locks],
        *[("record", name) for name in needs.records],
        *[("letter", name) for name in needs.letters],
        *[("checkpoint", *name) for name in needs.checkpoints],
    ]
    runs, quarantined = sorted(needs.runs), sorted({run for run, _, _ in needs.checkpoints})
    lanes, *answers = await ask(
        [
            ("HGETALL", "lanes"),
            *[("HGET", *place(*fact)) for fact in facts],
            *[("LRANGE", f"quarantine:{run}", 0, -1) for run in quarantined],
            *[("HMGET", f"run:{run}", *SMALL) for run in runs],
        ]
    )
    rest = iter(answers)
    stored = _present(facts, [next(rest) for _ in facts])
    stored |= {("lane", name.decode()): value for name, value in codec.pairs(lanes)}
    entries = {run: next(rest) for run in quarantined}
    rows: Rows = {run: next(rest) for run in runs}
    stored |= await _load_own_slots(ask, rows)
    rows |= await _load_holders(ask, rows, stored)
    raw = Raw(await clock(), stored, {run: len(packed) for run, packed in entries.items()})
    loaded = LoadedFacts(raw.times, raw=raw)
    for id, row in rows.items():
        if (run := codec.run(id, row, raw.times)) is not None:
            loaded.runs[id] = run
    for step in [(run, unpack(5, entry)[0]) for run, packed in entries.items() for entry in packed]:
        loaded.quarantined[step] = loaded.quarantined.get(step, 0) + 1
    for fact, value in stored.items():
        _add(loaded, fact, value)
    return loaded


def _present(facts: Sequence[Fact], values: Sequence[Any]) -> dict[Fact, bytes]:
    return {fact: value for fact, value in zip(facts, values, strict=True) if value is not None}


async def _load_own_slots(ask: Ask, rows: Rows) -> dict[Fact, bytes]:
    """The slots that the runs themselves need."""
    runs = [run for id, row in rows.items() if (run := codec.run(id, row)) is not None]
    slots = sorted({("slot", run.tenant, run.pipeline) for run in runs if run.unique})
    return _present(slots, await ask([("HGET", *place(*slot)) for slot in slots]))


async def _load_holders(ask: Ask, rows: Rows, stored: dict[Fact, bytes]) -> Rows:
    """The runs behind keys and slots."""
    holders = {value.decode() for fact, value in stored.items() if fact[0] in ("key", "slot")}
    missing = sorted(holders - set(rows))
    answers = await ask([("HMGET", f"run:{run}", *SMALL) for run in missing])
    return dict(zip(missing, answers, strict=True))


def _add(loaded: LoadedFacts, fact: Fact, value: bytes) -> None:
    match fact:
        case "lane", name:
            loaded.lanes[name] = Lane(name, *unpack(2, value))
        case "lock", name:
            loaded.locks[name] = codec.lock(name, value)
        case "record", key:
            loaded.records[key] = codec.record(key, value, loaded.raw.times)
        case "letter", id:
            letter = codec.letter(id, value, None)
            loaded.letters[id] = LetterFacts(id, letter.run, letter.closed)
        case "checkpoint", run, step, key:
            loaded.checkpoints[run, step, key] = unpack(6, value)[5]
        case "key", tenant, key:
            loaded.keys[tenant, key] = value.decode()
        case "slot", tenant, pipeline:
            loaded.slots[tenant, pipeline] = value.decode()
        case _:
            raise ValueError(f"there are no facts of the kind {fact[0]}")
