"""What people do to runs: cancel, pause, resume. Each intervention leaves an audit entry."""

from __future__ import annotations

from holdfast.model.commands import Cancel, PauseRun, Refused, Resume
from holdfast.testing.contracts.store_topics.scene import Scene, StoreTopics, a_checkpoint, story


async def audited(scene: Scene) -> list[tuple[str, str, str]]:
    return [(entry.actor, entry.target, entry.reason) for entry in await scene.store.audit()]


class OperationTopics(StoreTopics):
    # --- cancel ---

    @story
    async def test_every_live_run_can_be_cancelled_at_once(self, scene: Scene) -> None:
        await scene.start("running")
        await scene.submit("queued")
        await scene.submit("paused")
        await scene.do(PauseRun("paused", "ann"))
        for run in ("running", "queued", "paused"):
            before = (await scene.run(run)).epoch
            assert await scene.do(Cancel(run, "ann", "not needed")) is None
            after = await scene.run(run)
            assert (after.state, after.epoch, after.reason) == (
                "cancelled",
                before + 1,
                "not needed",
            )
            assert after.finished == scene.clock.now()
            expected = {"from": run, "actor": "ann", "reason": "not needed"}
            assert await scene.last_event(run) == ("run.cancelled", expected)
        assert await scene.claim(limit=9) == []

    @story
    async def test_a_finished_run_can_not_be_cancelled(self, scene: Scene) -> None:
        await scene.settle("r1", await scene.start("r1"), "succeeded", result="1")
        await scene.fail("r2")
        await scene.submit("r3")
        await scene.do(Cancel("r3", "ann"))
        for run, state in (("r1", "succeeded"), ("r2", "failed"), ("r3", "cancelled")):
            before = await scene.everything(run)
            assert await scene.do(Cancel(run, "ann")) == Refused(state)
            assert await scene.everything(run) == before

    @story
    async def test_a_cancelled_run_never_changes(self, scene: Scene) -> None:
        await scene.submit("r1")
        await scene.do(Cancel("r1", "ann"))
        before = await scene.everything("r1")
        replies = await scene.apply(Resume("r1", "ann"), PauseRun("r1", "ann"), Cancel("r1", "bob"))
        assert replies == [Refused("cancelled")] * 3
        assert await scene.everything("r1") == before

    @story
    async def test_a_succeeded_run_never_changes(self, scene: Scene) -> None:
        await scene.settle("r1", await scene.start("r1"), "succeeded", result="1")
        before = await scene.everything("r1")
        replies = await scene.apply(Resume("r1", "ann"), PauseRun("r1", "ann"), Cancel("r1", "bob"))
        assert replies == [Refused("succeeded")] * 3
        assert await scene.everything("r1") == before

    @story
    async def test_a_run_that_does_not_exist_is_refused_without_a_state(self, scene: Scene) -> None:
        replies = await scene.apply(Cancel("x", "ann"), PauseRun("x", "ann"), Resume("x", "ann"))
        assert replies == [Refused(None)] * 3
        assert await scene.store.audit() == []

    # --- pause ---

    @story
    async def test_a_queued_run_is_paused(self, scene: Scene) -> None:
        await scene.submit("r1")
        assert await scene.do(PauseRun("r1", "ann", "wait")) is None
        run = await scene.run("r1")
        assert (run.state, run.reason, run.epoch, run.attempts) == ("paused", "wait", 1, 0)
        data = {"from": "queued", "actor": "ann", "reason": "wait"}
        assert await scene.last_event("r1") == ("run.paused", data)
        assert await scene.claim() == []

    @story
    async def test_a_running_run_is_paused_and_the_attempt_does_not_count(
        self, scene: Scene
    ) -> None:
        epoch = await scene.start("r1")
        assert await scene.do(PauseRun("r1", "ann", "wait")) is None
        run = await scene.run("r1")
        assert (run.state, run.epoch, run.attempts, run.finished) == ("paused", epoch + 1, 0, None)

    @story
    async def test_only_queued_and_running_runs_can_be_paused(self, scene: Scene) -> None:
        await scene.fail("failed")
        await scene.submit("paused")
        await scene.do(PauseRun("paused", "ann"))
        for run in ("failed", "paused"):
            before = await scene.everything(run)
            assert await scene.do(PauseRun(run, "ann")) == Refused(run)
            assert await scene.everything(run) == before

    @story
    async def test_a_paused_run_is_not_swept(self, scene: Scene) -> None:
        await scene.start("r1")
        await scene.do(PauseRun("r1", "ann"))
        assert await scene.lose_worker() == []

    # --- resume ---

    @story
    async def test_a_paused_run_goes_on_where_it_was(self, scene: Scene) -> None:
        epoch = await scene.start("r1")
        await scene.do(a_checkpoint("r1", epoch))
        await scene.submit("r2")
        await scene.do(PauseRun("r1", "ann", "wait"))
        assert await scene.do(Resume("r1", "bob", attempts=2)) is None
        run = await scene.run("r1")
        assert (run.state, run.reason, run.attempts, run.attempt_limit) == ("queued", None, 0, 2)
        type, data = await scene.last_event("r1")
        assert (type, data["actor"]) == ("run.resumed", "bob")
        claimed = await scene.claim(limit=9)
        assert [(found.run, found.resumed) for found in claimed] == [("r1", True), ("r2", False)]
        assert len(await scene.store.checkpoints("r1")) == 1

    @story
    async def test_a_failed_run_is_reopened_with_more_attempts(self, scene: Scene) -> None:
        await scene.fail("r1", max_attempts=1)
        assert await scene.do(Resume("r1", "ann", attempts=2)) is None
        run = await scene.run("r1")
        assert (run.state, run.error, run.finished) == ("queued", None, None)
        assert (run.attempts, run.attempt_limit) == (1, 3)
        assert await scene.restart("r1") == 2
        assert await scene.lose_worker() == [("r1", "queued")]
        assert await scene.restart("r1") == 3
        assert await scene.lose_worker() == [("r1", "failed")]

    @story
    async def test_a_delay_is_over_when_somebody_pauses_and_resumes(self, scene: Scene) -> None:
        await scene.submit("r1", delay=600.0)
        await scene.apply(PauseRun("r1", "ann"), Resume("r1", "ann"))
        assert await scene.restart("r1") == 2

    @story
    async def test_only_paused_and_failed_runs_are_resumed(self, scene: Scene) -> None:
        await scene.start("running")
        await scene.submit("queued")
        for run in ("running", "queued"):
            before = await scene.everything(run)
            assert await scene.do(Resume(run, "ann")) == Refused(run)
            assert await scene.everything(run) == before

    @story
    async def test_a_failed_run_is_not_resumed_while_its_unique_slot_is_taken(
        self, scene: Scene
    ) -> None:
        await scene.fail("r1", pipeline="solo", unique=True)
        await scene.submit("r2", pipeline="solo", unique=True)
        before = await scene.everything("r1")
        assert await scene.do(Resume("r1", "ann")) == Refused("failed", "r2")
        assert await scene.everything("r1") == before
        await scene.do(Cancel("r2", "ann"))
        assert await scene.do(Resume("r1", "ann")) is None
        reply = await scene.submit("r3", pipeline="solo", unique=True)
        assert (reply.run, reply.created) == ("r1", False)

    @story
    async def test_a_paused_run_keeps_its_unique_slot(self, scene: Scene) -> None:
        await scene.submit("r1", pipeline="solo", unique=True)
        await scene.do(PauseRun("r1", "ann"))
        assert (await scene.submit("r2", pipeline="solo", unique=True)).run == "r1"
        assert await scene.do(Resume("r1", "ann")) is None

    @story
    async def test_a_cancelled_run_gives_its_unique_slot_back(self, scene: Scene) -> None:
        await scene.submit("r1", pipeline="solo", unique=True)
        await scene.do(Cancel("r1", "ann"))
        assert (await scene.submit("r2", pipeline="solo", unique=True)).created

    # --- audit ---

    @story
    async def test_interventions_are_audited_newest_first(self, scene: Scene) -> None:
        await scene.submit("r1")
        await scene.do(PauseRun("r1", "ann", "a"))
        scene.clock.advance(1.0)
        await scene.do(Resume("r1", "bob"))
        scene.clock.advance(1.0)
        await scene.do(Cancel("r1", "eve", "c"))
        assert await audited(scene) == [("eve", "r1", "c"), ("bob", "r1", ""), ("ann", "r1", "a")]
        entries = await scene.store.audit(limit=2)
        assert [entry.at for entry in entries] == [scene.clock.now(), scene.clock.now() - 1.0]
        assert len({entry.action for entry in await scene.store.audit()}) == 3

    @story
    async def test_a_refused_intervention_is_not_audited(self, scene: Scene) -> None:
        await scene.submit("r1")
        await scene.do(Resume("r1", "ann"))
        assert await scene.store.audit() == []
