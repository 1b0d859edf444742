"""Standing by: an idle worker is given a run in the commit that accepts it, and has it as if it had
claimed it."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from holdfast.model.commands import STALE, Cancel, Claimed, Renew
from holdfast.testing.contracts.store_topics.scene import (
    TTL,
    Scene,
    StoreTopics,
    a_checkpoint,
    a_claim,
    story,
)

ENOUGH = 50
"""Runs after which a store that stands by should have given one away."""


async def standing_by(scene: Scene, **claim: Any) -> asyncio.Task[list[Claimed]]:
    waiting = asyncio.create_task(scene.store.stand_by([a_claim(**{"worker": "idle", **claim})]))
    await asyncio.sleep(0)
    return waiting


async def be_given(scene: Scene) -> Claimed:
    """Submit runs until one is given to us; those that are not are claimed by another."""
    assert scene.store.features.stands_by
    for number in count(1):
        assert number < ENOUGH, "nothing was given to us"
        waiting = await standing_by(scene)
        await scene.submit(f"r{number}")
        if given := await waiting:
            return given[0]
        assert [found.run for found in await scene.claim(10)] == [f"r{number}"]
    raise AssertionError


class StandByTopics(StoreTopics):
    @story
    async def test_what_is_given_is_claimed(self, scene: Scene) -> None:
        given = await be_given(scene)
        assert (given.attempt, given.progress, given.resumed) == (1, "{}", False)
        assert (given.tenant, given.pipeline, given.lane, given.input) == (
            "acme",
            "report",
            "default",
            "{}",
        )
        assert await scene.claim(10) == []
        run = await scene.run(given.run)
        assert (run.state, run.epoch, run.attempts, run.worker) == (
            "running",
            given.epoch,
            1,
            "idle",
        )
        assert await scene.events(given.run) == ["run.queued", "run.started"]

    @story
    async def test_whoever_is_given_a_run_writes_to_it_at_once(self, scene: Scene) -> None:
        given = await be_given(scene)
        assert await scene.do(a_checkpoint(given.run, given.epoch)) is None
        assert await scene.do(Renew([(given.run, given.epoch)], TTL)) == []
        assert await scene.settle(given.run, given.epoch, "succeeded", result="1") is None
        assert await scene.events(given.run) == [
            "run.queued",
            "run.started",
            "step.completed",
            "run.completed",
        ]
        await scene.check_histories()

    @story
    async def test_a_run_that_was_given_out_is_settled_by_the_first_command(
        self, scene: Scene
    ) -> None:
        given = await be_given(scene)
        last = a_checkpoint(given.run, given.epoch)
        assert (
            await scene.settle(given.run, given.epoch, "succeeded", result="1", last=last) is None
        )
        assert await scene.state(given.run) == "succeeded"

    @story
    async def test_a_run_that_was_given_out_is_renewed_by_the_first_command(
        self, scene: Scene
    ) -> None:
        given = await be_given(scene)
        assert await scene.do(Renew([(given.run, given.epoch)], TTL)) == []

    @story
    async def test_the_lease_of_a_run_that_was_given_out_ends(self, scene: Scene) -> None:
        given = await be_given(scene)
        assert await scene.state(given.run) == "running"
        lost = await scene.lose_worker()
        assert given.run in [run for run, _ in lost]
        assert await scene.do(a_checkpoint(given.run, given.epoch)) is STALE
        again = {found.run: found for found in await scene.claim(ENOUGH)}
        assert again[given.run].epoch > given.epoch
        assert (again[given.run].attempt, again[given.run].resumed) == (2, True)
        await scene.check_histories()

    @story
    async def test_a_cancel_takes_a_run_from_whoever_was_given_it(self, scene: Scene) -> None:
        given = await be_given(scene)
        assert await scene.do(Cancel(given.run, "ann", "no longer wanted")) is None
        assert await scene.do(a_checkpoint(given.run, given.epoch)) is STALE
        assert await scene.state(given.run) == "cancelled"

    @story
    async def test_a_submit_that_is_repeated_gives_the_run_to_one_only(self, scene: Scene) -> None:
        given = await be_given(scene)
        waiting = await standing_by(scene, worker="other")
        await scene.submit(given.run)
        writers = [given, *await waiting]
        replies = [await scene.do(a_checkpoint(one.run, one.epoch)) for one in writers]
        assert replies.count(None) == 1

    @story
    async def test_a_run_that_none_of_the_claims_may_have_is_not_given(self, scene: Scene) -> None:
        await be_given(scene)
        waiting = await standing_by(scene)
        await scene.submit("other", pipeline="other")
        assert await waiting == []
        claimed: list[Claimed] = []
        while not claimed:  # it is being handed on
            claimed = await scene.claim(pipelines=["other"])
        assert (claimed[0].run, claimed[0].attempt) == ("other", 1)
        await scene.check_histories()

    @story
    async def test_a_run_of_a_fifo_lane_waits_its_turn_whoever_stands_by(
        self, scene: Scene
    ) -> None:
        await be_given(scene)
        leader = await scene.fifo()
        await scene.submit("first", lane="line")
        waiting = await standing_by(scene, lane="line")
        await scene.submit("second", lane="line")
        for given in await waiting:
            assert await scene.do(a_checkpoint(given.run, given.epoch)) is STALE
        assert await leader.start("first")
        assert await scene.events("second") == ["run.queued"]
