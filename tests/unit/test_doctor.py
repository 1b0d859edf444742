"""What `holdfast doctor` says about a store that works and about runs that do not get on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.findings import gathered, look, troubles

from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.records import StoreRecords
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.engine import cursors
from holdfast.errors import ConfigurationError
from holdfast.model.commands import Acquire, DefineLane, Held, ReleaseLock
from holdfast.model.replies import Changed, Stored
from holdfast.ports.health import (
    Finding,
    Findings,
    clock_difference,
    make_finding,
    open_air,
    round_trip,
)
from holdfast.services import doctor
from holdfast.testing.clock import ManualClock
from holdfast.testing.contracts.store_topics.harness import StoreHarness, a_submit


def harness(
    story: Callable[[StoreHarness], Awaitable[None]], *, after: float = 0, bus: bool = False
) -> dict[str, Finding]:
    """What is found about the runs some seconds after a story."""

    async def run() -> dict[str, Finding]:
        clock = ManualClock()
        store = MemoryStore(clock)
        await store.open()
        await story(StoreHarness(store, clock, MemoryStore))
        return await gathered(doctor.runs(store, has_bus=bus, now=clock.now() + after))

    return asyncio.run(run())


async def nothing(harness: StoreHarness) -> None:
    """An empty store."""


async def one_queued(harness: StoreHarness) -> None:
    await harness.submit("r1")


async def one_running(harness: StoreHarness) -> None:
    await harness.start("r1")
    await harness.submit("r2")


async def one_failed(harness: StoreHarness) -> None:
    await harness.fail("r1")


# --- runs -----------------------------------------------------------------------------------------


def test_an_empty_store_has_no_troubles() -> None:
    assert troubles(harness(nothing, bus=True)) == {}


def test_a_run_that_nobody_takes_is_a_warning_after_a_minute() -> None:
    assert troubles(harness(one_queued, after=30)) == {}
    findings = harness(one_queued, after=90)
    assert troubles(findings) == {"workers": "warn"}
    assert "one for 1 min 30 s" in findings["workers"].seen


def test_a_backlog_is_no_trouble_while_somebody_works() -> None:
    assert troubles(harness(one_running, after=90)) == {}


def test_a_run_that_waits_for_its_time_is_no_trouble() -> None:
    async def delayed(harness: StoreHarness) -> None:
        await harness.submit("r1", delay=3600.0)

    assert troubles(harness(delayed, after=90)) == {}


def test_an_open_dead_letter_is_a_warning() -> None:
    findings = harness(one_failed, after=7200)
    assert troubles(findings) == {"dead letters": "warn"}
    assert "1 open, the oldest for 2 h" in findings["dead letters"].seen


def test_a_fifo_lane_without_a_leader_is_a_warning() -> None:
    async def waiting(harness: StoreHarness) -> None:
        await harness.do(DefineLane("line", "fifo", "block"))
        await harness.submit("r1", lane="line")

    findings = harness(waiting)
    assert troubles(findings) == {"lane line": "warn"}
    assert "no leader" in findings["lane line"].seen


def test_a_fifo_lane_that_its_head_blocks_is_a_warning() -> None:
    async def blocked(harness: StoreHarness) -> None:
        leader = await harness.fifo(head="block")
        await harness.submit("r1", lane="line")
        epoch = await leader.start("r1")
        await harness.settle("r1", epoch, "failed", error='{"name":"Permanent","message":"no"}')

    findings = harness(blocked)
    assert "blocked by failed run r1" in findings["lane line"].seen
    assert "holdfast runs resume r1" in findings["lane line"].fix


def test_events_that_do_not_reach_the_bus_are_a_warning() -> None:
    assert troubles(harness(one_running, after=90, bus=True)) == {"outbox": "warn"}


def test_a_projection_that_cannot_go_on_is_a_warning() -> None:
    async def away(harness: StoreHarness) -> None:
        records = StoreRecords(harness.store)
        cursor = await cursors.register(records, "hook", "messages", 0)
        failed = harness.clock.now()
        await cursors.change(records, cursor, error="no answer", failed=failed, failing=True)
        await cursors.register(records, "fine", "messages", 0)

    findings = harness(away, after=90)
    assert troubles(findings) == {"projection hook": "warn"}
    assert findings["projection hook"].seen == "can't go on for 1 min 30 s: no answer"


# --- the trial ------------------------------------------------------------------------------------


def test_a_store_is_tried_and_left_without_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    async def story() -> None:
        findings = await gathered(doctor.trial(lambda: SqliteStore(path)))
        assert troubles(findings) == {}
        assert set(findings) == {"fenced write", "record", "wake-up"}
        store = SqliteStore(path)
        await store.open()
        assert await store.locks() == []
        assert (await store.records("")).records == []
        await store.close()

    asyncio.run(story())


def test_two_doctors_do_not_disturb_each_other() -> None:
    async def story() -> None:
        store = MemoryStore(ManualClock())
        await store.open()
        await store.apply([Acquire(doctor.LOCK, "other", "other", 60.0)])
        assert troubles(await gathered(doctor.trial(lambda: store))) == {}
        [lock] = await store.apply([Acquire(doctor.LOCK, "third", "third", 60.0)])
        assert lock == Held("other", lock.remaining, 1)

    asyncio.run(story())


def test_a_lock_that_does_not_hold_is_a_failure() -> None:
    class Careless(MemoryStore):
        async def apply(self, commands):  # type: ignore[no-untyped-def]
            replies = await super().apply(commands)
            pairs = zip(commands, replies, strict=True)
            return [True if isinstance(command, ReleaseLock) else reply for command, reply in pairs]

    findings = look(doctor.trial(lambda: Careless(ManualClock())))
    assert findings["fenced write"].status == "fail"


def test_a_record_that_anybody_can_write_over_is_a_failure() -> None:
    class Careless(MemoryStore):
        async def apply(self, commands):  # type: ignore[no-untyped-def]
            replies = await super().apply(commands)
            return [Stored("v", 0.0) if isinstance(r, Changed) else r for r in replies]

    findings = look(doctor.trial(lambda: Careless(ManualClock())))
    assert (findings["record"].status, findings["fenced write"].status) == ("fail", "ok")


def test_a_store_that_nobody_hears_is_a_warning(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(doctor, "LATE", 0.05)

    async def story() -> None:
        first, second = MemoryStore(ManualClock()), MemoryStore(ManualClock())
        await first.open()
        await second.open()
        assert (await doctor._wake_up(first, second)).status == "warn"

    asyncio.run(story())


# --- what all share -------------------------------------------------------------------------------


def test_what_breaks_a_check_off_is_a_finding() -> None:
    async def broken(error: Exception) -> Findings:
        yield make_finding("one", "seen")
        raise error

    refused = look(broken(ConfigurationError("this is wrong: change it")))
    assert troubles(refused) == {"usable": "fail"}
    assert troubles(look(broken(ZeroDivisionError("x")))) == {"usable": "fail"}


def test_a_server_far_away_a_wrong_clock_and_an_open_line_are_warnings() -> None:
    assert round_trip([0.001, 0.002, 0.4], 0.1).status == "ok"
    assert round_trip([0.1, 0.2, 0.4], 0.1).status == "warn"
    assert clock_difference(-1.5).status == "ok"
    assert clock_difference(-2.5).seen == "2500 ms behind this host's"
    assert clock_difference(-2.5).status == "warn"
    assert [open_air(*pair).status for pair in [(True, False), (True, True), (False, False)]] == [
        "warn",
        "ok",
        "ok",
    ]


def test_a_submitted_run_is_seen(tmp_path: Path) -> None:
    async def story() -> None:
        store = SqliteStore(tmp_path / "runs.db")
        await store.open()
        await store.apply([a_submit("r1")])
        findings = await gathered(doctor.runs(store, has_bus=False, now=0.0))
        assert findings["runs"].seen == "1 queued"
        await store.close()

    asyncio.run(story())
