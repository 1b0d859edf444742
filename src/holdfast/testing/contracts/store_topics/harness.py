"""What every store test gets: a fresh store, a clock that is moved by hand, and short calls for
common commands.

After each test the history of every run is checked: gap-free, along the declared transitions, up
to the state that the run is in. So each test of the suite is also a test of that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from holdfast.model.commands import (
    Acquire,
    Acquired,
    Claim,
    Claimed,
    Command,
    DefineLane,
    R,
    SaveCheckpoint,
    Settle,
    Submit,
    Submitted,
    Sweep,
)
from holdfast.model.event import STATE_AFTER, Event, EventType, history_gaps
from holdfast.model.run import TRANSITIONS, ErrorInfo, Run, RunState
from holdfast.ports.store import DeadLetter, RunFilter, Store
from holdfast.testing.clock import ManualClock

TTL = 30.0


class StoreTopics:
    """What a suite needs from its adapter."""

    def make_store(self, clock: ManualClock) -> Store:
        """A store that is empty at the start of each test and uses the given clock.

        Where the adapter declares `shared`, a second call in the same test opens the same data once
        more."""
        raise NotImplementedError("say how to make the store under test")

    async def run_test(self, test: Callable[[Any, StoreHarness], Awaitable[None]]) -> None:
        clock = ManualClock()
        harness = StoreHarness(self.make_store(clock), clock, self.make_store)
        await harness.store.open()
        try:
            await test(self, harness)
            await harness.check_histories()
        finally:
            await harness.store.close()


def store_test(test: Callable[[Any, StoreHarness], Awaitable[None]]) -> Callable[[Any], None]:
    """Turn `async def test_…(self, harness)` into a test that runs on a fresh store."""

    def run_test(self: StoreTopics) -> None:
        asyncio.run(self.run_test(test))

    # Not functools.wraps: pytest would look through it and take `harness` for a fixture.
    run_test.__name__, run_test.__qualname__, run_test.__doc__ = (
        test.__name__,
        test.__qualname__,
        test.__doc__,
    )
    return run_test


class StoreHarness:
    """A store and its clock."""

    def __init__(
        self, store: Store, clock: ManualClock, make_store: Callable[[ManualClock], Store]
    ) -> None:
        self.store = store
        self.clock = clock
        self.make_store = make_store

    # --- doing ---

    async def apply(self, *commands: Command[Any]) -> list[Any]:
        """Apply commands in one batch. Replies are untyped: each test knows its own."""
        return await self.store.apply(commands)

    async def do(self, command: Command[R]) -> R:
        return (await self.store.apply([command]))[0]

    async def submit(self, id: str = "r1", **fields: Any) -> Submitted:
        return await self.do(a_submit(id, **fields))

    async def claim(self, limit: int = 1, **fields: Any) -> list[Claimed]:
        return await self.do(a_claim(limit=limit, **fields))

    def claim_command(self, **fields: Any) -> Claim:
        return a_claim(**fields)

    async def start(self, id: str = "r1", **fields: Any) -> int:
        """Submit a run and claim it; its epoch."""
        await self.submit(id, **fields)
        return await self.restart(id, lane=fields.get("lane", "default"))

    async def restart(self, id: str = "r1", **fields: Any) -> int:
        """Claim the run that comes next, which has to be this one; its epoch."""
        claimed = await self.claim(**fields)
        assert [claim.run for claim in claimed] == [id]
        return claimed[0].epoch

    async def settle(self, id: str, epoch: int, outcome: Any, **fields: Any) -> Any:
        if outcome in ("failed", "retry"):
            fields.setdefault("error", an_error("it broke"))
        return await self.do(Settle(id, epoch, outcome, **fields))

    async def fail(self, id: str = "r1", **fields: Any) -> None:
        """Submit a run, claim it and let it fail."""
        assert await self.settle(id, await self.start(id, **fields), "failed") is None

    async def lose_worker(self) -> list[tuple[str, str]]:
        """Let all leases end, and sweep."""
        self.clock.advance(TTL)
        return await self.do(Sweep())

    # --- fifo lanes ---

    async def fifo(self, lane: str = "line", head: str = "dead-letter") -> Leader:
        """Define a fifo lane and lead it."""
        assert await self.do(DefineLane(lane, "fifo", head)) == "fifo"
        return await self.lead(lane)

    async def lead(self, lane: str = "line", by: str = "t1") -> Leader:
        reply = await self.do(Acquire(f"lane:{lane}", by, f"owner of {by}", 10_000.0))
        assert isinstance(reply, Acquired)
        return Leader(self, lane, by, reply.epoch)

    # --- looking ---

    async def run(self, id: str = "r1") -> Run:
        run = await self.store.run(id)
        assert run is not None
        return run

    async def state(self, id: str = "r1") -> str:
        return (await self.run(id)).state

    async def events(self, id: str = "r1") -> list[str]:
        return [event.type for event in await self.store.history(id)]

    async def last_event(self, id: str = "r1") -> tuple[str, Any]:
        event = (await self.store.history(id))[-1]
        return event.type, msgspec.json.decode(event.data)

    async def dead_letter(self, id: str = "r1") -> DeadLetter:
        letter = await self.store.dead_letter(f"run:{id}")
        assert letter is not None
        return letter

    async def everything(self, id: str = "r1") -> tuple[Any, ...]:
        """All that the store says about a run: to show that something changed nothing."""
        store = self.store
        return (
            await store.run(id),
            await store.history(id),
            await store.checkpoints(id),
            await store.quarantined(id),
            await store.logs(id),
            await store.dead_letter(f"run:{id}"),
        )

    async def check_histories(self) -> None:
        for run in await self.store.runs(RunFilter(), limit=100_000):
            check_history(run, await self.store.history(run.id))


class Leader:
    """The holder of a fifo lane's lock."""

    def __init__(self, harness: StoreHarness, lane: str, token: str, term: int) -> None:
        self._harness = harness
        self.lane = lane
        self.token = token
        self.term = term

    def claim_command(self, **fields: Any) -> Claim:
        return a_claim(
            **{"lane": self.lane, "token": self.token, "term": self.term, "limit": 10, **fields}
        )

    async def claim(self, **fields: Any) -> list[Claimed]:
        return await self._harness.do(self.claim_command(**fields))

    async def start(self, id: str) -> int:
        """Claim the head, which has to be this run; its epoch."""
        claimed = await self.claim()
        assert [claim.run for claim in claimed] == [id]
        return claimed[0].epoch


def check_history(run: Run, events: list[Event]) -> None:
    """Numbered without gaps, and each state reached from one that leads to it."""
    assert history_gaps(events) == []
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[0].type == EventType.QUEUED
    state = RunState.QUEUED
    for event in events[1:]:
        after = STATE_AFTER.get(event.type)
        if after is None:
            assert state is RunState.RUNNING, f"{event.id}: {event.type} while {state}"
            continue
        assert after in TRANSITIONS[state], f"{event.id}: {event.type} while {state}"
        state = RunState(after)
    assert state == run.state


# --- commands with defaults for what a test does not vary ---


def a_submit(id: str = "r1", **fields: Any) -> Submit:
    defaults = {
        "tenant": "acme",
        "pipeline": "report",
        "lane": "default",
        "input": "{}",
        "fingerprint": "f1",
    }
    return Submit(id, **{**defaults, **fields})


def a_claim(**fields: Any) -> Claim:
    defaults = {
        "worker": "w1",
        "lane": "default",
        "pipelines": ["report", "solo"],
        "limit": 1,
        "ttl": TTL,
    }
    return Claim(**{**defaults, **fields})


def a_checkpoint(
    run: str, epoch: int, step: str = "s", key: str = "", **fields: Any
) -> SaveCheckpoint:
    defaults = {
        "value": "1",
        "checksum": "c",
        "schema": "t",
        "fingerprint": "f",
        "record": '{"n":1}',
    }
    return SaveCheckpoint(run, epoch, step, key, **{**defaults, **fields})


def an_error(message: str, name: str = "Permanent") -> str:
    return msgspec.json.encode(ErrorInfo(name, message)).decode()
