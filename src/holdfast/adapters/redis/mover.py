"""Moving what is under a prefix. Runs are read with plain commands and taken in by the script that
knows where a run belongs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import closing
from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from holdfast.adapters import decisions
from holdfast.adapters.decisions import LoadedFacts, Unit
from holdfast.adapters.redis import changes, codec, reads, server
from holdfast.adapters.redis.batch import raise_failures
from holdfast.adapters.redis.changes import Plain
from holdfast.adapters.redis.codec import FREE, WHOLE, Times, packed, unpack
from holdfast.adapters.redis.link import examine, find_master
from holdfast.adapters.redis.store import RedisStore
from holdfast.adapters.redis.wire import Argument, ask, ask_all
from holdfast.model.commands import RUN_LETTER, Sweep, Wake
from holdfast.model.lane import Lane
from holdfast.model.machine.facts import RecordFacts
from holdfast.ports.mover import (
    PAGE_BYTES,
    AuditRecord,
    ExpiringRecord,
    Holder,
    Kind,
    LetterRecord,
    LockEpoch,
    MoveMark,
    MoveState,
    Numbers,
    Page,
    RunRecord,
    TenantLimit,
)
from holdfast.ports.records import Record

AT_ONCE = 20
"""Runs that are asked for in one go."""
ALL = 1 << 40


class RedisMover(RedisStore):
    """A `Mover` of a store on a server: the store itself, whatever mark it carries."""

    async def _refuse_marked(self) -> None:
        """A mover may use it all the same."""

    async def exists(self) -> bool:
        await examine(self.address)
        with (
            server.explained(self.address, opening=True),
            closing(await find_master(self.address)) as wire,
        ):
            return await ask(wire, "HGET", self._meta, "schema") is not None

    async def commit(
        self, loaded: LoadedFacts, units: Sequence[Unit], wake: Wake
    ) -> Sequence[bool]:
        return await self._decide([changes.encode(unit, loaded) for unit in units])

    async def _decide(self, encoded: Sequence[bytes]) -> Sequence[bool]:
        return raise_failures(await self._call(encoded, Wake.NOBODY, force=True))

    async def _write(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Send commands together; their second words are keys of ours."""
        with server.explained(self.address):
            wire = await self._link().command_wire()
            return await ask_all(wire, self._keyed(commands))

    # --- the mark ---

    async def move_state(self) -> MoveState:
        (mark, seq, position), newest, runs, letters, audit = await self._ask(
            [
                ("HMGET", "meta", "mark", "seq", "position"),
                ("ZREVRANGE", "runs", 0, 0),
                ("ZCARD", "runs"),
                ("ZCARD", "letters:all"),
                ("LLEN", "audit"),
            ]
        )
        return MoveState(
            reads.mark(mark),
            empty=runs + letters + audit == 0,
            runs=runs,
            numbers=Numbers(int(seq or 0), int(position or 0)),
            last_run=newest[0].decode() if newest else None,
            holders=[*await self._leases(), *await self._held_locks()],
        )

    async def _leases(self) -> list[Holder]:
        lasting = (f"({codec.score((await self._times()).mono)}", "+inf")
        [ids] = await self._ask([("ZRANGEBYSCORE", "leases", *lasting)])
        running = sorted(await self._whole(id.decode() for id in ids), key=lambda run: run.seq)
        return [Holder(f"run {run.id}", run.worker or "") for run in running]

    async def _held_locks(self) -> list[Holder]:
        return [Holder(f"lock {lock.name}", lock.owner or "") for lock in await self.locks()]

    async def hold(self, mark: MoveMark) -> None:
        """The mark comes first: from then on only movers write."""
        text = msgspec.json.encode(mark).decode()
        await self._write([("HSET", "meta", "mark", text, "held", mark.meaning)])
        await self._end_leases()
        freed = _freed(await self._lock_epochs())
        await self._write([*freed, ("DEL", "locks:held")])

    async def _end_leases(self) -> None:
        """Leases that end at 0 have ended; the sweep then does what it does for dead workers."""
        [ids] = await self._ask([("ZRANGE", "leases", 0, -1)])
        ended = [[("run", id.decode(), {"lease_until": 0}, {})] for id in ids]
        await self._decide([changes.encoded([], change) for change in ended])
        if ids:
            await decisions.decide_all(self, [Sweep(limit=ALL)])

    async def release(self) -> None:
        await self._write([("HDEL", "meta", "mark", "held")])

    # --- reading ---

    async def export(self, kind: Kind, after: str | None, limit: int) -> Page:
        if kind == "runs":
            return await self._export_runs(after, limit)
        if kind == "audit":
            return await self._export_audit(int(after or 0), limit)
        records = await EXPORT[kind](self)
        start = int(after or 0)
        end = start + limit
        return Page(records[start:end], str(end) if len(records) > end else None)

    async def _export_runs(self, after: str | None, limit: int) -> Page:
        low = "-inf"
        if after is not None:
            [score] = await self._ask([("ZSCORE", "runs", after)])
            low = f"({int(score)}" if score is not None else low
        [members] = await self._ask([("ZRANGEBYSCORE", "runs", low, "+inf", "LIMIT", 0, limit + 1)])
        ids = [id.decode() for id in members]
        records: list[RunRecord] = []
        size = 0
        for start in range(0, min(len(ids), limit), AT_ONCE):
            if size > PAGE_BYTES:
                break
            some = ids[start : min(start + AT_ONCE, limit)]
            records += await asyncio.gather(*[self._record(id) for id in some])
            size += sum(record.size for record in records[-len(some) :])
        return Page(records, records[-1].run.id if len(ids) > len(records) else None)

    async def _record(self, id: str) -> RunRecord:
        times = await self._times()
        [row] = await self._ask([("HMGET", f"run:{id}", *WHOLE)])
        run = codec.run(id, row, times)
        assert run is not None
        wait = 0.0 if run.due is None else max(0.0, run.due - times.mono)
        return RunRecord(
            replace(run, due=None, delay=0.0, lease_until=None, lease_ttl=0.0),
            wait,
            await self.checkpoints(id),
            await self._quarantine(id),
            await self.history(id),
            await self.logs(id, limit=ALL),
            await self.dead_letter(f"{RUN_LETTER}{id}"),
        )

    async def _export_audit(self, after: int, limit: int) -> Page:
        [entries] = await self._ask([("LRANGE", "audit", -(after + limit), -(after + 1))])
        records = [
            AuditRecord(number, *unpack(5, entry))
            for number, entry in enumerate(reversed(entries), after + 1)
        ]
        return Page(records, str(after + limit) if len(entries) == limit else None)

    async def _hash(self, key: str) -> dict[str, bytes]:
        [flat] = await self._ask([("HGETALL", key)])
        return {name.decode(): value for name, value in sorted(codec.pairs(flat))}

    async def _lanes(self) -> list[Lane]:
        lanes = await self._hash("lanes")
        return [Lane(name, *unpack(2, value)) for name, value in lanes.items()]

    async def _limits(self) -> list[TenantLimit]:
        limits = await self._hash("limits")
        return [TenantLimit(tenant, int(running)) for tenant, running in limits.items()]

    async def _lock_epochs(self) -> list[LockEpoch]:
        locks = await self._hash("locks")
        return [LockEpoch(name, codec.lock(name, value).epoch) for name, value in locks.items()]

    async def _expiring(self) -> list[ExpiringRecord]:
        times = await self._times()
        stored = await self._hash("records")
        facts = [codec.record(key, value, times) for key, value in stored.items()]
        return [
            ExpiringRecord(
                Record(r.key, r.value, r.version, r.updated),
                None if r.lease_until is None else r.lease_until - times.mono,
            )
            for r in facts
            if r.is_live(times)
        ]

    async def _moved_letters(self) -> list[LetterRecord]:
        [ids] = await self._ask([("ZRANGE", "letters:all", 0, -1)])
        names = [id.decode() for id in ids if not id.startswith(RUN_LETTER.encode())]
        letters = await self._letters(names)
        events = await self._ask([("HGET", f"letter:{letter.id}", "e") for letter in letters])
        return [
            LetterRecord(letter, codec.event(letter.id, 1, event, letter.tenant, ""))
            for letter, event in zip(letters, events, strict=True)
        ]

    # --- taking in ---

    async def adopt(self, kind: Kind, records: Sequence[Any]) -> None:
        if kind == "runs":
            await self._adopt_runs(records)
        elif kind == "audit":
            await self._adopt_audit(records)
        elif kind == "locks":
            await self._adopt_locks(records)
        else:
            times = await self._times()
            await self._write([c for record in records for c in ADOPT[kind](record, times)])

    async def _adopt_locks(self, locks: Sequence[LockEpoch]) -> None:
        known = {lock.name: lock.epoch for lock in await self._lock_epochs()}
        await self._write(_freed([lock for lock in locks if lock.epoch > known.get(lock.name, 0)]))

    async def _adopt_audit(self, entries: Sequence[AuditRecord]) -> None:
        [known] = await self._ask([("LLEN", "audit")])
        fresh = [packed(*astuple(entry)[1:]) for entry in entries if entry.number > known]
        if fresh:
            await self._write([("LPUSH", "audit", *fresh)])

    async def _adopt_runs(self, records: Sequence[RunRecord]) -> None:
        """What belongs to a run comes first: a run that is there has all that belongs to it."""
        await self._write([command for record in records for command in _belongings(record)])
        times = await self._times()
        await self._decide([_adoption(record, times) for record in records])

    async def continue_from(self, numbers: Numbers) -> None:
        """Runs that have arrived are numbered by positions, and new ones come behind them."""
        [(seq, position)] = await self._ask([("HMGET", "meta", "seq", "position")])
        seq = max(int(seq or 0), numbers.seq, numbers.position)
        position = max(int(position or 0), numbers.position)
        await self._write([("HSET", "meta", "seq", seq, "position", position)])


def _freed(locks: Sequence[LockEpoch]) -> list[Plain]:
    return [("HSET", "locks", lock.name, packed(lock.epoch, *FREE)) for lock in locks]


def _adoption(record: RunRecord, times: Times) -> bytes:
    """A decision that adds a run unless it is there."""
    due = None if record.run.available is None else times.mono + record.wait
    run = replace(record.run, due=due, delay=record.wait)
    fields: list[Any] = []
    for name, field in codec.TEXTS.items():
        value = getattr(run, name)
        if value is not None and (name, value) != ("progress", "{}"):
            fields += [field, value]
    for event in record.history:
        fields += [f"e{event.seq}", codec.packed_event(event)]
    for saved in record.checkpoints:
        fields += [codec.checkpoint_field(saved.step, saved.key), codec.packed_checkpoint(saved)]
    numbers = codec.changed({name: getattr(run, name) for name in codec.CHANGED}, times)
    commands = [*_in_pieces("HSET", f"run:{run.id}", fields)]
    if run.key is not None:
        commands += [("HSET", "keys", f"{run.tenant}\0{run.key}", run.id)]
    members = [(event.position, f"r{run.id}\0{event.seq}") for event in record.history]
    commands += [("ZADD", "outbox", *member) for member in members]
    adopted = ("adopt", run.id, codec.static(run), numbers, changes.strings_of(run))
    written = [adopted, *[("call", *command) for command in commands]]
    return changes.encoded([("run", run.id, False, False)], written)


def _belongings(record: RunRecord) -> Iterator[Plain]:
    """The log, the quarantine and the dead letter of a run, written anew."""
    lists = {
        f"log:{record.run.id}": record.logs,
        f"quarantine:{record.run.id}": record.quarantine,
    }
    for key, entries in lists.items():
        yield "DEL", key
        yield from _in_pieces("RPUSH", key, [packed(*astuple(entry)) for entry in entries])
    if record.letter is not None:
        yield from changes.put_letter(record.letter)


def _in_pieces(command: str, key: str, values: Sequence[Any]) -> Iterator[Plain]:
    for start in range(0, len(values), 400):
        yield command, key, *values[start : start + 400]


def _record(moved: ExpiringRecord, times: Times) -> Iterator[Plain]:
    """Unless it is there."""
    r, remaining = moved.record, moved.remaining
    until = None if remaining is None else times.mono + remaining
    facts = RecordFacts(r.key, r.value, r.version, r.updated, until, remaining or 0.0)
    (_, *put), indexed = changes.put_record(facts, times)
    yield "HSETNX", *put
    yield indexed


def _letter(moved: LetterRecord, times: Times) -> Iterator[Plain]:
    letter, event = moved.letter, moved.event
    yield from changes.put_letter(letter)
    yield "HSET", f"letter:{letter.id}", "b", letter.body, "e", codec.packed_event(event)
    yield "ZADD", "outbox", event.position, f"l{letter.id}"


EXPORT: dict[str, Callable[[RedisMover], Coroutine[Any, Any, list[Any]]]] = {
    "lanes": RedisMover._lanes,
    "tenants": RedisMover._limits,
    "locks": RedisMover._lock_epochs,
    "records": RedisMover._expiring,
    "letters": RedisMover._moved_letters,
}

ADOPT: dict[str, Callable[[Any, Times], Iterator[Plain]]] = {
    "lanes": lambda lane, _: iter([changes.put_lane(lane)]),
    "tenants": lambda limit, _: iter([changes.put_limit(limit.tenant, limit.running)]),
    "records": _record,
    "letters": _letter,
}
