"""What people read: lists, pages, counts."""

from __future__ import annotations

from typing import Any

from holdfast.model.commands import Cancel, PauseRun
from holdfast.ports.store import RunFilter
from holdfast.testing.contracts.store_topics.scene import Scene, StoreTopics, story


async def listed(
    scene: Scene, limit: int = 50, before: int | None = None, **where: Any
) -> list[str]:
    runs = await scene.store.runs(RunFilter(**where), limit=limit, before=before)
    return [run.id for run in runs]


async def some_runs(scene: Scene) -> None:
    await scene.submit("a1", tenant="acme", pipeline="report", lane="default", key="k1")
    await scene.submit("a2", tenant="acme", pipeline="solo", lane="fast")
    await scene.submit("b1", tenant="bolt", pipeline="report", lane="fast", key="k1")
    await scene.do(Cancel("a2", "ann"))


class ReadTopics(StoreTopics):
    @story
    async def test_runs_are_listed_newest_first(self, scene: Scene) -> None:
        await some_runs(scene)
        assert await listed(scene) == ["b1", "a2", "a1"]

    @story
    async def test_everything_given_must_match(self, scene: Scene) -> None:
        await some_runs(scene)
        assert await listed(scene, tenant="acme") == ["a2", "a1"]
        assert await listed(scene, pipeline="report") == ["b1", "a1"]
        assert await listed(scene, state="queued") == ["b1", "a1"]
        assert await listed(scene, lane="fast") == ["b1", "a2"]
        assert await listed(scene, key="k1") == ["b1", "a1"]
        assert await listed(scene, id_prefix="a") == ["a2", "a1"]
        assert await listed(scene, tenant="acme", key="k1", state="queued", lane="default") == [
            "a1"
        ]
        assert await listed(scene, tenant="acme", lane="default", state="cancelled") == []

    @story
    async def test_a_prefix_is_taken_literally(self, scene: Scene) -> None:
        await some_runs(scene)
        assert await listed(scene, id_prefix="%") == []
        assert await listed(scene, id_prefix="_1") == []
        assert await listed(scene, id_prefix="a1") == ["a1"]
        assert await listed(scene, id_prefix="A") == []

    @story
    async def test_runs_are_read_in_pages(self, scene: Scene) -> None:
        for number in range(7):
            await scene.submit(f"r{number}")
        seen: list[str] = []
        before: int | None = None
        while page := await scene.store.runs(RunFilter(), limit=3, before=before):
            seen += [run.id for run in page]
            before = page[-1].seq
        assert seen == [f"r{number}" for number in reversed(range(7))]

    @story
    async def test_new_runs_do_not_move_the_pages(self, scene: Scene) -> None:
        for number in range(4):
            await scene.submit(f"r{number}")
        first = await scene.store.runs(RunFilter(), limit=2)
        await scene.submit("new")
        assert await listed(scene, limit=2, before=first[-1].seq) == ["r1", "r0"]

    @story
    async def test_counts_are_by_state(self, scene: Scene) -> None:
        await some_runs(scene)
        assert await scene.store.count(RunFilter()) == {"queued": 2, "cancelled": 1}
        assert await scene.store.count(RunFilter(tenant="bolt")) == {"queued": 1}
        assert await scene.store.count(RunFilter(tenant="nobody")) == {}

    @story
    async def test_over_are_the_runs_that_succeeded_failed_or_were_cancelled(
        self, scene: Scene
    ) -> None:
        await scene.settle("succeeded", await scene.start("succeeded"), "succeeded", result="1")
        await scene.fail("failed")
        await scene.start("running")
        for run in ("cancelled", "paused", "queued"):
            await scene.submit(run)
        await scene.apply(Cancel("cancelled", "ann"), PauseRun("paused", "ann"))
        asked = ["queued", "failed", "nobody", "running", "succeeded", "paused", "cancelled"]
        over = await scene.store.over(asked)
        assert sorted(run.id for run in over) == ["cancelled", "failed", "succeeded"]
        assert all([run == await scene.store.run(run.id) for run in over])
        assert await scene.store.over([]) == []

    @story
    async def test_what_does_not_exist_is_none_or_empty(self, scene: Scene) -> None:
        assert await scene.everything("x") == (None, [], [], [], [], None)
        assert await scene.store.audit() == []
        assert await scene.store.locks() == []
        assert await scene.store.lanes() == []
        assert await scene.store.dead_letters() == []
        assert await scene.store.runs(RunFilter()) == []

    @story
    async def test_a_run_that_was_read_is_a_copy(self, scene: Scene) -> None:
        await scene.submit("r1")
        (await scene.run("r1")).attempts = 99
        assert (await scene.run("r1")).attempts == 0

    @story
    async def test_reads_see_every_command_that_was_answered(self, scene: Scene) -> None:
        for number in range(20):
            await scene.submit(f"r{number}")
            assert await scene.state(f"r{number}") == "queued"
            assert (await listed(scene, limit=1)) == [f"r{number}"]
