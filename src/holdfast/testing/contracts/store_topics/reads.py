"""What people read: lists, pages, counts."""

from __future__ import annotations

from typing import Any

from holdfast.model.commands import Cancel, PauseRun
from holdfast.ports.store import RunFilter
from holdfast.testing.contracts.store_topics.harness import StoreHarness, StoreTopics, store_test


async def listed(
    harness: StoreHarness, limit: int = 50, before: int | None = None, **where: Any
) -> list[str]:
    runs = await harness.store.runs(RunFilter(**where), limit=limit, before=before)
    return [run.id for run in runs]


async def some_runs(harness: StoreHarness) -> None:
    await harness.submit("a1", tenant="acme", pipeline="report", lane="default", key="k1")
    await harness.submit("a2", tenant="acme", pipeline="solo", lane="fast")
    await harness.submit("b1", tenant="bolt", pipeline="report", lane="fast", key="k1")
    await harness.do(Cancel("a2", "ann"))


class ReadTopics(StoreTopics):
    @store_test
    async def test_runs_are_listed_newest_first(self, harness: StoreHarness) -> None:
        await some_runs(harness)
        assert await listed(harness) == ["b1", "a2", "a1"]

    @store_test
    async def test_everything_given_must_match(self, harness: StoreHarness) -> None:
        await some_runs(harness)
        assert await listed(harness, tenant="acme") == ["a2", "a1"]
        assert await listed(harness, pipeline="report") == ["b1", "a1"]
        assert await listed(harness, state="queued") == ["b1", "a1"]
        assert await listed(harness, lane="fast") == ["b1", "a2"]
        assert await listed(harness, key="k1") == ["b1", "a1"]
        assert await listed(harness, id_prefix="a") == ["a2", "a1"]
        assert await listed(harness, tenant="acme", key="k1", state="queued", lane="default") == [
            "a1"
        ]
        assert await listed(harness, tenant="acme", lane="default", state="cancelled") == []

    @store_test
    async def test_a_prefix_is_taken_literally(self, harness: StoreHarness) -> None:
        await some_runs(harness)
        assert await listed(harness, id_prefix="%") == []
        assert await listed(harness, id_prefix="_1") == []
        assert await listed(harness, id_prefix="a1") == ["a1"]
        assert await listed(harness, id_prefix="A") == []

    @store_test
    async def test_runs_are_read_in_pages(self, harness: StoreHarness) -> None:
        for number in range(7):
            await harness.submit(f"r{number}")
        ids: list[str] = []
        before: int | None = None
        while page := await harness.store.runs(RunFilter(), limit=3, before=before):
            ids += [run.id for run in page]
            before = page[-1].seq
        assert ids == [f"r{number}" for number in reversed(range(7))]

    @store_test
    async def test_new_runs_do_not_move_the_pages(self, harness: StoreHarness) -> None:
        for number in range(4):
            await harness.submit(f"r{number}")
        first = await harness.store.runs(RunFilter(), limit=2)
        await harness.submit("new")
        assert await listed(harness, limit=2, before=first[-1].seq) == ["r1", "r0"]

    @store_test
    async def test_counts_are_by_state(self, harness: StoreHarness) -> None:
        await some_runs(harness)
        assert await harness.store.count(RunFilter()) == {"queued": 2, "cancelled": 1}
        assert await harness.store.count(RunFilter(tenant="bolt")) == {"queued": 1}
        assert await harness.store.count(RunFilter(tenant="nobody")) == {}

    @store_test
    async def test_over_are_the_runs_that_succeeded_failed_or_were_cancelled(
        self, harness: StoreHarness
    ) -> None:
        await harness.settle("succeeded", await harness.start("succeeded"), "succeeded", result="1")
        await harness.fail("failed")
        await harness.start("running")
        for run in ("cancelled", "paused", "queued"):
            await harness.submit(run)
        await harness.apply(Cancel("cancelled", "ann"), PauseRun("paused", "ann"))
        ids = ["queued", "failed", "nobody", "running", "succeeded", "paused", "cancelled"]
        over = await harness.store.over(ids)
        assert sorted(run.id for run in over) == ["cancelled", "failed", "succeeded"]
        assert all([run == await harness.store.run(run.id) for run in over])
        assert await harness.store.over([]) == []

    @store_test
    async def test_unique_runs_are_the_live_runs_of_unique_pipelines(
        self, harness: StoreHarness
    ) -> None:
        assert await harness.store.unique_runs() == []
        await harness.submit("plain")
        await harness.submit("first", unique=True)
        await harness.submit("other", unique=True, tenant="bolt")
        await harness.submit("paused", unique=True, tenant="cog")
        await harness.apply(PauseRun("paused", "ann"))
        runs = await harness.store.unique_runs()
        assert [run.id for run in runs] == ["first", "other", "paused"]
        assert all([run == await harness.store.run(run.id) for run in runs])
        await harness.apply(Cancel("first", "ann"))
        assert [run.id for run in await harness.store.unique_runs()] == ["other", "paused"]

    @store_test
    async def test_what_does_not_exist_is_none_or_empty(self, harness: StoreHarness) -> None:
        assert await harness.everything("x") == (None, [], [], [], [], None)
        assert await harness.store.audit() == []
        assert await harness.store.locks() == []
        assert await harness.store.lanes() == []
        assert await harness.store.dead_letters() == []
        assert await harness.store.runs(RunFilter()) == []

    @store_test
    async def test_a_run_that_was_read_is_a_copy(self, harness: StoreHarness) -> None:
        await harness.submit("r1")
        (await harness.run("r1")).attempts = 99
        assert (await harness.run("r1")).attempts == 0

    @store_test
    async def test_reads_see_every_command_that_was_answered(self, harness: StoreHarness) -> None:
        for number in range(20):
            await harness.submit(f"r{number}")
            assert await harness.state(f"r{number}") == "queued"
            assert (await listed(harness, limit=1)) == [f"r{number}"]
