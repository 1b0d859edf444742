"""The reads that people need: plain commands, sent together, and their answers as the port's
values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.adapters.redis import codec, lists
from holdfast.adapters.redis.codec import WHOLE, Times, unpack
from holdfast.adapters.redis.facts import Ask
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event
from holdfast.model.lane import Lane
from holdfast.model.lease import LockInfo
from holdfast.model.run import FINISHED, Run
from holdfast.ports.mover import MoveMark, Quarantined
from holdfast.ports.records import Record, RecordPage
from holdfast.ports.store import Audit, DeadLetter, LaneInfo, RunFilter, StoredLog

EVENTS_AT_ONCE = 1000


async def run(ask: Ask, id: str) -> Run | None:
    [row] = await ask([("HMGET", f"run:{id}", *WHOLE)])
    facts = codec.run(id, row)
    return facts.view() if facts else None


async def over(ask: Ask, ids: Sequence[str]) -> list[Run]:
    rows = await ask([("HGET", f"run:{id}", "f") for id in ids]) if ids else []
    ended = [
        id
        for id, row in zip(ids, rows, strict=True)
        if row is not None and codec.STATES[row[0] - 1] in FINISHED
    ]
    return await _whole(ask, ended)


async def unique_runs(ask: Ask) -> list[Run]:
    [ids] = await ask([("HVALS", "slots")])
    return sorted(await _whole(ask, [id.decode() for id in ids]), key=lambda run: run.seq)


async def _whole(ask: Ask, ids: Sequence[str]) -> list[Run]:
    rows = await ask([("HMGET", f"run:{id}", *WHOLE) for id in ids]) if ids else []
    loaded = [codec.run(id, row) for id, row in zip(ids, rows, strict=True)]
    return [facts.view() for facts in loaded if facts is not None]


async def checkpoints(ask: Ask, id: str, step: str | None) -> list[Checkpoint]:
    [flat] = await ask([("HGETALL", f"run:{id}")])
    saved = [
        codec.checkpoint(field, packed)
        for field, packed in zip(flat[::2], flat[1::2], strict=True)
        if field.startswith(b"c")
    ]
    wanted = [checkpoint for checkpoint in saved if step in (None, checkpoint.step)]
    return sorted(wanted, key=lambda checkpoint: (checkpoint.step, checkpoint.key))


async def quarantine(ask: Ask, id: str) -> list[Quarantined]:
    [entries] = await ask([("LRANGE", f"quarantine:{id}", 0, -1)])
    return [Quarantined(*unpack(5, entry)) for entry in entries]


async def history(ask: Ask, id: str) -> list[Event]:
    [(s, f)] = await ask([("HMGET", f"run:{id}", "s", "f")])
    if s is None:
        return []
    tenant, pipeline, *_ = unpack(13, s)
    last = codec.CHANGES.unpack(f)[3]
    events: list[bytes] = []
    for start in range(1, last + 1, EVENTS_AT_ONCE):
        numbers = range(start, min(start + EVENTS_AT_ONCE, last + 1))
        [some] = await ask([("HMGET", f"run:{id}", *[f"e{number}" for number in numbers])])
        events += some
    return [
        codec.event(id, number, packed, tenant, pipeline) for number, packed in enumerate(events, 1)
    ]


async def outbox(ask: Ask, after: int, limit: int) -> list[Event]:
    wanted = (f"({after}", "+inf", "LIMIT", 0, limit)
    [members] = await ask([("ZRANGEBYSCORE", "outbox", *wanted)])
    commands = [_event_command(member) for member in members]
    rows = await ask(commands) if commands else []
    events = [_outbox_event(m, row) for m, row in zip(members, rows, strict=True)]
    return [event for event in events if event is not None]


def _event_command(member: bytes) -> tuple[str, ...]:
    name = member[1:].decode()
    if member.startswith(b"l"):
        return "HMGET", f"letter:{name}", "e", "m"
    run, _, number = name.rpartition("\0")
    return "HMGET", f"run:{run}", f"e{number}", "s"


def _outbox_event(member: bytes, row: Sequence[Any]) -> Event | None:
    packed, owner = row
    if packed is None:
        return None  # it has gone meanwhile
    name = member[1:].decode()
    if member.startswith(b"l"):
        return codec.event(name, 1, packed, codec.letter(name, owner, None).tenant, "")
    run, _, number = name.rpartition("\0")
    tenant, pipeline, *_ = unpack(13, owner)
    return codec.event(run, int(number), packed, tenant, pipeline)


async def logs(ask: Ask, id: str, after: int, limit: int) -> list[StoredLog]:
    if not limit:
        return []
    [lines] = await ask([("LRANGE", f"log:{id}", after, after + limit - 1)])
    return [StoredLog(*unpack(5, line)) for line in lines]


async def dead_letters(
    ask: Ask, tenant: str | None, open_only: bool, limit: int
) -> list[DeadLetter]:
    index = f"letters:{'open' if open_only else 'all'}" + (f":{tenant}" if tenant else "")
    [ids] = await ask([("ZREVRANGE", index, 0, limit - 1)]) if limit > 0 else [[]]
    return await letters(ask, [id.decode() for id in ids])


async def letters(ask: Ask, ids: Sequence[str]) -> list[DeadLetter]:
    """Those that are there. The body of a run's letter is the run's input."""
    rows = await ask([("HMGET", f"letter:{id}", "m", "b") for id in ids]) if ids else []
    stored = [codec.letter(id, *row) for id, row in zip(ids, rows, strict=True) if row[0]]
    runs = [letter.run for letter in stored if letter.run]
    answers = await ask([("HGET", f"run:{run}", "i") for run in runs]) if runs else []
    inputs = dict(zip(runs, answers, strict=True))
    return [
        msgspec.structs.replace(letter, body=inputs[letter.run] or b"") if letter.run else letter
        for letter in stored
    ]


async def locks(ask: Ask, times: Times) -> list[LockInfo]:
    [names] = await ask([("ZRANGEBYSCORE", "locks:held", f"({times.mono!r}", "+inf")])
    rows = await ask([("HGET", "locks", name) for name in names]) if names else []
    held = [codec.lock(name.decode(), row) for name, row in zip(names, rows, strict=True) if row]
    infos = [
        LockInfo(lock.name, lock.epoch, lock.owner, lock.acquired, lock.lease_until - times.mono)
        for lock in held
        if lock.token is not None and lock.lease_until is not None
    ]
    return sorted(infos, key=lambda lock: lock.name)


async def lanes(ask: Ask, times: Times) -> list[LaneInfo]:
    [flat] = await ask([("HGETALL", "lanes")])
    defined = {
        name.decode(): Lane(name.decode(), *unpack(2, value))
        for name, value in zip(flat[::2], flat[1::2], strict=True)
    }
    numbers: dict[tuple[str, str], int] = {}
    for _, _, lane, state, number in await lists.counts(ask, RunFilter()):
        numbers[lane, state] = numbers.get((lane, state), 0) + number
    busy = {lane for lane, state in numbers if state in ("queued", "running")}
    leaders = {lock.name: lock for lock in await locks(ask, times)}
    names = sorted({*defined, *busy})
    blocked = await ask([("ZRANGE", f"blocked:{name}", 0, 0) for name in names]) if names else []
    since = f"({times.later!r}"
    delayed = (
        await ask([("ZCOUNT", f"delayed:{name}", since, "+inf") for name in names]) if names else []
    )
    infos: list[LaneInfo] = []
    oldest = [await _oldest(ask, name, times) for name in names]
    for name, held_by, waiting, first in zip(names, blocked, delayed, oldest, strict=True):
        lane = defined.get(name) or Lane(name)
        leader = leaders.get(lane.leader_lock)
        infos.append(
            LaneInfo(
                name,
                lane.order,
                lane.head,
                numbers.get((name, "queued"), 0),
                numbers.get((name, "running"), 0),
                leader.owner if leader else None,
                leader.epoch if leader else 0,
                held_by[0].decode() if held_by else None,
                waiting,
                first,
            )
        )
    return infos


async def _oldest(ask: Ask, lane: str, times: Times) -> float | None:
    """When the first run that waits without a delay was accepted."""
    delayed, fifo, queues = f"delayed:{lane}", f"fifo:{lane}", f"queues:{lane}"
    names, in_line, over = await ask(
        [
            ("ZRANGE", queues, 0, -1),
            ("ZRANGE", fifo, 0, LOOKED_AT),
            ("ZRANGEBYSCORE", delayed, "-inf", repr(times.later), "LIMIT", 0, LOOKED_AT),
        ]
    )
    heads = [("ZRANGE", f"ready:{lane}\0{name.decode()}", 0, 0) for name in names]
    ends = [("ZSCORE", delayed, id) for id in in_line]
    answers = await ask([*heads, *ends]) if heads or ends else []
    ready = [id for ids in answers[: len(heads)] for id in ids]
    due = [
        id
        for id, end in zip(in_line, answers[len(heads) :], strict=True)
        if end is None or float(end) <= times.later
    ]
    runs = await _whole(ask, [id.decode() for id in {*ready, *due, *over}])
    return min((run.created for run in runs), default=None)


LOOKED_AT = 100
"""Runs of a lane that were delayed, or are behind one that is."""


async def records(ask: Ask, times: Times, prefix: str, after: str, limit: int) -> RecordPage:
    page: list[Record] = []
    low = f"({after}" if after >= prefix else f"[{prefix}"
    high = b"(" + prefix.encode() + b"\xff"  # no text goes on with this byte
    while len(page) < limit:
        limits = ("LIMIT", 0, limit - len(page))
        [keys] = await ask([("ZRANGEBYLEX", "records:keys", low, high, *limits)])
        if not keys:
            break
        [rows] = await ask([("HMGET", "records", *keys)])
        for key, row in zip(keys, rows, strict=True):
            facts = codec.record(key.decode(), row, times) if row else None
            if facts is not None and facts.is_live(times):
                page.append(Record(facts.key, facts.value, facts.version, facts.updated))
        low = f"({keys[-1].decode()}"
    return RecordPage(page, times.wall)


async def audit(ask: Ask, limit: int) -> list[Audit]:
    [entries] = await ask([("LRANGE", "audit", 0, limit - 1)]) if limit else [[]]
    return [Audit(*unpack(5, entry)) for entry in entries]


def mark(text: bytes | None) -> MoveMark | None:
    return msgspec.json.decode(text, type=MoveMark) if text else None
