"""Tenants take turns: how a claim from a parallel lane is divided between those that wait."""

from __future__ import annotations

from holdfast.model.commands import Claimed, LimitTenant
from holdfast.testing.contracts.store_topics.scene import Scene, StoreTopics, story


async def submit(scene: Scene, **counts: int) -> None:
    """So many runs for each tenant: a0, a1, … for tenant a."""
    for tenant, count in counts.items():
        for number in range(count):
            await scene.submit(f"{tenant}{number}", tenant=tenant)


def ids(claimed: list[Claimed]) -> list[str]:
    return [run.run for run in claimed]


async def limit(scene: Scene, tenant: str, running: int | None) -> None:
    assert await scene.do(LimitTenant(tenant, running, "ann")) is None


class FairnessTopics(StoreTopics):
    @story
    async def test_a_claim_goes_round_the_tenants(self, scene: Scene) -> None:
        await submit(scene, a=5, b=2, c=1)
        assert ids(await scene.claim(limit=5)) == ["a0", "b0", "c0", "a1", "b1"]
        assert ids(await scene.claim(limit=5)) == ["a2", "a3", "a4"]

    @story
    async def test_each_tenant_is_given_its_share_or_all_it_has(self, scene: Scene) -> None:
        counts = {"a": 40, "b": 3, "c": 1, "d": 12, "e": 7}
        await submit(scene, **counts)
        left = dict(counts)
        after = ""
        for size in (1, 2, 7, 16, 5, 11, 20, 4):
            waiting = [tenant for tenant, count in left.items() if count]
            claimed = await scene.claim(limit=size, after=after)
            for tenant in waiting:
                share = sum(run.tenant == tenant for run in claimed)
                assert share >= min(size // len(waiting), left[tenant])
                left[tenant] -= share
            assert len(claimed) == min(size, sum(left.values()) + len(claimed))
            after = claimed[-1].tenant if claimed else after
        assert not any(left.values()) or sum(left.values()) == sum(counts.values()) - 66

    @story
    async def test_those_with_the_fewest_running_runs_come_first(self, scene: Scene) -> None:
        await submit(scene, a=4, b=4, c=4)
        assert ids(await scene.claim(limit=2)) == ["a0", "b0"]
        assert ids(await scene.claim(limit=4)) == ["c0", "a1", "b1", "c1"]
        await scene.settle("b0", 1, "succeeded")
        await scene.settle("b1", 1, "failed")
        assert ids(await scene.claim(limit=3)) == ["b2", "a2", "c2"]

    @story
    async def test_running_runs_of_other_lanes_do_not_count(self, scene: Scene) -> None:
        await scene.start("x0", tenant="a", lane="other")
        await submit(scene, a=1, b=1)
        assert ids(await scene.claim(limit=1)) == ["a0"]

    @story
    async def test_turns_go_on_behind_the_tenant_that_was_served_last(self, scene: Scene) -> None:
        await submit(scene, a=3, b=3, c=3)
        for expected in ("c0", "a0", "b0"):
            after = {"c": "b", "a": "c", "b": "a"}[expected[0]]
            [claimed] = await scene.claim(after=after)
            assert claimed.run == expected
            await scene.settle(claimed.run, claimed.epoch, "succeeded")
        assert ids(await scene.claim(after="bb", limit=3)) == ["c1", "a1", "b1"]

    @story
    async def test_who_claims_one_at_a_time_serves_everybody(self, scene: Scene) -> None:
        """Runs that are over at once leave no running ones to go by."""
        await submit(scene, a=20, b=2, c=2)
        served, after = "", ""
        for _ in range(8):
            [claimed] = await scene.claim(after=after)
            await scene.settle(claimed.run, claimed.epoch, "succeeded")
            served, after = served + claimed.tenant, claimed.tenant
        assert served == "abcabcaa"

    @story
    async def test_inside_a_tenant_priority_decides_and_then_acceptance(self, scene: Scene) -> None:
        for run, tenant, priority in (
            ("a0", "a", 0),
            ("a1", "a", 5),
            ("b0", "b", 9),
            ("a2", "a", 5),
            ("b1", "b", 9),
        ):
            await scene.submit(run, tenant=tenant, priority=priority)
        assert ids(await scene.claim(limit=9)) == ["a1", "b0", "a2", "b1", "a0"]

    @story
    async def test_only_tenants_with_runs_of_the_named_pipelines_wait(self, scene: Scene) -> None:
        await scene.submit("a0", tenant="a", pipeline="other")
        await submit(scene, b=2)
        assert ids(await scene.claim(pipelines=["report"], limit=1)) == ["b0"]
        assert ids(await scene.claim(pipelines=["report"], limit=9)) == ["b1"]

    @story
    async def test_a_delayed_run_does_not_make_its_tenant_wait(self, scene: Scene) -> None:
        await scene.submit("a0", tenant="a", delay=60.0)
        await submit(scene, b=3)
        assert ids(await scene.claim(limit=2)) == ["b0", "b1"]
        scene.clock.advance(60.0)
        assert ids(await scene.claim(limit=2)) == ["a0", "b2"]

    @story
    async def test_many_tenants_are_served_in_turn(self, scene: Scene) -> None:
        names = [f"t{number:03}" for number in range(60)]
        for name in names:
            await submit(scene, **{name: 2})
        first = await scene.claim(limit=50)
        assert [run.tenant for run in first] == names[:50]
        second = await scene.claim(limit=50, after=first[-1].tenant)
        assert [run.tenant for run in second] == names[50:] + names[:40]

    # --- limits ---

    @story
    async def test_a_tenant_at_its_limit_does_not_wait(self, scene: Scene) -> None:
        await limit(scene, "a", 2)
        await submit(scene, a=5, b=2)
        assert ids(await scene.claim(limit=9)) == ["a0", "b0", "a1", "b1"]
        assert await scene.claim(limit=9) == []
        await scene.settle("a0", 1, "succeeded")
        assert ids(await scene.claim(limit=9)) == ["a2"]

    @story
    async def test_a_limit_counts_the_runs_of_all_lanes(self, scene: Scene) -> None:
        await limit(scene, "a", 2)
        await scene.start("x0", tenant="a", lane="other")
        await submit(scene, a=3)
        assert ids(await scene.claim(limit=9)) == ["a0"]

    @story
    async def test_a_limit_holds_for_the_claims_of_one_batch(self, scene: Scene) -> None:
        await limit(scene, "a", 1)
        await submit(scene, a=3)
        one, none = await scene.apply(
            *[scene.claim_command(worker=worker, limit=2) for worker in ("w1", "w2")]
        )
        assert (ids(one), none) == (["a0"], [])

    @story
    async def test_nothing_is_claimed_for_a_tenant_whose_limit_is_zero(self, scene: Scene) -> None:
        await limit(scene, "a", 0)
        await submit(scene, a=1, b=1)
        assert ids(await scene.claim(limit=9)) == ["b0"]

    @story
    async def test_a_limit_can_be_changed_and_taken_away(self, scene: Scene) -> None:
        await limit(scene, "a", 1)
        await submit(scene, a=9)
        assert len(await scene.claim(limit=9)) == 1
        await limit(scene, "a", 3)
        assert len(await scene.claim(limit=9)) == 2
        await limit(scene, "a", None)
        assert len(await scene.claim(limit=9)) == 6
        assert [entry.action for entry in await scene.store.audit()] == ["tenant.limit"] * 3

    @story
    async def test_runs_that_leave_make_room_however_they_leave(self, scene: Scene) -> None:
        await limit(scene, "a", 1)
        await submit(scene, a=5)
        for number, outcome in enumerate(("failed", "paused", "succeeded")):
            assert ids(await scene.claim(limit=9)) == [f"a{number}"]
            await scene.settle(f"a{number}", 1, outcome)
        assert ids(await scene.claim(limit=9)) == ["a3"]
        assert await scene.lose_worker() == [("a3", "queued")]
        assert ids(await scene.claim(limit=9)) == ["a3"]

    @story
    async def test_the_head_of_a_fifo_lane_waits_for_its_tenants_limit(self, scene: Scene) -> None:
        await limit(scene, "acme", 1)
        leader = await scene.fifo()
        epoch = await scene.start("r1")
        await scene.submit("r2", lane="line")
        assert await leader.claim() == []
        await scene.settle("r1", epoch, "succeeded")
        await leader.start("r2")
