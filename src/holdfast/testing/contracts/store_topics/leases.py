"""Leases: ended by the store's monotonic clock, renewed only while they last."""

from __future__ import annotations

import msgspec

from holdfast.model.commands import PutRecord, Renew, Sweep
from holdfast.model.lease_losses import Blocked, LeaseLosses, record_key
from holdfast.testing.contracts.store_topics.harness import (
    TTL,
    StoreHarness,
    StoreTopics,
    a_checkpoint,
    store_test,
)

YEAR = 365 * 86_400.0


class LeaseTopics(StoreTopics):
    @store_test
    async def test_a_lease_lasts_for_its_ttl(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        harness.clock.advance(TTL - 1.0)
        assert await harness.do(Sweep()) == []
        assert await harness.do(a_checkpoint("r1", epoch)) is None

    @store_test
    async def test_a_lease_lasts_from_the_very_moment_of_its_claim(
        self, harness: StoreHarness
    ) -> None:
        """Whatever the fraction of a second, and however a store rounds it."""
        for moment in (1453.3133587621662, 1488.3133587621662, 2000.1, 123456.78901234567):
            harness.clock.advance_to(moment)
            run = f"r{moment:.0f}"
            epoch = await harness.start(run)
            assert await harness.do(a_checkpoint(run, epoch)) is None
            assert await harness.do(Renew([(run, epoch)], TTL)) == []
            assert await harness.settle(run, epoch, "succeeded") is None

    @store_test
    async def test_a_renewed_lease_lasts_from_the_renewal(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        for _ in range(3):
            harness.clock.advance(TTL - 1.0)
            assert await harness.do(Renew([("r1", epoch)], TTL)) == []
        assert await harness.do(Sweep()) == []
        harness.clock.advance(TTL)
        assert await harness.do(Sweep()) == [("r1", "queued")]

    @store_test
    async def test_renewing_never_shortens_a_lease(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        assert await harness.do(Renew([("r1", epoch)], 1.0)) == []
        harness.clock.advance(TTL - 1.0)
        assert await harness.do(a_checkpoint("r1", epoch)) is None

    @store_test
    async def test_an_ended_lease_is_never_revived(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        harness.clock.advance(TTL)
        assert await harness.do(Renew([("r1", epoch)], TTL)) == [("r1", epoch)]
        assert await harness.do(Sweep()) == [("r1", "queued")]

    @store_test
    async def test_renewing_names_the_lost_runs_and_extends_the_others(
        self, harness: StoreHarness
    ) -> None:
        for run in ("r1", "r2", "r3", "r4"):
            await harness.submit(run)
        leases = [(claim.run, claim.epoch) for claim in await harness.claim(limit=3)]
        await harness.settle(*leases[1], "handover")
        harness.clock.advance(TTL - 1.0)
        lost = await harness.do(Renew([*leases, ("r4", 1), ("nobody", 1)], TTL))
        assert sorted(run for run, _ in lost) == ["nobody", "r2", "r4"]
        harness.clock.advance(TTL - 1.0)
        assert await harness.do(Sweep()) == []

    @store_test
    async def test_renewing_with_an_old_epoch_is_lost(self, harness: StoreHarness) -> None:
        await harness.start("r1")
        await harness.lose_worker()
        epoch = await harness.restart("r1")
        before = await harness.everything("r1")
        assert await harness.do(Renew([("r1", epoch - 1)], 10 * TTL)) == [("r1", epoch - 1)]
        assert await harness.everything("r1") == before
        harness.clock.advance(TTL)
        assert await harness.do(Sweep()) == [("r1", "queued")]

    @store_test
    async def test_a_worker_that_has_a_run_twice_keeps_the_lease_it_really_holds(
        self, harness: StoreHarness
    ) -> None:
        await harness.start("r1")
        await harness.lose_worker()
        epoch = await harness.restart("r1")
        harness.clock.advance(TTL - 1.0)
        assert await harness.do(Renew([("r1", epoch - 1), ("r1", epoch)], TTL)) == [
            ("r1", epoch - 1)
        ]
        harness.clock.advance(TTL - 1.0)
        assert await harness.do(Sweep()) == []

    @store_test
    async def test_renewing_nothing_loses_nothing(self, harness: StoreHarness) -> None:
        assert await harness.do(Renew([], TTL)) == []

    @store_test
    async def test_renewing_writes_no_event(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        before = await harness.everything("r1")
        await harness.do(Renew([("r1", epoch)], TTL))
        assert await harness.everything("r1") == before

    @store_test
    async def test_a_wall_clock_that_jumps_ahead_ends_no_lease(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        harness.clock.jump_wall(YEAR)
        assert await harness.do(Sweep()) == []
        assert await harness.do(Renew([("r1", epoch)], TTL)) == []
        assert await harness.do(a_checkpoint("r1", epoch)) is None

    @store_test
    async def test_a_wall_clock_that_jumps_back_prolongs_no_lease(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        harness.clock.jump_wall(-YEAR)
        assert await harness.do(a_checkpoint("r1", epoch)) is None
        harness.clock.advance(TTL)
        assert await harness.do(Renew([("r1", epoch)], TTL)) == [("r1", epoch)]
        assert await harness.do(Sweep()) == [("r1", "queued")]

    @store_test
    async def test_a_wall_clock_that_jumps_ahead_ends_no_delay(self, harness: StoreHarness) -> None:
        await harness.submit("r1", delay=60.0)
        await harness.settle("r2", await harness.start("r2"), "retry", delay=60.0)
        harness.clock.jump_wall(YEAR)
        assert await harness.claim(limit=9) == []
        harness.clock.advance(60.0)
        assert [claim.run for claim in await harness.claim(limit=9)] == ["r1", "r2"]

    @store_test
    async def test_a_wall_clock_that_jumps_back_prolongs_no_delay(
        self, harness: StoreHarness
    ) -> None:
        await harness.submit("r1", delay=60.0)
        await harness.settle("r2", await harness.start("r2"), "retry", delay=60.0)
        harness.clock.jump_wall(-YEAR)
        harness.clock.advance(60.0)
        assert [claim.run for claim in await harness.claim(limit=9)] == ["r1", "r2"]

    # --- the sweeper ---

    @store_test
    async def test_a_vanished_workers_run_goes_back_to_the_queue(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        await harness.do(a_checkpoint("r1", epoch))
        assert await harness.lose_worker() == [("r1", "queued")]
        assert await harness.last_event("r1") == ("run.worker_lost", {"attempt": 1})
        assert len(await harness.store.checkpoints("r1")) == 1
        assert await harness.restart("r1") == epoch + 1

    @store_test
    async def test_sweeping_twice_changes_nothing_more(self, harness: StoreHarness) -> None:
        await harness.start("r1")
        await harness.lose_worker()
        before = await harness.everything("r1")
        assert await harness.do(Sweep()) == []
        assert await harness.everything("r1") == before

    @store_test
    async def test_attempts_are_bounded_when_every_worker_vanishes(
        self, harness: StoreHarness
    ) -> None:
        await harness.start("r1", max_attempts=2)
        assert await harness.lose_worker() == [("r1", "queued")]
        await harness.restart("r1")
        assert await harness.lose_worker() == [("r1", "failed")]
        run = await harness.run("r1")
        assert run.error is not None
        assert (run.error.name, run.finished) == ("WorkerLost", harness.clock.now())
        assert "2 times" in run.error.message
        type, data = await harness.last_event("r1")
        assert (type, data["error"]["name"]) == ("run.failed", "WorkerLost")
        assert (await harness.dead_letter("r1")).reason.startswith("WorkerLost: ")
        assert await harness.claim() == []

    @store_test
    async def test_a_run_that_blocked_its_workers_fails_with_that_cause(
        self, harness: StoreHarness
    ) -> None:
        await harness.start("r1", max_attempts=2)
        await harness.lose_worker()
        await harness.restart("r1")
        losses = LeaseLosses(2, Blocked(34.2, "clustering"))
        value = msgspec.json.encode(losses).decode()
        await harness.do(PutRecord(record_key("r1"), value, "v1"))
        assert await harness.lose_worker() == [("r1", "failed")]
        error = (await harness.run("r1")).error
        assert error is not None
        assert error.name == "InterpreterBlocked"
        assert "the interpreter was blocked for 34.2 s in step clustering" in error.message
        assert "process of its own" in error.message

    @store_test
    async def test_a_damaged_note_about_lost_leases_stops_no_sweep(
        self, harness: StoreHarness
    ) -> None:
        await harness.start("r1", max_attempts=1)
        await harness.start("r2")
        await harness.do(PutRecord(record_key("r1"), '{"half', "v1"))
        assert sorted(await harness.lose_worker()) == [("r1", "failed"), ("r2", "queued")]
        error = (await harness.run("r1")).error
        assert error is not None
        assert error.name == "WorkerLost"

    @store_test
    async def test_a_sweep_handles_no_more_than_its_limit(self, harness: StoreHarness) -> None:
        for number in range(5):
            await harness.submit(f"r{number}")
        await harness.claim(limit=5)
        harness.clock.advance(TTL)
        assert len(await harness.do(Sweep(limit=3))) == 3
        assert len(await harness.do(Sweep(limit=3))) == 2

    @store_test
    async def test_a_sweep_leaves_the_living_alone(self, harness: StoreHarness) -> None:
        await harness.start("r1")
        harness.clock.advance(TTL / 2)
        await harness.start("r2")
        await harness.submit("r3")
        harness.clock.advance(TTL / 2)
        assert await harness.do(Sweep()) == [("r1", "queued")]
        assert [await harness.state(run) for run in ("r2", "r3")] == ["running", "queued"]
