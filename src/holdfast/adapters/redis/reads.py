"""The reads that people need: plain commands, sent together, and their answers as the port's
values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from holdfast.adapters.redis import codec, lists
from holdfast.adapters.redis.codec import WHOLE, Times, unpack
from holdfast.adapters.redis.wire import Argument
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event
from holdfast.model.lane import Lane
from holdfast.model.lease import LockInfo
from holdfast.model.run import FINISHED, Run
from holdfast.ports.mover import MoveMark, Quarantined
from holdfast.ports.records import Record, RecordPage
from holdfast.ports.store import Audit, DeadLetter, LaneInfo, RunFilter, StoredLog

EVENTS_AT_ONCE = 1000
LOOKED_AT = 100
"""Runs of a lane that were delayed, or are behind one that is."""


class Reads(ABC):
    """Of a store that is connected."""

    @abstractmethod
    async def _ask(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Send commands together; their second words are keys of ours."""

    @abstractmethod
    async def _times(self) -> Times: ...

    # --- runs ---

    async def run(self, run: str) -> Run | None:
        return next(iter(await self._whole([run])), None)

    async def over(self, runs: Sequence[str]) -> list[Run]:
        rows = await self._ask([("HGET", f"run:{id}", "f") for id in runs])
        return await self._whole(
            id
            for id, row in zip(runs, rows, strict=True)
            if row is not None and codec.STATES[row[0] - 1] in FINISHED
        )

    async def unique_runs(self) -> list[Run]:
        [ids] = await self._ask([("HVALS", "slots")])
        return sorted(await self._whole(id.decode() for id in ids), key=lambda run: run.seq)

    async def _whole(self, ids: Iterable[str]) -> list[Run]:
        return [run.view() for run in await lists.load(self._ask, list(ids), WHOLE)]

    async def runs(
        self, where: RunFilter, *, limit: int = 50, before: int | None = None
    ) -> list[Run]:
        below = float("inf") if before is None else before
        return await lists.runs(self._ask, where, limit, below)

    async def count(self, where: RunFilter) -> dict[str, int]:
        return await lists.count(self._ask, where)

    # --- what belongs to a run ---

    async def checkpoints(self, run: str, step: str | None = None) -> list[Checkpoint]:
        [flat] = await self._ask([("HGETALL", f"run:{run}")])
        saved = [
            codec.checkpoint(field, packed)
            for field, packed in codec.pairs(flat)
            if field.startswith(b"c")
        ]
        matching = [checkpoint for checkpoint in saved if step in (None, checkpoint.step)]
        return sorted(matching, key=lambda checkpoint: (checkpoint.step, checkpoint.key))

    async def quarantined(self, run: str) -> list[tuple[str, str, str]]:
        return [(bad.step, bad.key, bad.reason) for bad in await self._quarantine(run)]

    async def _quarantine(self, run: str) -> list[Quarantined]:
        [entries] = await self._ask([("LRANGE", f"quarantine:{run}", 0, -1)])
        return [Quarantined(*unpack(5, entry)) for entry in entries]

    async def history(self, run: str) -> list[Event]:
        [(s, f)] = await self._ask([("HMGET", f"run:{run}", "s", "f")])
        if s is None:
            return []
        tenant, pipeline, *_ = unpack(13, s)
        fields = [f"e{number}" for number in range(1, codec.CHANGES.unpack(f)[3] + 1)]
        pieces = await self._ask(
            [
                ("HMGET", f"run:{run}", *fields[start : start + EVENTS_AT_ONCE])
                for start in range(0, len(fields), EVENTS_AT_ONCE)
            ]
        )
        events = [packed for piece in pieces for packed in piece]
        return [codec.event(run, n, packed, tenant, pipeline) for n, packed in enumerate(events, 1)]

    async def logs(self, run: str, *, after: int = 0, limit: int = 1000) -> list[StoredLog]:
        if not limit:
            return []
        [lines] = await self._ask([("LRANGE", f"log:{run}", after, after + limit - 1)])
        return [StoredLog(*unpack(5, line)) for line in lines]

    # --- events ---

    async def outbox(self, after: int, limit: int = 200) -> list[Event]:
        bounds = (f"({after}", "+inf", "LIMIT", 0, limit)
        [members] = await self._ask([("ZRANGEBYSCORE", "outbox", *bounds)])
        names = [member.decode() for member in members]
        rows = await self._ask([_event_command(name) for name in names])
        events = [_outbox_event(name, *row) for name, row in zip(names, rows, strict=True)]
        return [event for event in events if event is not None]

    # --- dead letters ---

    async def dead_letters(
        self,
        *,
        tenant: str | None = None,
        open_only: bool = True,
        limit: int = 100,
        behind: tuple[float, str] | None = None,
    ) -> list[DeadLetter]:
        index = f"letters:{'open' if open_only else 'all'}" + (f":{tenant}" if tenant else "")
        if limit <= 0:
            return []
        if behind is None:
            [ids] = await self._ask([("ZREVRANGE", index, 0, limit - 1)])
            return await self._letters([id.decode() for id in ids])
        return await self._letters(await self._letters_behind(index, limit, behind))

    async def _letters_behind(self, index: str, limit: int, behind: tuple[float, str]) -> list[str]:
        top = codec.score(behind[0])
        [as_new] = await self._ask([("ZCOUNT", index, top, top)])
        bounds = ("-inf", "WITHSCORES", "LIMIT", 0, limit + as_new)
        [flat] = await self._ask([("ZREVRANGEBYSCORE", index, top, *bounds)])
        named = [(int(score), id.decode()) for id, score in codec.pairs(flat)]
        return [id for score, id in named if (score, id) < (top, behind[1])][:limit]

    async def dead_letter(self, id: str) -> DeadLetter | None:
        return next(iter(await self._letters([id])), None)

    async def _letters(self, ids: Sequence[str]) -> list[DeadLetter]:
        """Those that are there. The body of a run's letter is the run's input."""
        rows = await self._ask([("HMGET", f"letter:{id}", "m", "b") for id in ids])
        stored = [codec.letter(id, *row) for id, row in zip(ids, rows, strict=True) if row[0]]
        runs = [letter.run for letter in stored if letter.run]
        answers = await self._ask([("HGET", f"run:{run}", "i") for run in runs])
        inputs = dict(zip(runs, answers, strict=True))
        return [
            msgspec.structs.replace(letter, body=inputs[letter.run] or b"")
            if letter.run
            else letter
            for letter in stored
        ]

    # --- locks and lanes ---

    async def locks(self) -> list[LockInfo]:
        return await self._locks(await self._times())

    async def _locks(self, times: Times) -> list[LockInfo]:
        [names] = await self._ask(
            [("ZRANGEBYSCORE", "locks:held", f"({codec.score(times.mono)}", "+inf")]
        )
        rows = await self._ask([("HGET", "locks", name) for name in names])
        held = [codec.lock(n.decode(), row) for n, row in zip(names, rows, strict=True) if row]
        return [
            LockInfo(lock.name, lock.epoch, lock.owner, lock.acquired, until - times.mono)
            for lock in sorted(held, key=lambda lock: lock.name)
            if lock.token is not None and (until := lock.lease_until) is not None
        ]

    async def lanes(self) -> list[LaneInfo]:
        times = await self._times()
        [flat] = await self._ask([("HGETALL", "lanes")])
        defined = {name.decode(): unpack(2, value) for name, value in codec.pairs(flat)}
        numbers: dict[tuple[str, str], int] = {}
        for _, _, lane, state, number in await lists.counts(self._ask, RunFilter()):
            numbers[lane, state] = numbers.get((lane, state), 0) + number
        busy = {lane for lane, state in numbers if state in ("queued", "running")}
        leaders = {lock.name: lock for lock in await self._locks(times)}
        return [
            await self._lane(Lane(name, *defined.get(name, ())), numbers, leaders, times)
            for name in sorted({*defined, *busy})
        ]

    async def _lane(
        self,
        lane: Lane,
        numbers: dict[tuple[str, str], int],
        leaders: dict[str, LockInfo],
        times: Times,
    ) -> LaneInfo:
        name, delayed, now = lane.name, f"delayed:{lane.name}", codec.score(times.later)
        blocked, waiting, queues, in_line, over = await self._ask(
            [
                ("ZRANGE", f"blocked:{name}", 0, 0),
                ("ZCOUNT", delayed, f"({now}", "+inf"),
                ("ZRANGE", f"queues:{name}", 0, -1),
                ("ZRANGE", f"fifo:{name}", 0, LOOKED_AT),
                ("ZRANGEBYSCORE", delayed, "-inf", now, "LIMIT", 0, LOOKED_AT),
            ]
        )
        heads = [("ZRANGE", f"ready:{name}\0{queue.decode()}", 0, 0) for queue in queues]
        ends = [("ZSCORE", delayed, id) for id in in_line]
        answers = iter(await self._ask([*heads, *ends]))
        ready = [id for _ in heads for id in next(answers)]
        due = [id for id in in_line if int(next(answers) or 0) <= now]
        first = await self._whole(id.decode() for id in {*ready, *due, *over})
        leader = leaders.get(lane.leader_lock)
        return LaneInfo(
            name,
            lane.order,
            lane.head,
            numbers.get((name, "queued"), 0),
            numbers.get((name, "running"), 0),
            leader.owner if leader else None,
            leader.epoch if leader else 0,
            blocked[0].decode() if blocked else None,
            waiting,
            min((run.created for run in first), default=None),
        )

    # --- records and interventions ---

    async def record(self, key: str) -> RecordPage:
        page = await self.records(key, limit=1)
        return RecordPage([record for record in page.records if record.key == key], page.now)

    async def records(self, prefix: str, *, after: str = "", limit: int = 100) -> RecordPage:
        times = await self._times()
        page: list[Record] = []
        low = f"({after}" if after >= prefix else f"[{prefix}"
        high = b"(" + prefix.encode() + b"\xff"  # no text goes on with this byte
        while len(page) < limit:
            limits = ("LIMIT", 0, limit - len(page))
            [keys] = await self._ask([("ZRANGEBYLEX", "records:keys", low, high, *limits)])
            if not keys:
                break
            [rows] = await self._ask([("HMGET", "records", *keys)])
            for key, row in zip(keys, rows, strict=True):
                facts = codec.record(key.decode(), row, times) if row else None
                if facts is not None and facts.is_live(times):
                    page.append(Record(facts.key, facts.value, facts.version, facts.updated))
            low = f"({keys[-1].decode()}"
        return RecordPage(page, times.wall)

    async def audit(self, *, limit: int = 100) -> list[Audit]:
        [entries] = await self._ask([("LRANGE", "audit", 0, limit - 1)]) if limit else [[]]
        return [Audit(*unpack(5, entry)) for entry in entries]


def mark(text: bytes | None) -> MoveMark | None:
    return msgspec.json.decode(text, type=MoveMark) if text else None


def _event_command(member: str) -> tuple[str, ...]:
    """What tells an event of the outbox, and whose it is: see `lua/keys.lua`."""
    name, _, number = member[1:].rpartition("\0")
    if member.startswith("l"):
        return "HMGET", f"letter:{member[1:]}", "e", "m"
    return "HMGET", f"run:{name}", f"e{number}", "s"


def _outbox_event(member: str, packed: bytes | None, owner: bytes) -> Event | None:
    if packed is None:
        return None  # it has gone meanwhile
    if member.startswith("l"):
        name = member[1:]
        return codec.event(name, 1, packed, codec.letter(name, owner, None).tenant, "")
    name, _, number = member[1:].rpartition("\0")
    tenant, pipeline, *_ = unpack(13, owner)
    return codec.event(name, int(number), packed, tenant, pipeline)
