"""Facts for decisions that are made here: plain reads, all of them in one round trip, one more for
the runs that are found by key or slot, and one for the time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct, field

from holdfast.adapters.decisions import LoadedFacts, Needs
from holdfast.adapters.redis import codec
from holdfast.adapters.redis.codec import SMALL, Times, checkpoint_field, unpack
from holdfast.model.lane import Lane
from holdfast.model.machine.facts import LetterFacts

Ask = Callable[[Sequence[Sequence[Any]]], Awaitable[list[Any]]]
"""Sends commands that leave together, if there are any; keys are without the store's own prefix."""
Clock = Callable[[], Awaitable[Times]]
Fields = dict[tuple[str, str], bytes]
"""By key and field."""
Rows = dict[str, Any]
"""The fields of runs, by id."""


class Raw(Struct):
    """What was read, as it is stored, and when: that is what the server compares."""

    times: Times
    fields: Fields
    lengths: dict[str, int] = field(default_factory=dict)
    """Of the quarantine of runs."""


async def load(ask: Ask, clock: Clock, needs: Needs) -> LoadedFacts:
    """The time is read last: by an earlier one, a lease that is renewed meanwhile would end later
    than it can."""
    named = [
        *[("keys", f"{tenant}\0{key}") for tenant, key in needs.keys],
        *[("slots", f"{tenant}\0{pipeline}") for tenant, pipeline in needs.slots],
        *[("locks", name) for name in needs.locks],
        *[("records", key) for key in needs.records],
        *[(f"letter:{id}", "m") for id in needs.letters],
        *[(f"run:{run}", checkpoint_field(step, key)) for run, step, key in needs.checkpoints],
    ]
    quarantined = sorted({run for run, _, _ in needs.checkpoints})
    runs = sorted(needs.runs)
    lanes, *answers = await ask(
        [
            ("HGETALL", "lanes"),
            *[("HGET", key, name) for key, name in named],
            *[("LRANGE", f"quarantine:{run}", 0, -1) for run in quarantined],
            *[("HMGET", f"run:{run}", *SMALL) for run in runs],
        ]
    )
    fields = {
        key_field: value
        for key_field, value in zip(named, answers, strict=False)
        if value is not None
    }
    fields |= {("lanes", name.decode()): value for name, value in codec.pairs(lanes)}
    rest = answers[len(named) :]
    rows = dict(zip(runs, rest[len(quarantined) :], strict=True))
    slots = needs.slots | await _load_own_slots(ask, rows, needs, fields)
    rows |= await _load_holders(ask, rows, fields)
    raw = Raw(await clock(), fields)
    loaded = LoadedFacts(raw.times, raw=raw)
    _count_quarantined(loaded, raw, dict(zip(quarantined, rest, strict=False)))
    for id, row in rows.items():
        if (run := codec.run(id, row, raw.times)) is not None:
            loaded.runs[id] = run
    _read_fields(loaded, raw, needs)
    _read_holders(loaded, raw, needs.keys, slots)
    return loaded


async def _load_own_slots(
    ask: Ask, rows: Rows, needs: Needs, fields: Fields
) -> set[tuple[str, str]]:
    """The slots that the runs themselves need."""
    facts = [run for id, row in rows.items() if (run := codec.run(id, row)) is not None]
    own = {(run.tenant, run.pipeline) for run in facts if run.unique} - needs.slots
    holders = await ask([("HGET", "slots", f"{t}\0{p}") for t, p in sorted(own)])
    for (tenant, pipeline), value in zip(sorted(own), holders, strict=True):
        if value is not None:
            fields["slots", f"{tenant}\0{pipeline}"] = value
    return own


async def _load_holders(ask: Ask, rows: Rows, fields: Fields) -> Rows:
    """The runs behind keys and slots."""
    holders = {value.decode() for (key, _), value in fields.items() if key in ("keys", "slots")}
    missing = sorted(holders - set(rows))
    answers = await ask([("HMGET", f"run:{run}", *SMALL) for run in missing])
    return dict(zip(missing, answers, strict=True))


def _count_quarantined(loaded: LoadedFacts, raw: Raw, entries: dict[str, list[bytes]]) -> None:
    for run, packed in entries.items():
        raw.lengths[run] = len(packed)
        for entry in packed:
            step = (run, unpack(5, entry)[0])
            loaded.quarantined[step] = loaded.quarantined.get(step, 0) + 1


def _read_fields(loaded: LoadedFacts, raw: Raw, needs: Needs) -> None:
    for (key, name), value in raw.fields.items():
        match key:
            case "lanes":
                loaded.lanes[name] = Lane(name, *unpack(2, value))
            case "locks":
                loaded.locks[name] = codec.lock(name, value)
            case "records":
                loaded.records[name] = codec.record(name, value, raw.times)
    for id in needs.letters:
        if (value := raw.fields.get((f"letter:{id}", "m"))) is not None:
            letter = codec.letter(id, value, None)
            loaded.letters[id] = LetterFacts(id, letter.run, letter.closed)
    for run, step, key in needs.checkpoints:
        value = raw.fields.get((f"run:{run}", checkpoint_field(step, key)))
        if value is not None:
            loaded.checkpoints[run, step, key] = unpack(6, value)[5]


def _read_holders(
    loaded: LoadedFacts, raw: Raw, keys: Iterable[tuple[str, str]], slots: Iterable[tuple[str, str]]
) -> None:
    for kind, names, holders in (("keys", keys, loaded.keys), ("slots", slots, loaded.slots)):
        for first, second in names:
            value = raw.fields.get((kind, f"{first}\0{second}"))
            if value is not None:
                holders[first, second] = value.decode()
