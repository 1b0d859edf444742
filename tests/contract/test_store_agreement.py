"""Two stores, the same random commands, the same clock: they have to agree on every answer and every read.

`MemoryStore` is the readable meaning of the commands; this is how far we trust that the other one means the same.
Few ids, keys, tokens and epochs are drawn, so that commands meet one another all the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event
from holdfast.model.run import ErrorInfo, Run
from holdfast.ports import commands as c
from holdfast.ports.store import RunFilter, Store
from holdfast.testing.clock import ManualClock
from holdfast.testing.contracts.store_topics.scene import check_history

RUNS = ["r1", "r2", "r3", "r4", "r5", "r6"]
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
epochs = st.sampled_from([1, 1, 1, 2, 2, 3, 4])
lanes = st.sampled_from([*LANES, "undefined"])
steps = st.sampled_from(["s", "t"])
keys = st.sampled_from(["", "", "i1", "i2"])
tokens = st.sampled_from(TOKENS)
actors = st.sampled_from(["ann", "bob"])
seconds = st.sampled_from([1.0, 5.0, 20.0])
ttls = st.sampled_from([3.0, 10.0, 30.0])
progress = st.sampled_from(["{}", '{"steps":{"s":{"step":"s","status":"failed"}}}'])
errors = st.sampled_from(
    [msgspec.json.encode(ErrorInfo(n, "it broke")).decode() for n in ("Permanent", "Transient")]
)
copied = st.sampled_from([[], [], [Checkpoint("s", "", "0", "c", "t", "f", "{}")]])


def _submit(run: str, unique: bool, **fields: Any) -> c.Submit:
    # The fingerprint belongs to the id: a repeated request is the same request.
    pipeline = "solo" if unique else "report"
    return c.Submit(
        run, "acme", pipeline, input=f'"{run}"', fingerprint=f"f{int(run[1]) % 2}", unique=unique, **fields
    )


def submits(unique: bool) -> st.SearchStrategy[c.Submit]:
    return st.builds(
        _submit,
        runs,
        st.just(unique),
        lane=lanes,
        key=st.sampled_from([None, None, "k1", "k2"]),
        priority=st.sampled_from([0, 0, 1, -1]),
        delay=st.sampled_from([0.0, 0.0, 5.0]),
        max_attempts=st.sampled_from([1, 2, 5]),
        checkpoints=copied,
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


def _settle(run: str, epoch: int, outcome: Any, last: c.SaveCheckpoint | None, **fields: Any) -> c.Settle:
    mine = last and msgspec.structs.replace(last, run=run, epoch=epoch)
    return c.Settle(run, epoch, outcome, last=mine, **fields)


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
    st.sampled_from([1, 1, 2, 3]),
)

lane_locks = st.sampled_from([f"lane:{lane}" for lane in LANES])

common = st.one_of(
    submits(unique=False),
    claims,
    claims,
    checkpoints,
    settles,
    settles,
    st.builds(c.Renew, st.lists(st.tuples(runs, epochs), max_size=4), ttls),
    st.builds(c.Quarantine, runs, epochs, steps, keys, st.sampled_from(["bad", "worse"])),
    st.builds(c.SaveProgress, runs, epochs, progress),
    st.builds(c.LogLine, runs, epochs, st.just("info"), steps, st.sampled_from(["x", "y"])),
    st.builds(c.Cancel, runs, actors, st.sampled_from(["", "enough"])),
    st.builds(c.PauseRun, runs, actors, st.sampled_from(["", "wait"])),
    st.builds(c.Resume, runs, actors, st.sampled_from([1, 5])),
    st.builds(c.Sweep),
    st.builds(c.Prune, st.sampled_from([1.0, 30.0]), st.sampled_from([1.0, 30.0])),
    st.builds(c.Acquire, lane_locks, tokens, st.sampled_from(["w1", "w2"]), ttls),
    st.builds(c.RenewLocks, st.lists(st.tuples(lane_locks, tokens), max_size=3), ttls),
    st.builds(c.ReleaseLock, lane_locks, tokens),
    st.builds(c.ForceRelease, lane_locks, actors, st.just("stuck")),
    st.builds(c.Bury, st.sampled_from(LETTERS), st.just("bus"), st.just("bad"), st.just(b"\x00\xff")),
    st.builds(c.MarkRedriven, st.sampled_from(LETTERS), actors),
    st.builds(c.Discard, st.sampled_from(LETTERS), actors, st.just("known")),
)

alone = st.one_of(common, common, common, submits(unique=True), st.builds(c.ReadOutbox, st.sampled_from([3, 200])),
                  st.builds(c.ConfirmOutbox, st.integers(0, 20)))  # fmt: skip
"""Unique slots and outbox positions tie different runs together, and a batch may reorder different runs."""

one_by_one = st.lists(seconds | alone.map(lambda command: [command]), min_size=10, max_size=40)
in_batches = st.lists(seconds | st.lists(common, min_size=1, max_size=5), min_size=10, max_size=40)

# --- how they are compared ---


class Pair:
    """The two stores and their clock."""

    def __init__(self, *, positions: bool) -> None:
        self.clock = ManualClock()
        self.stores: list[Store] = [
            MemoryStore(self.clock),
            SqliteStore(":memory:", self.clock, threads=False),
        ]
        self._positions = positions

    async def play(self, script: Sequence[float | list[c.Command]]) -> None:
        for store in self.stores:
            await store.open()
        try:
            await self.apply([c.DefineLane(name, *kind) for name, kind in LANES.items()])
            for step in script:
                await self.take(step)
        finally:
            for store in self.stores:
                await store.close()

    async def take(self, step: float | list[c.Command]) -> None:
        if isinstance(step, float):
            self.clock.advance(step)
        else:
            await self.apply(step)
        await self.compare(self.everything)

    async def apply(self, batch: list[c.Command]) -> None:
        replies = [await store.apply(batch) for store in self.stores]
        note(f"{batch} -> {replies[0]}")
        assert self.shown(replies[0]) == self.shown(replies[1]), batch

    async def compare(self, read: Callable[[Store], Awaitable[Any]]) -> None:
        memory, sqlite = [self.shown(await read(store)) for store in self.stores]
        assert memory == sqlite

    async def everything(self, store: Store) -> dict[str, Any]:
        found = await store.runs(RunFilter())
        for run in found:
            check_history(run, await store.history(run.id))
        return {
            "runs": found,
            "over": sorted(run.id for run in await store.over(RUNS)),
            "count": await store.count(RunFilter()),
            "history": [await store.history(run.id) for run in found],
            "checkpoints": [await store.checkpoints(run.id) for run in found],
            "quarantined": [await store.quarantined(run.id) for run in found],
            "logs": [await store.logs(run.id) for run in found],
            "dead letters": await store.dead_letters(open_only=False),
            "locks": await store.locks(),
            "lanes": await store.lanes(),
            "audit": await store.audit(),
        }

    def shown(self, value: Any) -> Any:
        """A value without what the contract leaves open."""
        match value:
            case dict():
                return {key: self.shown(each) for key, each in value.items()}
            case list():
                return [self.shown(each) for each in value]
            case Event():
                data = msgspec.json.decode(value.data)
                return value.id, value.type, value.at, data, self._positions and value.position
            case Run():
                # A time that has come is as good as none; the order of acceptance is compared by the list itself.
                waits = value.available is not None and value.available > self.clock.now()
                return msgspec.structs.replace(value, seq=0, available=value.available if waits else None)
            case _:
                return value


often = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@often
@given(one_by_one)
def test_both_stores_agree_on_every_command(script: list[float | list[c.Command]]) -> None:
    asyncio.run(Pair(positions=True).play(script))


@often
@given(in_batches)
def test_both_stores_agree_on_batches(script: list[float | list[c.Command]]) -> None:
    asyncio.run(Pair(positions=False).play(script))
