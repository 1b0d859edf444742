"""Claiming from a parallel lane."""

from __future__ import annotations

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import Claimed, SaveProgress
from holdfast.ports.store import RunFilter
from holdfast.testing.contracts.store_topics.scene import TTL, Scene, StoreTopics, story


class ClaimTopics(StoreTopics):
    @story
    async def test_a_claim_hands_over_what_the_worker_needs(self, scene: Scene) -> None:
        await scene.submit("r1", tenant="acme", lane="fast", input='{"a":1}', max_attempts=4)
        assert await scene.claim(lane="fast") == [
            Claimed("r1", "acme", "report", "fast", 1, 1, 4, '{"a":1}', "{}", False)
        ]

    @story
    async def test_a_claim_starts_the_run(self, scene: Scene) -> None:
        await scene.submit("r1")
        scene.clock.advance(5.0)
        await scene.claim(worker="w7")
        run = await scene.run("r1")
        assert (run.state, run.worker, run.epoch, run.attempts) == ("running", "w7", 1, 1)
        assert (run.started, run.finished) == (scene.clock.now(), None)
        assert await scene.last_event("r1") == (
            "run.started",
            {"attempt": 1, "worker": "w7", "epoch": 1},
        )

    @story
    async def test_a_run_has_one_worker_at_a_time(self, scene: Scene) -> None:
        await scene.start("r1")
        assert await scene.claim(worker="w2", limit=10) == []

    @story
    async def test_runs_are_claimed_in_the_order_of_acceptance(self, scene: Scene) -> None:
        for run in ("r2", "r1", "r3"):
            await scene.submit(run)
        assert [found.run for found in await scene.claim(limit=2)] == ["r2", "r1"]
        assert [found.run for found in await scene.claim(limit=2)] == ["r3"]
        assert await scene.claim(limit=2) == []

    @story
    async def test_a_higher_priority_goes_first(self, scene: Scene) -> None:
        for run, priority in (("r1", 0), ("r2", 5), ("r3", -1), ("r4", 5)):
            await scene.submit(run, priority=priority)
        assert [found.run for found in await scene.claim(limit=9)] == ["r2", "r4", "r1", "r3"]

    @story
    async def test_a_claim_takes_no_more_than_its_limit(self, scene: Scene) -> None:
        for number in range(5):
            await scene.submit(f"r{number}")
        assert await scene.claim(limit=0) == []
        assert len(await scene.claim(limit=3)) == 3
        assert await scene.store.count(RunFilter()) == {"queued": 2, "running": 3}

    @story
    async def test_only_the_named_pipelines_are_claimed(self, scene: Scene) -> None:
        await scene.submit("r1", pipeline="other", priority=9)
        await scene.submit("r2", pipeline="report")
        assert await scene.claim(pipelines=[], limit=9) == []
        assert [found.run for found in await scene.claim(pipelines=["report"], limit=9)] == ["r2"]
        assert await scene.state("r1") == "queued"

    @story
    async def test_lanes_are_apart(self, scene: Scene) -> None:
        await scene.submit("r1", lane="fast")
        assert await scene.claim(lane="default") == []
        assert [found.run for found in await scene.claim(lane="fast")] == ["r1"]

    @story
    async def test_inputs_together_stay_below_max_bytes(self, scene: Scene) -> None:
        for number in range(4):
            await scene.submit(f"r{number}", input=f'"{"x" * 98}"')
        assert [found.run for found in await scene.claim(limit=9, max_bytes=250)] == ["r0", "r1"]

    @story
    async def test_max_bytes_counts_bytes_and_not_characters(self, scene: Scene) -> None:
        for number in range(4):
            await scene.submit(f"r{number}", input=f'"{"☃" * 30}"')
        assert [found.run for found in await scene.claim(limit=9, max_bytes=250)] == ["r0", "r1"]

    @story
    async def test_one_run_is_claimed_however_large_it_is(self, scene: Scene) -> None:
        await scene.submit("r1", input=f'"{"x" * 1000}"')
        await scene.submit("r2")
        assert [found.run for found in await scene.claim(limit=9, max_bytes=10)] == ["r1"]
        assert [found.run for found in await scene.claim(limit=9, max_bytes=10)] == ["r2"]

    @story
    async def test_every_claim_raises_epoch_and_attempt(self, scene: Scene) -> None:
        assert await scene.start("r1") == 1
        for attempt in (2, 3):
            await scene.lose_worker()
            [claimed] = await scene.claim()
            assert (claimed.epoch, claimed.attempt) == (attempt, attempt)

    @story
    async def test_a_run_knows_when_it_was_first_started(self, scene: Scene) -> None:
        await scene.start("r1")
        first = scene.clock.now()
        await scene.lose_worker()
        await scene.restart("r1")
        assert (await scene.run("r1")).started == first

    @story
    async def test_a_run_claimed_before_is_resumed(self, scene: Scene) -> None:
        await scene.start("r1")
        await scene.lose_worker()
        assert [found.resumed for found in await scene.claim()] == [True]

    @story
    async def test_a_run_that_takes_over_results_is_resumed(self, scene: Scene) -> None:
        await scene.submit("r1", checkpoints=[Checkpoint("s", "", "1", "c", "t", "f")])
        assert [found.resumed for found in await scene.claim()] == [True]

    @story
    async def test_progress_is_handed_to_the_next_attempt(self, scene: Scene) -> None:
        epoch = await scene.start("r1")
        text = '{"steps":{"s":{"step":"s","status":"in_progress","done":3}}}'
        await scene.do(SaveProgress("r1", epoch, text))
        await scene.lose_worker()
        assert [found.progress for found in await scene.claim()] == [text]
        assert (await scene.run("r1")).progress.steps["s"].done == 3

    @story
    async def test_a_lane_that_nobody_defined_is_parallel(self, scene: Scene) -> None:
        for run in ("r1", "r2"):
            await scene.submit(run, lane="unheard-of")
        assert len(await scene.claim(lane="unheard-of", limit=9, ttl=TTL)) == 2
