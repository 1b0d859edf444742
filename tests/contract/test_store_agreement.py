"""Two stores, the same random commands, the same clock: they have to agree on every answer and
every read.

`MemoryStore` is the readable meaning of the commands; this is how far we trust that the other means
the same. Few ids, keys and tokens are drawn, so that commands meet one another all the time. Epochs
and terms are drawn as distances from the present ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from msgspec.structs import astuple, replace
from tests import postgres_server
from tests.redis_server import fresh_prefix, shared_server

from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.adapters.redis.store import RedisStore
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.model import commands as c
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event
from holdfast.model.run import ErrorInfo, Run
from holdfast.ports.store import DeadLetter, LaneInfo, RunFilter, Store
from holdfast.testing.clock import ManualClock
from holdfast.testing.contracts.store_topics.harness import check_history

RUNS = ["r1", "r2", "r3", "r4", "r5", "r6"]
KEYS = ["k1", "k1", None, "k2", None, "k2"]
TENANTS = ["acme", "bolt"]
RECORDS, VERSIONS = ["a", "a/b"], ["v1", "v2", "v3"]
TOKENS = ["a", "b"]
LANES = {
    "wide": ("parallel", "skip"),
    "skip": ("fifo", "skip"),
    "block": ("fifo", "block"),
    "keep": ("fifo", "dead-letter"),
}
LETTERS = ["m1", "m2", *(f"run:{run}" for run in RUNS[:4])]

# --- what is drawn ---

runs = st.sampled_from(RUNS)
epochs = st.sampled_from([0, 0, 0, 0, 1, -1])
"""Distance from the run's epoch; 1 hits a run that is claimed in the same batch."""
lanes = st.sampled_from([*LANES, "undefined"])
steps = st.sampled_from(["s", "t"])
keys = st.sampled_from(["", "", "i1", "i2"])
tokens = st.sampled_from(TOKENS)
actors = st.sampled_from(["ann", "bob"])
seconds = st.sampled_from([1.0, 5.0, 20.0])
ttls = st.sampled_from([3.0, 30.0, 300.0])
progress = st.sampled_from(["{}", '{"steps":{"s":{"step":"s","status":"failed"}}}'])
errors = st.sampled_from(
    [msgspec.json.encode(ErrorInfo(n, "it broke")).decode() for n in ("Permanent", "Transient")]
)
COPIED = Checkpoint("s", "", "0", "c", "t", "f", "{}")


def _submit(run: str, unique: bool, **fields: Any) -> c.Submit:
    # What belongs to a request is derived from its id: a repeated request is the same request.
    number = int(run[1])
    return c.Submit(
        run,
        TENANTS[number % len(TENANTS)] if not unique else TENANTS[0],
        "solo" if unique else "report",
        input=f'"{run}"',
        fingerprint=f"f{number % 2}",
        key=KEYS[number - 1],
        unique=unique,
        checkpoints=[COPIED] if number % 3 == 0 else [],
        labels={"user_id": str(number % 2)} if number % 3 else {},
        **fields,
    )


def submits(unique: bool) -> st.SearchStrategy[c.Submit]:
    return st.builds(
        _submit,
        runs,
        st.just(unique),
        lane=lanes,
        priority=st.sampled_from([0, 0, 1, -1]),
        delay=st.sampled_from([0.0, 0.0, 5.0]),
        max_attempts=st.sampled_from([1, 2, 5]),
    )


checkpoints = st.builds(
    c.SaveCheckpoint,
    runs,
    epochs,
    steps,
    keys,
    st.sampled_from(["1", "2"]),
    st.just("c"),
    st.just("t"),
    st.just("f"),
    st.sampled_from(['{"n":1}', '{"n":2}']),
    st.booleans(),
)


def _settle(
    run: str, epoch: int, outcome: Any, last: c.SaveCheckpoint | None, **fields: Any
) -> c.Settle:
    return c.Settle(run, epoch, outcome, last=last, **fields)


settles = st.builds(
    _settle,
    runs,
    epochs,
    st.sampled_from(["succeeded", "failed", "paused", "retry", "handover"]),
    st.none() | checkpoints,
    result=st.just("1"),
    error=errors,
    reason=st.just("because"),
    delay=st.sampled_from([0.0, 5.0]),
    progress=progress,
)

claims = st.builds(
    c.Claim,
    st.sampled_from(["w1", "w2"]),
    lanes,
    st.sampled_from([["report", "solo"], ["report"]]),
    st.sampled_from([1, 2, 9]),
    ttls,
    st.sampled_from([1 << 40, 6]),
    tokens,
    st.sampled_from([0, 0, 0, 1]),
    st.sampled_from(["", "acme", "bolt"]),
)

quarantines = st.builds(c.Quarantine, runs, epochs, steps, keys, st.sampled_from(["bad", "worse"]))
progresses = st.builds(c.SaveProgress, runs, epochs, progress)
log_lines = st.builds(c.LogLine, runs, epochs, st.just("info"), steps, st.sampled_from(["x", "y"]))


def _acquire(name: str, token: str, ttl: float) -> c.Acquire:
    # The token is its owner's name, so that a claim can be aimed at the leader that is shown.
    return c.Acquire(name, token, token, ttl)


lane_locks = st.sampled_from([f"lane:{lane}" for lane in LANES])

common = st.one_of(
    submits(unique=False),
    claims,
    claims,
    checkpoints,
    settles,
    settles,
    st.builds(c.Renew, st.lists(st.tuples(runs, epochs), max_size=4), ttls),
    quarantines,
    progresses,
    log_lines,
    st.builds(c.Cancel, runs, actors, st.sampled_from(["", "enough"])),
    st.builds(c.PauseRun, runs, actors, st.sampled_from(["", "wait"])),
    st.builds(c.Resume, runs, actors, st.sampled_from([1, 5])),
    st.builds(c.Sweep),
    st.builds(c.Prune, st.sampled_from([1.0, 30.0]), st.sampled_from([1.0, 30.0])),
    st.builds(_acquire, lane_locks, tokens, ttls),
    st.builds(c.RenewLocks, st.lists(st.tuples(lane_locks, tokens), max_size=3), ttls),
    st.builds(c.ReleaseLock, lane_locks, tokens),
    st.builds(c.ForceRelease, lane_locks, actors, st.just("stuck")),
    st.builds(
        c.Bury, st.sampled_from(LETTERS[:2]), st.just("bus"), st.just("bad"), st.just(b"\x00\xff")
    ),
    st.builds(c.MarkRedriven, st.sampled_from(LETTERS), actors),
    st.builds(c.Discard, st.sampled_from(LETTERS), actors, st.just("known")),
    st.builds(c.LimitTenant, st.sampled_from(TENANTS), st.sampled_from([None, 0, 1, 2]), actors),
    st.builds(
        c.PutRecord,
        st.sampled_from(RECORDS),
        st.sampled_from(["1", "2"]),
        st.sampled_from(VERSIONS),
        st.none() | st.sampled_from(VERSIONS),
        st.none() | ttls,
    ),
    st.builds(c.DeleteRecord, st.sampled_from(RECORDS), st.sampled_from(VERSIONS)),
)

alone = st.one_of(common, common, common, submits(unique=True))
"""Unique slots tie different runs together, which a batch may apply in any order."""

one_by_one = st.lists(
    seconds | st.one_of([st.lists(alone, min_size=1, max_size=1)] * 6),
    min_size=25,
    max_size=40,
)


def _about(run: str, command: Any) -> c.Command:
    return replace(command, run=run)


worker_commands = st.one_of(checkpoints, checkpoints, settles, progresses, log_lines, quarantines)
busy = runs.flatmap(
    lambda run: st.lists(
        claims | st.builds(_about, st.just(run), worker_commands), min_size=2, max_size=6
    )
)
"""What one worker sends about one run: batches whose commands depend on one another."""

mixed = st.lists(common, min_size=1, max_size=5)
in_batches = st.lists(st.one_of(seconds, busy, busy, mixed, mixed), min_size=25, max_size=40)

Step = float | list[c.Command]

# --- how they are compared ---


class Aim:
    """Points drawn commands at something that is there: most hit, some just miss."""

    def __init__(self, runs: list[Run], lanes: list[LaneInfo], letters: list[DeadLetter]) -> None:
        self._runs = runs
        self._epochs = {run.id: run.epoch for run in runs}
        self._lanes = {lane.name: lane for lane in lanes}
        self._letters = [letter.id for letter in letters]

    @classmethod
    async def at(cls, store: Store) -> Aim:
        return cls(await store.runs(RunFilter()), await store.lanes(), await store.dead_letters())

    def __call__(self, command: Any) -> c.Command:
        match command:
            case c.Claim():
                return self._claim(command)
            case c.Renew():
                return replace(command, held=[self._fenced(*lease) for lease in command.held])
            case c.SaveCheckpoint() | c.Quarantine() | c.SaveProgress() | c.LogLine() | c.Settle():
                return self._write(command)
            case c.Resume():
                return replace(command, run=self._run(command.run, "paused", "failed"))
            case c.Discard() | c.MarkRedriven():
                return replace(command, id=_pick(command.id, LETTERS, self._letters))
            case _:
                return command

    def _claim(self, command: c.Claim) -> c.Claim:
        name = _pick(
            command.lane, LANES, [lane.name for lane in self._lanes.values() if lane.queued]
        )
        lane = self._lanes.get(name)
        leader = (
            lane.leader if lane and lane.leader and command.token == TOKENS[0] else command.token
        )
        return replace(
            command, lane=name, token=leader, term=command.term + (lane.term if lane else 0)
        )

    def _write(self, command: Any) -> c.Command:
        run, epoch = self._fenced(command.run, command.epoch)
        command = replace(command, run=run, epoch=epoch)
        last = getattr(command, "last", None)
        return replace(command, last=replace(last, run=run, epoch=epoch)) if last else command

    def _fenced(self, run: str, distance: int) -> tuple[str, int]:
        run = self._run(run, "queued" if distance > 0 else "running")
        return run, self._epochs.get(run, 0) + distance

    def _run(self, choice: str, *states: str) -> str:
        return _pick(choice, RUNS, [run.id for run in self._runs if run.state in states])


def _pick(choice: str, pool: Iterable[str], present: list[str]) -> str:
    """What was drawn if it is present, or else something that is, or else what was drawn."""
    if choice in present or choice not in pool or not present:
        return choice
    return present[list(pool).index(choice) % len(present)]


def sqlite(clock: ManualClock) -> Store:
    return SqliteStore(":memory:", clock, threads=False)


def postgres(clock: ManualClock) -> Store:
    return PostgresStore(
        postgres_server.shared_server().url(postgres_server.emptied_schema()), clock
    )


def redis(clock: ManualClock) -> Store:
    return RedisStore(shared_server().url(prefix=fresh_prefix()), test_clock=clock)


class Pair:
    """The two stores and their clock."""

    def __init__(self, make_store: Callable[[ManualClock], Store]) -> None:
        self.clock = ManualClock()
        self.stores: list[Store] = [MemoryStore(self.clock), make_store(self.clock)]

    async def execute(self, script: Sequence[Step]) -> None:
        for store in self.stores:
            await store.open()
        try:
            await self.apply([c.DefineLane(name, *kind) for name, kind in LANES.items()])
            await self.apply([_acquire(f"lane:{name}", TOKENS[0], 300.0) for name in LANES])
            await self.apply(
                [_submit(run, False, lane=lane) for run, lane in zip(RUNS[2:], LANES, strict=True)]
            )
            for step in script:
                await self.take(step)
                await self.compare()
        finally:
            for store in self.stores:
                await store.close()

    async def take(self, step: Step) -> None:
        match step:
            case float():
                self.clock.advance(step)
            case _:
                aim = await Aim.at(self.stores[0])
                await self.apply([aim(command) for command in step])

    async def apply(self, batch: list[c.Command]) -> None:
        replies = [await store.apply(batch) for store in self.stores]
        note(f"{batch} -> {replies[0]}")
        alone = len(batch) == 1
        assert shown(replies[0], self.clock, alone) == shown(replies[1], self.clock, alone), batch

    async def compare(self) -> None:
        memory, other = [shown(await self.everything(store), self.clock) for store in self.stores]
        assert memory == other

    async def everything(self, store: Store) -> dict[str, Any]:
        runs = await store.runs(RunFilter())
        for run in runs:
            check_history(run, await store.history(run.id))
        return {
            "runs": runs,
            "over": sorted(run.id for run in await store.over(RUNS)),
            "unique": sorted(run.id for run in await store.unique_runs()),
            "count": await store.count(RunFilter()),
            "waiting": [run.id for run in await store.runs(RunFilter(state="queued", lane="wide"))],
            "a tenant's": await store.count(RunFilter(tenant="acme", pipeline="report")),
            "history": [await store.history(run.id) for run in runs],
            "checkpoints": [await store.checkpoints(run.id) for run in runs],
            "quarantined": [await store.quarantined(run.id) for run in runs],
            "logs": [await store.logs(run.id) for run in runs],
            "dead letters": await store.dead_letters(open_only=False),
            "open letters": [letter.id for letter in await store.dead_letters(tenant="acme")],
            "locks": await store.locks(),
            "lanes": await store.lanes(),
            "audit": sorted(map(astuple, await store.audit())),  # a batch has no order of its own
            "labels": await store.runs(RunFilter(tenant="acme", labels={"user_id": "1"})),
            "records": (await store.records("")).records,
            "outbox": sorted(await store.outbox(0, 10_000), key=lambda event: event.id),
        }


def shown(value: Any, clock: ManualClock, alone: bool = True) -> Any:
    """A value without what the contract leaves open."""
    match value:
        case dict():
            return {key: shown(part, clock, alone) for key, part in value.items()}
        case list():
            return [shown(part, clock, alone) for part in value]
        case c.Submitted() if not alone:
            return replace(value, state="")  # a run that was there may go on within the batch
        case Event():
            return (
                value.id,
                value.type,
                value.at,
                msgspec.json.decode(value.data),
                value.tenant,
                value.pipeline,
            )
        case Run():
            # A time that has come is as good as none; the order of acceptance is compared by the
            # list itself.
            waits = value.available is not None and value.available > clock.now()
            return replace(value, seq=0, available=value.available if waits else None)
        case _:
            return value


often = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seldom = settings(often, max_examples=15)
"""For a server, where each example is some six hundred round trips."""

fast_stores = pytest.mark.parametrize("make_store", [sqlite, redis])


@fast_stores
@often
@given(script=one_by_one)
def test_they_agree_on_every_command(
    make_store: Callable[[ManualClock], Store], script: list[Step]
) -> None:
    asyncio.run(Pair(make_store).execute(script))


@fast_stores
@often
@given(script=in_batches)
def test_they_agree_on_batches(
    make_store: Callable[[ManualClock], Store], script: list[Step]
) -> None:
    asyncio.run(Pair(make_store).execute(script))


@seldom
@given(script=one_by_one)
def test_postgres_agrees_on_every_command(script: list[Step]) -> None:
    asyncio.run(Pair(postgres).execute(script))


@seldom
@given(script=in_batches)
def test_postgres_agrees_on_batches(script: list[Step]) -> None:
    asyncio.run(Pair(postgres).execute(script))
