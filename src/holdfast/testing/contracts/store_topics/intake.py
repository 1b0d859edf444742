"""Accepting runs: durable at once, and once only."""

from __future__ import annotations

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import Quarantine, Submitted
from holdfast.testing.contracts.store_topics.scene import (
    TTL,
    Scene,
    StoreTopics,
    a_checkpoint,
    a_submit,
    story,
)


def results(*steps: str) -> list[Checkpoint]:
    return [Checkpoint(step, "", "1", "c", "t", "f", '{"n":1}', epoch=7) for step in steps]


class IntakeTopics(StoreTopics):
    @story
    async def test_an_accepted_run_is_queued_as_it_was_given(self, scene: Scene) -> None:
        reply = await scene.submit(
            "r1",
            tenant="acme",
            pipeline="report",
            lane="fast",
            input='{"a":1}',
            fingerprint="f9",
            key="k1",
            priority=3,
            max_attempts=2,
            parent="r0",
        )
        assert reply == Submitted("r1", True, "queued")
        run = await scene.run("r1")
        assert (run.tenant, run.pipeline, run.lane, run.state) == (
            "acme",
            "report",
            "fast",
            "queued",
        )
        assert (run.input, run.fingerprint, run.key, run.parent) == ('{"a":1}', "f9", "k1", "r0")
        assert (run.priority, run.attempt_limit, run.attempts, run.epoch) == (3, 2, 0, 0)
        assert (run.created, run.started, run.finished) == (scene.clock.now(), None, None)
        assert (run.result, run.error, run.reason, run.worker) == (None, None, None, None)

    @story
    async def test_accepting_a_run_writes_its_first_event(self, scene: Scene) -> None:
        await scene.submit("r1", tenant="acme", pipeline="report")
        [event] = await scene.store.history("r1")
        assert (event.id, event.seq, event.type, event.data) == ("r1:1", 1, "run.queued", "{}")
        assert (event.tenant, event.pipeline, event.at) == ("acme", "report", scene.clock.now())

    @story
    async def test_a_repeated_request_gets_the_same_answer_and_writes_nothing(
        self, scene: Scene
    ) -> None:
        first = await scene.submit("r1", key="k1")
        before = await scene.everything("r1")
        assert await scene.submit("r1", key="k1") == first
        assert await scene.everything("r1") == before

    @story
    async def test_a_request_repeated_late_learns_the_state_its_run_has_reached(
        self, scene: Scene
    ) -> None:
        await scene.start("r1")
        assert await scene.submit("r1") == Submitted("r1", True, "running")

    @story
    async def test_a_repeated_request_does_not_bring_back_a_quarantined_result(
        self, scene: Scene
    ) -> None:
        epoch = await scene.start("r1", checkpoints=results("s"))
        assert await scene.do(Quarantine("r1", epoch, "s", "", "bad")) == 1
        before = await scene.everything("r1")
        await scene.submit("r1", checkpoints=results("s"))
        assert await scene.everything("r1") == before

    @story
    async def test_a_key_leads_to_the_run_that_has_it(self, scene: Scene) -> None:
        await scene.submit("r1", key="k1")
        assert await scene.submit("r2", key="k1") == Submitted("r1", False, "queued")
        assert await scene.store.run("r2") is None
        assert await scene.events("r1") == ["run.queued"]

    @story
    async def test_a_key_reused_for_something_else_is_a_conflict(self, scene: Scene) -> None:
        await scene.submit("r1", key="k1", fingerprint="f1")
        reply = await scene.submit("r2", key="k1", fingerprint="f2")
        assert reply == Submitted("r1", False, "queued", conflict=True)
        assert await scene.store.run("r2") is None

    @story
    async def test_a_key_is_taken_for_as_long_as_its_run_is_kept(self, scene: Scene) -> None:
        epoch = await scene.start("r1", key="k1")
        await scene.settle("r1", epoch, "succeeded", result="1")
        assert await scene.submit("r2", key="k1") == Submitted("r1", False, "succeeded")

    @story
    async def test_tenants_do_not_meet_in_a_key(self, scene: Scene) -> None:
        await scene.submit("r1", tenant="acme", key="k1", fingerprint="f1")
        reply = await scene.submit("r2", tenant="bolt", key="k1", fingerprint="f2")
        assert reply == Submitted("r2", True, "queued")

    @story
    async def test_runs_without_a_key_never_meet(self, scene: Scene) -> None:
        await scene.submit("r1")
        assert (await scene.submit("r2")).created

    @story
    async def test_a_unique_pipeline_has_one_live_run_for_each_tenant(self, scene: Scene) -> None:
        await scene.submit("r1", pipeline="solo", unique=True)
        assert await scene.submit("r2", pipeline="solo", unique=True) == Submitted(
            "r1", False, "queued"
        )
        assert await scene.store.run("r2") is None
        assert (await scene.submit("r3", pipeline="solo", unique=True, tenant="bolt")).created
        assert (await scene.submit("r4", pipeline="report", unique=True)).created

    @story
    async def test_another_input_is_no_conflict_in_a_unique_slot(self, scene: Scene) -> None:
        await scene.submit("r1", pipeline="solo", unique=True, fingerprint="f1")
        reply = await scene.submit("r2", pipeline="solo", unique=True, fingerprint="f2", key="k2")
        assert reply == Submitted("r1", False, "queued", conflict=False)

    @story
    async def test_a_finished_run_gives_its_unique_slot_back(self, scene: Scene) -> None:
        for number, outcome in enumerate(("succeeded", "failed")):
            run = f"r{number}"
            epoch = await scene.start(run, pipeline="solo", unique=True)
            await scene.settle(run, epoch, outcome)
        assert (await scene.submit("r9", pipeline="solo", unique=True)).created

    @story
    async def test_a_key_is_asked_before_the_unique_slot(self, scene: Scene) -> None:
        epoch = await scene.start("r1", pipeline="solo", unique=True, key="k1")
        await scene.settle("r1", epoch, "succeeded")
        await scene.submit("r2", pipeline="solo", unique=True, key="k2")
        reply = await scene.submit("r3", pipeline="solo", unique=True, key="k1")
        assert reply == Submitted("r1", False, "succeeded")

    @story
    async def test_a_delayed_run_is_not_claimed_before_its_time(self, scene: Scene) -> None:
        await scene.submit("r1", delay=60.0)
        assert (await scene.run("r1")).available == scene.clock.now() + 60.0
        scene.clock.advance(59.0)
        assert await scene.claim() == []
        scene.clock.advance(1.0)
        assert [found.run for found in await scene.claim()] == ["r1"]

    @story
    async def test_results_taken_over_are_stored_under_epoch_zero(self, scene: Scene) -> None:
        await scene.submit("r1", checkpoints=results("a", "b"))
        found = await scene.store.checkpoints("r1")
        assert [(c.step, c.key, c.value, c.epoch) for c in found] == [
            ("a", "", "1", 0),
            ("b", "", "1", 0),
        ]
        assert await scene.events("r1") == ["run.queued"]

    @story
    async def test_thousands_of_results_are_taken_over(self, scene: Scene) -> None:
        items = [Checkpoint("s", f"i{number}", "1", "c", "t", "f", "{}") for number in range(5_000)]
        await scene.submit("r1", checkpoints=[*results("a"), *items])
        assert len(await scene.store.checkpoints("r1", "s")) == 5_000
        assert [found.resumed for found in await scene.claim()] == [True]

    @story
    async def test_results_are_not_taken_over_by_a_run_that_was_not_created(
        self, scene: Scene
    ) -> None:
        await scene.submit("r1", key="k1")
        await scene.submit("r2", key="k1", checkpoints=results("a"))
        assert await scene.store.checkpoints("r1") == []
        assert await scene.store.checkpoints("r2") == []

    @story
    async def test_a_result_taken_over_can_be_replaced_by_a_new_one(self, scene: Scene) -> None:
        epoch = await scene.start("r1", checkpoints=results("s"))
        await scene.do(a_checkpoint("r1", epoch, "s", value="2"))
        [found] = await scene.store.checkpoints("r1")
        assert (found.value, found.epoch) == ("2", epoch)
        assert (await scene.events("r1"))[-1] == "step.completed"

    @story
    async def test_any_text_survives(self, scene: Scene) -> None:
        text = '"naïve ☃ 𝄞 \\u0000 \' % {} $1 ?1 :x"'
        await scene.submit("r1", input=text, key="k ' ☃", tenant="t\"'")
        run = await scene.run("r1")
        assert (run.input, run.key, run.tenant) == (text, "k ' ☃", "t\"'")

    @story
    async def test_what_was_accepted_survives_the_store_object(self, scene: Scene) -> None:
        if not scene.store.features.durable:
            return
        epoch = await scene.start("r1", key="k1")
        await scene.do(a_checkpoint("r1", epoch))
        before = await scene.everything("r1")
        await scene.store.close()
        scene.store = scene.make_store(scene.clock)
        await scene.store.open()
        assert await scene.everything("r1") == before
        assert await scene.submit("r2", key="k1") == Submitted("r1", False, "running")
        scene.clock.advance(TTL - 1.0)
        assert await scene.do(a_checkpoint("r1", epoch, "t")) is None

    @story
    async def test_opening_and_closing_twice_is_harmless(self, scene: Scene) -> None:
        await scene.store.open()
        await scene.do(a_submit("r1"))
        assert await scene.state("r1") == "queued"
        other = scene.make_store(scene.clock)
        await other.open()
        await other.close()
        await other.close()
