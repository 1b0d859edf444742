"""Facts for decisions that are made here: plain reads, all of them in one round trip, and one more
for the runs that are found by key or slot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from holdfast.adapters.decisions import Loaded, Needs
from holdfast.adapters.redis import codec
from holdfast.adapters.redis.codec import SMALL, Times, checkpoint_field, unpack
from holdfast.model.lane import Lane
from holdfast.model.machine.facts import LetterFacts

_strings = msgspec.json.Decoder(dict[str, str]).decode

Ask = Callable[[Sequence[Sequence[Any]]], Awaitable[list[Any]]]
"""Sends commands that leave together; keys are without the store's own prefix."""


class Raw(Struct):
    """What was read, as it is stored, and when: that is what the server compares."""

    times: Times
    fields: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """By key and field."""
    lengths: dict[str, int] = field(default_factory=dict)
    """Of the quarantine of runs."""
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of runs."""


async def load(ask: Ask, needs: Needs, times: Times) -> Loaded:
    raw = Raw(times)
    loaded = Loaded(times, raw=raw)
    named = [
        *[("keys", f"{tenant}\0{key}") for tenant, key in needs.keys],
        *[("slots", f"{tenant}\0{pipeline}") for tenant, pipeline in needs.slots],
        *[("locks", name) for name in needs.locks],
        *[("records", key) for key in needs.records],
        *[(f"letter:{id}", "m") for id in needs.letters],
        *[(f"run:{run}", checkpoint_field(step, key)) for run, step, key in needs.checkpoints],
    ]
    aside = sorted({run for run, _, _ in needs.checkpoints})
    runs = sorted(needs.runs)
    lanes, *answers = await ask(
        [
            ("HGETALL", "lanes"),
            *[("HGET", key, name) for key, name in named],
            *[("LRANGE", f"quarantine:{run}", 0, -1) for run in aside],
            *[("HMGET", f"run:{run}", *SMALL) for run in runs],
        ]
    )
    raw.fields = {
        place: value for place, value in zip(named, answers, strict=False) if value is not None
    }
    raw.fields |= {
        ("lanes", name.decode()): value for name, value in zip(lanes[::2], lanes[1::2], strict=True)
    }
    rest = answers[len(named) :]
    _count_quarantined(loaded, raw, dict(zip(aside, rest, strict=False)))
    _add_runs(loaded, raw, dict(zip(runs, rest[len(aside) :], strict=True)), times)
    _read_fields(loaded, raw, needs, times)
    await _load_holders(ask, loaded, raw, needs, times)
    return loaded


def _count_quarantined(loaded: Loaded, raw: Raw, entries: dict[str, list[bytes]]) -> None:
    for run, packed in entries.items():
        raw.lengths[run] = len(packed)
        for entry in packed:
            place = (run, unpack(5, entry)[0])
            loaded.quarantined[place] = loaded.quarantined.get(place, 0) + 1


def _add_runs(loaded: Loaded, raw: Raw, rows: dict[str, Any], times: Times) -> None:
    for id, row in rows.items():
        run = codec.run(id, row, times)
        if run is not None:
            loaded.runs[id] = run
            raw.labels[id] = _strings(run.labels) if run.labels else {}


def _read_fields(loaded: Loaded, raw: Raw, needs: Needs, times: Times) -> None:
    for (key, name), value in raw.fields.items():
        match key:
            case "lanes":
                loaded.lanes[name] = Lane(name, *unpack(2, value))
            case "locks":
                loaded.locks[name] = codec.lock(name, value)
            case "records":
                loaded.records[name] = codec.record(name, value, times)
    for id in needs.letters:
        if (value := raw.fields.get((f"letter:{id}", "m"))) is not None:
            letter = codec.letter(id, value, None)
            loaded.letters[id] = LetterFacts(id, letter.run, letter.closed)
    for run, step, key in needs.checkpoints:
        value = raw.fields.get((f"run:{run}", checkpoint_field(step, key)))
        if value is not None:
            loaded.checkpoints[run, step, key] = unpack(6, value)[5]


async def _load_holders(ask: Ask, loaded: Loaded, raw: Raw, needs: Needs, times: Times) -> None:
    """The runs behind keys and slots, those slots included that the runs themselves need."""
    own = {(run.tenant, run.pipeline) for run in loaded.runs.values() if run.unique} - needs.slots
    holders = await ask([("HGET", "slots", f"{t}\0{p}") for t, p in sorted(own)]) if own else []
    for (tenant, pipeline), value in zip(sorted(own), holders, strict=True):
        if value is not None:
            raw.fields["slots", f"{tenant}\0{pipeline}"] = value
    for kind, names in (("keys", needs.keys), ("slots", needs.slots | own)):
        for first, second in names:
            value = raw.fields.get((kind, f"{first}\0{second}"))
            if value is not None:
                getattr(loaded, kind)[first, second] = value.decode()
    missing = sorted({*loaded.keys.values(), *loaded.slots.values()} - set(loaded.runs))
    rows = await ask([("HMGET", f"run:{run}", *SMALL) for run in missing]) if missing else []
    _add_runs(loaded, raw, dict(zip(missing, rows, strict=True)), times)
