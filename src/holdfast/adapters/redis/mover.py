"""Moving what is under a prefix: what belongs to a run is written first, then a script puts the run
where it belongs.

A run counts as there when the script has been at it, so whatever an interrupted move has left of
one is written again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import msgspec

from holdfast.adapters.redis import reads, server
from holdfast.adapters.redis.link import examine, find_master
from holdfast.adapters.redis.reads import epoch_of, packed, unpack
from holdfast.adapters.redis.scripts import mover_scripts
from holdfast.adapters.redis.store import RedisStore
from holdfast.adapters.redis.wire import Argument, ReplyError, ask, ask_all
from holdfast.model.clock import Clock
from holdfast.model.lane import Lane
from holdfast.ports.mover import (
    PAGE_BYTES,
    AuditRecord,
    Holder,
    Kind,
    LockEpoch,
    Mark,
    Numbers,
    Page,
    Quarantined,
    RunRecord,
    Standing,
)
from holdfast.ports.store import DeadLetter, StoredLog

Fields = list[Argument]
AT_ONCE = 20
"""Runs that are asked for in one go."""
FIELDS = 400
"""Names and values of one command."""
DRAINED = 1000


class RedisMover(RedisStore):
    """A `Mover` of a store on a server: the store itself, whatever mark it carries."""

    def __init__(self, url: str, *, test_clock: Clock | None = None) -> None:
        super().__init__(url, test_clock=test_clock)
        self._own = mover_scripts("clock_of_test" if test_clock else "clock")

    async def _refuse_marked(self) -> None:
        """A mover may use it all the same."""

    async def exists(self) -> bool:
        await examine(self.address)
        try:
            wire = await find_master(self.address)
            try:
                return await ask(wire, "HGET", self._meta, "schema") is not None
            finally:
                wire.close()
        except (OSError, ReplyError) as error:
            raise server.explain(error, self.address, opening=True) from error

    async def _act(self, script: str, name: str, given: Any = None) -> Any:
        """What the script answers."""
        link = self._link()
        arguments = (
            self.address.prefix,
            self._me,
            self._documents,
            name,
            reads.pack(given),
            *self._time(),
        )
        try:
            answer = await link.run(
                await link.command_wire(), self._own[script], self._meta, *arguments
            )
        except (OSError, ReplyError) as error:
            raise server.explain(error, self.address) from error
        return msgspec.msgpack.decode(answer)

    async def _ask_all(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        try:
            return await ask_all(await self._link().command_wire(), commands)
        except (OSError, ReplyError) as error:
            raise server.explain(error, self.address) from error

    # --- the mark ---

    async def standing(self) -> Standing:
        mark = reads.mark(await self._ask("HGET", self._meta, "mark"))
        used, runs, last_run, seq, position, confirmed, _, holders = await self._act(
            "holding", "standing"
        )
        held = [Holder(what, who) for _, _, what, who in sorted(holders)]
        return Standing(
            mark, not used, runs, Numbers(seq, position, confirmed), last_run or None, held
        )

    async def hold(self, mark: Mark) -> None:
        text = msgspec.json.encode(mark).decode()
        arriving = {"sent": mark.sent} if mark.state == "arriving" else {}
        await self._act("holding", "hold", {"mark": text, "held": mark.meaning, **arriving})

    async def release(self) -> None:
        await self._ask("HDEL", self._meta, "mark", "held")

    # --- reading ---

    async def export(self, kind: Kind, after: str | None, limit: int) -> Page:
        if kind == "runs":
            return await self._export_runs(after, limit)
        return await EXPORT[kind](self, int(after or 0), limit)

    async def _export_runs(self, after: str | None, limit: int) -> Page:
        *_, later, _ = await self._act("holding", "standing")
        ids = await self._ids(await self._number(after), limit)
        found: list[RunRecord] = []
        size = 0
        for start in range(0, len(ids), AT_ONCE):
            if size > PAGE_BYTES:
                break
            records = await asyncio.gather(
                *[self._record(id, later) for id in ids[start : start + AT_ONCE]]
            )
            found += [record for record in records if record is not None]
            size += sum(record.size for record in found[-AT_ONCE:])
        more = found and await self._ids(found[-1].run.seq, 1)
        return Page(found, found[-1].run.id if more else None)

    async def _number(self, id: str | None) -> int:
        run = await self.run(id) if id else None
        return run.seq if run else 0

    async def _ids(self, after: int, limit: int) -> list[str]:
        """The runs that were accepted next. Some of them may be gone: what is left of them is a
        name in a group."""
        entries = await self._ask(
            "XRANGE", self._key("runs"), f"{after + 1}-0", "+", "COUNT", limit
        )
        numbered = [named for place, (_, group) in entries for named in _members(place, group)]
        return [id for number, id in numbered if number > after][:limit]

    async def _record(self, id: str, later: float) -> RunRecord | None:
        row = await self._read("run", id)
        if not row:
            return None
        run, spec, rest = reads.run(row), unpack(10, row[0]), unpack(7, row[2])
        aside = await self._ask("LRANGE", self._key(f"quarantine:{id}"), 0, -1)
        return RunRecord(
            run,
            (row[4] or b"{}").decode(),
            bool(spec[5]),
            bool(spec[9]),
            bool(rest[6]),
            max(0.0, rest[3] - later) if run.available is not None else 0.0,
            await self.checkpoints(id),
            [Quarantined(*unpack(5, bad)) for bad in aside],
            await self.history(id),
            await self.logs(id, limit=1 << 40),
            await self.dead_letter(f"run:{id}"),
        )

    async def _export_letters(self, after: int, limit: int) -> Page:
        ids = await self._ask("ZRANGE", self._key("letters:all"), after, after + limit - 1)
        letters = [await self.dead_letter(id.decode()) for id in ids]
        messages = [letter for letter in letters if letter is not None and letter.run is None]
        return Page(messages, str(after + limit) if len(ids) == limit else None)

    async def _export_audit(self, after: int, limit: int) -> Page:
        found = await self._ask("LRANGE", self._key("audit"), -(after + limit), -(after + 1))
        entries = [
            AuditRecord(number, *unpack(5, entry))
            for number, entry in enumerate(reversed(found), after + 1)
        ]
        return Page(entries, str(after + limit) if len(found) == limit else None)

    async def _export_lanes(self, after: int, limit: int) -> Page:
        return await self._export_hash(
            "lanes", lambda name, value: Lane(name, *unpack(2, value)), after, limit
        )

    async def _export_locks(self, after: int, limit: int) -> Page:
        return await self._export_hash(
            "locks", lambda name, value: LockEpoch(name, epoch_of(value)), after, limit
        )

    async def _export_hash(
        self, key: str, typed: Callable[[str, bytes], Any], after: int, limit: int
    ) -> Page:
        flat = await self._ask("HGETALL", self._key(key))
        pairs = sorted(zip(flat[::2], flat[1::2], strict=True))
        records = [typed(name.decode(), value) for name, value in pairs[after : after + limit]]
        return Page(records, str(after + limit) if len(pairs) > after + limit else None)

    # --- taking in ---

    async def adopt(self, kind: Kind, records: Sequence[Any]) -> None:
        await ADOPT[kind](self, records)

    async def _adopt_lanes(self, lanes: Sequence[Lane]) -> None:
        for lane in lanes:
            await self._ask("HSET", self._key("lanes"), lane.name, packed(lane.order, lane.head))

    async def _adopt_locks(self, locks: Sequence[LockEpoch]) -> None:
        await self._act(
            "filling", "locks", [value for lock in locks for value in (lock.name, lock.epoch)]
        )

    async def _adopt_letters(self, letters: Sequence[DeadLetter]) -> None:
        await self._ask_all([command for letter in letters for command in self._letter(letter)])

    async def _adopt_audit(self, entries: Sequence[AuditRecord]) -> None:
        known = await self._ask("LLEN", self._key("audit"))
        fresh = [
            packed(e.at, e.actor, e.action, e.target, e.reason) for e in entries if e.number > known
        ]
        if fresh:
            await self._ask("LPUSH", self._key("audit"), *fresh)

    async def _adopt_runs(self, records: Sequence[RunRecord]) -> None:
        there = await self._ask_all(
            [("HEXISTS", self._key(f"run:{record.run.id}"), "s") for record in records]
        )
        fresh = [record for record, known in zip(records, there, strict=True) if not known]
        await self._ask_all([command for record in fresh for command in self._belongings(record)])
        await self._act("filling", "runs", [_placed(record) for record in fresh])

    def _belongings(self, record: RunRecord) -> Iterator[Sequence[Argument]]:
        """All of a run but the run itself."""
        id = record.run.id
        fields = _fields(record)
        for start in range(0, len(fields), FIELDS):
            yield "HSET", self._key(f"run:{id}"), *fields[start : start + FIELDS]
        yield from _list(self._key(f"log:{id}"), [_line(line) for line in record.logs])
        aside = [
            packed(bad.step, bad.key, bad.reason, bad.value, bad.at) for bad in record.quarantine
        ]
        yield from _list(self._key(f"quarantine:{id}"), aside)
        for step, count in Counter(bad.step for bad in record.quarantine).items():
            yield "SET", f"{self.address.prefix}pipeline_validation_failure:{id}:{step}", count
        if record.letter is not None:
            yield from self._letter(record.letter)

    def _letter(self, letter: DeadLetter) -> Iterator[Sequence[Argument]]:
        attributes = msgspec.json.encode(letter.attributes).decode()
        about = (
            letter.source,
            letter.reason,
            attributes,
            letter.tenant,
            letter.created,
            letter.run,
            letter.closed,
        )
        yield (
            "HSET",
            self._key(f"letter:{letter.id}"),
            "m",
            packed(*about, letter.resolution),
            "b",
            letter.body,
        )
        for kind in ("all", "open") if letter.closed is None else ("all",):
            for index in (f"letters:{kind}", f"letters:{kind}:{letter.tenant}"):
                yield "ZADD", self._key(index), repr(letter.created), letter.id

    async def go_on_from(self, numbers: Numbers) -> None:
        await self._act("filling", "numbers", (numbers.seq, numbers.position, numbers.confirmed))
        while await self._act("filling", "drain", DRAINED):
            pass


def _members(place: bytes, group: bytes) -> Iterator[tuple[int, str]]:
    """The runs of an entry of the stream with their numbers: its id is the last one's."""
    ids = msgspec.msgpack.decode(group)
    first = int(place.split(b"-")[0]) - len(ids) + 1
    return enumerate(ids, first)


def _fields(record: RunRecord) -> Fields:
    run = record.run
    fields: Fields = ["i", run.input, "p", record.progress]
    fields += ["o", run.result] if run.result is not None else []
    fields += ["e", msgspec.json.encode(run.error)] if run.error is not None else []
    for event in record.history:
        fields += [f"e{event.seq}", packed(event.type, event.at, event.data, event.position)]
    for c in record.checkpoints:
        value = packed(c.value, c.checksum, c.schema, c.fingerprint, c.record, c.epoch)
        fields += [f"c{c.step}\0{c.key}", value]
    return fields


def _line(line: StoredLog) -> bytes:
    return packed(line.at, line.level, line.step, line.message, line.fields)


def _list(key: str, entries: list[bytes]) -> Iterator[Sequence[Argument]]:
    """A list anew."""
    if entries:
        yield "DEL", key
    for start in range(0, len(entries), FIELDS):
        yield "RPUSH", key, *entries[start : start + FIELDS]


def _placed(record: RunRecord) -> dict[str, Any]:
    """What the script has to know of a run. What it is not told is nil."""
    run = record.run
    about = {
        "id": run.id, "tenant": run.tenant, "pipeline": run.pipeline, "lane": run.lane, "seq": run.seq,
        "state": reads.STATES.index(run.state) + 1, "priority": run.priority, "key": run.key,
        "fingerprint": run.fingerprint, "parent": run.parent, "epoch": run.epoch, "attempts": run.attempts,
        "limit": run.attempt_limit, "worker": run.worker, "created": run.created, "available": run.available,
        "started": run.started, "finished": run.finished, "reason": run.reason, "unique": record.unique,
        "inherits": record.inherits, "holds": record.holds_lane, "delay": record.delay,
        "bad": len(record.quarantine), "events": [event.position for event in record.history],
    }  # fmt: skip
    return {name: value for name, value in about.items() if value is not None}


EXPORT: dict[str, Callable[[RedisMover, int, int], Coroutine[Any, Any, Page]]] = {
    "lanes": RedisMover._export_lanes,
    "locks": RedisMover._export_locks,
    "letters": RedisMover._export_letters,
    "audit": RedisMover._export_audit,
}

ADOPT: dict[str, Callable[[RedisMover, Sequence[Any]], Coroutine[Any, Any, None]]] = {
    "lanes": RedisMover._adopt_lanes,
    "locks": RedisMover._adopt_locks,
    "letters": RedisMover._adopt_letters,
    "audit": RedisMover._adopt_audit,
    "runs": RedisMover._adopt_runs,
}
