"""Tenants take turns: how a claim from a parallel lane is divided between those that wait."""

from __future__ import annotations

from holdfast.model.commands import Claimed, LimitTenant
from holdfast.testing.contracts.store_topics.harness import StoreHarness, StoreTopics, store_test


async def submit(harness: StoreHarness, **counts: int) -> None:
    """So many runs for each tenant: a0, a1, … for tenant a."""
    for tenant, count in counts.items():
        for number in range(count):
            await harness.submit(f"{tenant}{number}", tenant=tenant)


def ids(claimed: list[Claimed]) -> list[str]:
    return [run.run for run in claimed]


async def limit(harness: StoreHarness, tenant: str, running: int | None) -> None:
    assert await harness.do(LimitTenant(tenant, running, "ann")) is None


class FairnessTopics(StoreTopics):
    @store_test
    async def test_a_claim_goes_round_the_tenants(self, harness: StoreHarness) -> None:
        await submit(harness, a=5, b=2, c=1)
        assert ids(await harness.claim(limit=5)) == ["a0", "b0", "c0", "a1", "b1"]
        assert ids(await harness.claim(limit=5)) == ["a2", "a3", "a4"]

    @store_test
    async def test_each_tenant_is_given_its_share_or_all_it_has(
        self, harness: StoreHarness
    ) -> None:
        counts = {"a": 40, "b": 3, "c": 1, "d": 12, "e": 7}
        await submit(harness, **counts)
        remaining = dict(counts)
        after = ""
        for size in (1, 2, 7, 16, 5, 11, 20, 4):
            waiting = [tenant for tenant, count in remaining.items() if count]
            claimed = await harness.claim(limit=size, after=after)
            for tenant in waiting:
                share = sum(run.tenant == tenant for run in claimed)
                assert share >= min(size // len(waiting), remaining[tenant])
                remaining[tenant] -= share
            assert len(claimed) == min(size, sum(remaining.values()) + len(claimed))
            after = claimed[-1].tenant if claimed else after
        assert not any(remaining.values())

    @store_test
    async def test_those_with_the_fewest_running_runs_come_first(
        self, harness: StoreHarness
    ) -> None:
        await submit(harness, a=4, b=4, c=4)
        assert ids(await harness.claim(limit=2)) == ["a0", "b0"]
        assert ids(await harness.claim(limit=4)) == ["c0", "a1", "b1", "c1"]
        await harness.settle("b0", 1, "succeeded")
        await harness.settle("b1", 1, "failed")
        assert ids(await harness.claim(limit=3)) == ["b2", "a2", "c2"]

    @store_test
    async def test_running_runs_of_other_lanes_do_not_count(self, harness: StoreHarness) -> None:
        await harness.start("x0", tenant="a", lane="other")
        await submit(harness, a=1, b=1)
        assert ids(await harness.claim(limit=1)) == ["a0"]

    @store_test
    async def test_turns_go_on_behind_the_tenant_that_was_served_last(
        self, harness: StoreHarness
    ) -> None:
        await submit(harness, a=3, b=3, c=3)
        for expected in ("c0", "a0", "b0"):
            after = {"c": "b", "a": "c", "b": "a"}[expected[0]]
            [claimed] = await harness.claim(after=after)
            assert claimed.run == expected
            await harness.settle(claimed.run, claimed.epoch, "succeeded")
        assert ids(await harness.claim(after="bb", limit=3)) == ["c1", "a1", "b1"]

    @store_test
    async def test_who_claims_one_at_a_time_serves_everybody(self, harness: StoreHarness) -> None:
        """Runs that are over at once leave no running ones to go by."""
        await submit(harness, a=20, b=2, c=2)
        served, after = "", ""
        for _ in range(8):
            [claimed] = await harness.claim(after=after)
            await harness.settle(claimed.run, claimed.epoch, "succeeded")
            served, after = served + claimed.tenant, claimed.tenant
        assert served == "abcabcaa"

    @store_test
    async def test_inside_a_tenant_priority_decides_and_then_acceptance(
        self, harness: StoreHarness
    ) -> None:
        for run, tenant, priority in (
            ("a0", "a", 0),
            ("a1", "a", 5),
            ("b0", "b", 9),
            ("a2", "a", 5),
            ("b1", "b", 9),
        ):
            await harness.submit(run, tenant=tenant, priority=priority)
        assert ids(await harness.claim(limit=9)) == ["a1", "b0", "a2", "b1", "a0"]

    @store_test
    async def test_only_tenants_with_runs_of_the_named_pipelines_wait(
        self, harness: StoreHarness
    ) -> None:
        await harness.submit("a0", tenant="a", pipeline="other")
        await submit(harness, b=2)
        assert ids(await harness.claim(pipelines=["report"], limit=1)) == ["b0"]
        assert ids(await harness.claim(pipelines=["report"], limit=9)) == ["b1"]

    @store_test
    async def test_a_delayed_run_does_not_make_its_tenant_wait(self, harness: StoreHarness) -> None:
        await harness.submit("a0", tenant="a", delay=60.0)
        await submit(harness, b=3)
        assert ids(await harness.claim(limit=2)) == ["b0", "b1"]
        harness.clock.advance(60.0)
        assert ids(await harness.claim(limit=2)) == ["a0", "b2"]

    @store_test
    async def test_many_tenants_are_served_in_turn(self, harness: StoreHarness) -> None:
        names = [f"t{number:03}" for number in range(60)]
        for name in names:
            await submit(harness, **{name: 2})
        first = await harness.claim(limit=50)
        assert [run.tenant for run in first] == names[:50]
        second = await harness.claim(limit=50, after=first[-1].tenant)
        assert [run.tenant for run in second] == names[50:] + names[:40]

    @store_test
    async def test_a_share_is_given_wherever_the_turn_is(self, harness: StoreHarness) -> None:
        """Also when runs end between two claims, and one tenant may run no more than two."""
        await limit(harness, "d", 2)
        remaining = {"a": 30, "b": 30, "c": 2, "d": 30}
        await submit(harness, **remaining)
        after = ""
        for size in (5, 3, 8, 2, 7, 4):
            waiting = {
                tenant: min(count, 2) if tenant == "d" else count
                for tenant, count in remaining.items()
                if count
            }
            claimed = await harness.claim(limit=size, after=after)
            assert len(claimed) == size
            for tenant, count in waiting.items():
                share = sum(run.tenant == tenant for run in claimed)
                assert share >= min(size // len(waiting), count)
                remaining[tenant] -= share
            after = claimed[-1].tenant
            for run in claimed:
                await harness.settle(run.run, run.epoch, "succeeded")

    @store_test
    async def test_a_fifo_lane_knows_no_turns(self, harness: StoreHarness) -> None:
        leader = await harness.fifo()
        for number, tenant in enumerate(("a", "a", "b", "a", "c")):
            await harness.submit(f"r{number}", tenant=tenant, lane="line")
        for number in range(5):
            run = f"r{number}"
            [claimed] = await leader.claim(after="a")
            assert claimed.run == run
            await harness.settle(run, claimed.epoch, "succeeded")

    # --- limits ---

    @store_test
    async def test_a_tenant_at_its_limit_does_not_wait(self, harness: StoreHarness) -> None:
        await limit(harness, "a", 2)
        await submit(harness, a=5, b=2)
        assert ids(await harness.claim(limit=9)) == ["a0", "b0", "a1", "b1"]
        assert await harness.claim(limit=9) == []
        await harness.settle("a0", 1, "succeeded")
        assert ids(await harness.claim(limit=9)) == ["a2"]

    @store_test
    async def test_a_limit_holds_for_runs_of_several_priorities(
        self, harness: StoreHarness
    ) -> None:
        await limit(harness, "a", 2)
        for number in range(4):
            await harness.submit(f"a{number}", tenant="a", priority=number)
        assert ids(await harness.claim(limit=9)) == ["a3", "a2"]

    @store_test
    async def test_a_limit_counts_the_runs_of_all_lanes(self, harness: StoreHarness) -> None:
        await limit(harness, "a", 2)
        await harness.start("x0", tenant="a", lane="other")
        await submit(harness, a=3)
        assert ids(await harness.claim(limit=9)) == ["a0"]

    @store_test
    async def test_a_limit_holds_for_the_claims_of_one_batch(self, harness: StoreHarness) -> None:
        await limit(harness, "a", 1)
        await submit(harness, a=3)
        some, none = await harness.apply(
            *[harness.claim_command(worker=worker, limit=2) for worker in ("w1", "w2")]
        )
        assert (ids(some), none) == (["a0"], [])

    @store_test
    async def test_nothing_is_claimed_for_a_tenant_whose_limit_is_zero(
        self, harness: StoreHarness
    ) -> None:
        await limit(harness, "a", 0)
        await submit(harness, a=1, b=1)
        assert ids(await harness.claim(limit=9)) == ["b0"]

    @store_test
    async def test_a_limit_can_be_changed_and_taken_away(self, harness: StoreHarness) -> None:
        await limit(harness, "a", 1)
        await submit(harness, a=9)
        assert len(await harness.claim(limit=9)) == 1
        await limit(harness, "a", 3)
        assert len(await harness.claim(limit=9)) == 2
        await limit(harness, "a", None)
        assert len(await harness.claim(limit=9)) == 6
        assert [entry.action for entry in await harness.store.audit()] == ["tenant.limit"] * 3

    @store_test
    async def test_runs_that_leave_make_room_however_they_leave(
        self, harness: StoreHarness
    ) -> None:
        await limit(harness, "a", 1)
        await submit(harness, a=5)
        for number, outcome in enumerate(("failed", "paused", "succeeded")):
            assert ids(await harness.claim(limit=9)) == [f"a{number}"]
            await harness.settle(f"a{number}", 1, outcome)
        assert ids(await harness.claim(limit=9)) == ["a3"]
        assert await harness.lose_worker() == [("a3", "queued")]
        assert ids(await harness.claim(limit=9)) == ["a3"]

    @store_test
    async def test_the_head_of_a_fifo_lane_waits_for_its_tenants_limit(
        self, harness: StoreHarness
    ) -> None:
        await limit(harness, "acme", 1)
        leader = await harness.fifo()
        epoch = await harness.start("r1")
        await harness.submit("r2", lane="line")
        assert await leader.claim() == []
        await harness.settle("r1", epoch, "succeeded")
        await leader.start("r2")
