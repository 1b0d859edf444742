"""Leases: ended by the store's monotonic clock, renewed only while they last."""

from __future__ import annotations

from holdfast.model.commands import Renew, Sweep
from holdfast.testing.contracts.store_topics.scene import (
    TTL,
    Scene,
    StoreTopics,
    a_checkpoint,
    story,
)

YEAR = 365 * 86_400.0


class LeaseTopics(StoreTopics):
    @story
    async def test_a_lease_lasts_for_its_ttl(self, scene: Scene) -> None:
        epoch = await scene.start("r1")
        scene.clock.advance(TTL - 1.0)
        assert await scene.do(Sweep()) == []
        assert await scene.do(a_checkpoint("r1", epoch)) is None

    @story
    async def test_a_renewed_lease_lasts_from_the_renewal(self, scene: Scene) -> None:
        epoch = await scene.start("r1")
        for _ in range(3):
            scene.clock.advance(TTL - 1.0)
            assert await scene.do(Renew([("r1", epoch)], TTL)) == []
        assert await scene.do(Sweep()) == []
        scene.clock.advance(TTL)
        assert await scene.do(Sweep()) == [("r1", "queued")]

    @story
    async def test_renewing_never_shortens_a_lease(self, scene: Scene) -> None:
        epoch = await scene.start("r1")
        assert await scene.do(Renew([("r1", epoch)], 1.0)) == []
        scene.clock.advance(TTL - 1.0)
        assert await scene.do(a_checkpoint("r1", epoch)) is None

    @story
    async def test_an_ended_lease_is_never_revived(self, scene: Scene) -> None:
        epoch = await scene.start("r1")
        scene.clock.advance(TTL)
        assert await scene.do(Renew([("r1", epoch)], TTL)) == [("r1", epoch)]
        assert await scene.do(Sweep()) == [("r1", "queued")]

    @story
    async def test_renewing_names_the_lost_runs_and_extends_the_others(self, scene: Scene) -> None:
        for run in ("r1", "r2", "r3", "r4"):
            await scene.submit(run)
        held = [(found.run, found.epoch) for found in await scene.claim(limit=3)]
        await scene.settle(*held[1], "handover")
        scene.clock.advance(TTL - 1.0)
        lost = await scene.do(Renew([*held, ("r4", 1), ("nobody", 1)], TTL))
        assert sorted(run for run, _ in lost) == ["nobody", "r2", "r4"]
        scene.clock.advance(TTL - 1.0)
        assert await scene.do(Sweep()) == []

    @story
    async def test_renewing_with_an_old_epoch_is_lost(self, scene: Scene) -> None:
        await scene.start("r1")
        await scene.lose_worker()
        epoch = await scene.restart("r1")
        before = await scene.everything("r1")
        assert await scene.do(Renew([("r1", epoch - 1)], 10 * TTL)) == [("r1", epoch - 1)]
        assert await scene.everything("r1") == before
        scene.clock.advance(TTL)
        assert await scene.do(Sweep()) == [("r1", "queued")]

    @story
    async def test_a_worker_that_has_a_run_twice_keeps_the_lease_it_really_holds(
        self, scene: Scene
    ) -> None:
        await scene.start("r1")
        await scene.lose_worker()
        epoch = await scene.restart("r1")
        scene.clock.advance(TTL - 1.0)
        assert await scene.do(Renew([("r1", epoch - 1), ("r1", epoch)], TTL)) == [("r1", epoch - 1)]
        scene.clock.advance(TTL - 1.0)
        assert await scene.do(Sweep()) == []

    @story
    async def test_renewing_nothing_loses_nothing(self, scene: Scene) -> None:
        assert await scene.do(Renew([], TTL)) == []

    @story
    async def test_renewing_writes_no_event(self, scene: Scene) -> None:
        epoch = await scene.start("r1")
        before = await scene.everything("r1")
        await scene.do(Renew([("r1", epoch)], TTL))
        assert await scene.everything("r1") == before

    @story
    async def test_a_wall_clock_that_jumps_ahead_ends_no_lease(self, scene: Scene) -> None:
        epoch = await scene.start("r1")
        scene.clock.jump_wall(YEAR)
        assert await scene.do(Sweep()) == []
        assert await scene.do(Renew([("r1", epoch)], TTL)) == []
        assert await scene.do(a_checkpoint("r1", epoch)) is None

    @story
    async def test_a_wall_clock_that_jumps_back_prolongs_no_lease(self, scene: Scene) -> None:
        epoch = await scene.start("r1")
        scene.clock.jump_wall(-YEAR)
        assert await scene.do(a_checkpoint("r1", epoch)) is None
        scene.clock.advance(TTL)
        assert await scene.do(Renew([("r1", epoch)], TTL)) == [("r1", epoch)]
        assert await scene.do(Sweep()) == [("r1", "queued")]

    @story
    async def test_a_wall_clock_that_jumps_ahead_ends_no_delay(self, scene: Scene) -> None:
        await scene.submit("r1", delay=60.0)
        await scene.settle("r2", await scene.start("r2"), "retry", delay=60.0)
        scene.clock.jump_wall(YEAR)
        assert await scene.claim(limit=9) == []
        scene.clock.advance(60.0)
        assert [found.run for found in await scene.claim(limit=9)] == ["r1", "r2"]

    @story
    async def test_a_wall_clock_that_jumps_back_prolongs_no_delay(self, scene: Scene) -> None:
        await scene.submit("r1", delay=60.0)
        await scene.settle("r2", await scene.start("r2"), "retry", delay=60.0)
        scene.clock.jump_wall(-YEAR)
        scene.clock.advance(60.0)
        assert [found.run for found in await scene.claim(limit=9)] == ["r1", "r2"]

    # --- the sweeper ---

    @story
    async def test_a_vanished_workers_run_goes_back_to_the_queue(self, scene: Scene) -> None:
        epoch = await scene.start("r1")
        await scene.do(a_checkpoint("r1", epoch))
        assert await scene.lose_worker() == [("r1", "queued")]
        assert await scene.last_event("r1") == ("run.worker_lost", {"attempt": 1})
        assert len(await scene.store.checkpoints("r1")) == 1
        assert await scene.restart("r1") == epoch + 1

    @story
    async def test_sweeping_twice_changes_nothing_more(self, scene: Scene) -> None:
        await scene.start("r1")
        await scene.lose_worker()
        before = await scene.everything("r1")
        assert await scene.do(Sweep()) == []
        assert await scene.everything("r1") == before

    @story
    async def test_attempts_are_bounded_when_every_worker_vanishes(self, scene: Scene) -> None:
        await scene.start("r1", max_attempts=2)
        assert await scene.lose_worker() == [("r1", "queued")]
        await scene.restart("r1")
        assert await scene.lose_worker() == [("r1", "failed")]
        run = await scene.run("r1")
        assert run.error is not None
        assert (run.error.name, run.finished) == ("WorkerLost", scene.clock.now())
        assert "2 times" in run.error.message
        type, data = await scene.last_event("r1")
        assert (type, data["error"]["name"]) == ("run.failed", "WorkerLost")
        assert (await scene.dead_letter("r1")).reason.startswith("WorkerLost: ")
        assert await scene.claim() == []

    @story
    async def test_a_sweep_handles_no_more_than_its_limit(self, scene: Scene) -> None:
        for number in range(5):
            await scene.submit(f"r{number}")
        await scene.claim(limit=5)
        scene.clock.advance(TTL)
        assert len(await scene.do(Sweep(limit=3))) == 3
        assert len(await scene.do(Sweep(limit=3))) == 2

    @story
    async def test_a_sweep_leaves_the_living_alone(self, scene: Scene) -> None:
        await scene.start("r1")
        scene.clock.advance(TTL / 2)
        await scene.start("r2")
        await scene.submit("r3")
        scene.clock.advance(TTL / 2)
        assert await scene.do(Sweep()) == [("r1", "queued")]
        assert [await scene.state(run) for run in ("r2", "r3")] == ["running", "queued"]
