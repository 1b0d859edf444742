"""Accepting runs: durable at once, and once only."""

from __future__ import annotations

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import Quarantine, Submitted
from holdfast.testing.contracts.store_topics.harness import (
    TTL,
    StoreHarness,
    StoreTopics,
    a_checkpoint,
    a_submit,
    store_test,
)


def results(*steps: str) -> list[Checkpoint]:
    return [Checkpoint(step, "", "1", "c", "t", "f", '{"n":1}', epoch=7) for step in steps]


class IntakeTopics(StoreTopics):
    @store_test
    async def test_an_accepted_run_is_queued_as_it_was_given(self, harness: StoreHarness) -> None:
        reply = await harness.submit(
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
        run = await harness.run("r1")
        assert (run.tenant, run.pipeline, run.lane, run.state) == (
            "acme",
            "report",
            "fast",
            "queued",
        )
        assert (run.input, run.fingerprint, run.key, run.parent) == ('{"a":1}', "f9", "k1", "r0")
        assert (run.priority, run.attempt_limit, run.attempts, run.epoch) == (3, 2, 0, 0)
        assert (run.created, run.started, run.finished) == (harness.clock.now(), None, None)
        assert (run.result, run.error, run.reason, run.worker) == (None, None, None, None)

    @store_test
    async def test_accepting_a_run_writes_its_first_event(self, harness: StoreHarness) -> None:
        await harness.submit("r1", tenant="acme", pipeline="report")
        [event] = await harness.store.history("r1")
        assert (event.id, event.seq, event.type, event.data) == ("r1:1", 1, "run.queued", "{}")
        assert (event.tenant, event.pipeline, event.at) == ("acme", "report", harness.clock.now())

    @store_test
    async def test_a_repeated_request_gets_the_same_answer_and_writes_nothing(
        self, harness: StoreHarness
    ) -> None:
        first = await harness.submit("r1", key="k1")
        before = await harness.everything("r1")
        assert await harness.submit("r1", key="k1") == first
        assert await harness.everything("r1") == before

    @store_test
    async def test_a_request_repeated_late_learns_the_state_its_run_has_reached(
        self, harness: StoreHarness
    ) -> None:
        await harness.start("r1")
        assert await harness.submit("r1") == Submitted("r1", True, "running")

    @store_test
    async def test_a_repeated_request_does_not_bring_back_a_quarantined_result(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1", checkpoints=results("s"))
        assert await harness.do(Quarantine("r1", epoch, "s", "", "bad")) == 1
        before = await harness.everything("r1")
        await harness.submit("r1", checkpoints=results("s"))
        assert await harness.everything("r1") == before

    @store_test
    async def test_a_key_leads_to_the_run_that_has_it(self, harness: StoreHarness) -> None:
        await harness.submit("r1", key="k1")
        assert await harness.submit("r2", key="k1") == Submitted("r1", False, "queued")
        assert await harness.store.run("r2") is None
        assert await harness.events("r1") == ["run.queued"]

    @store_test
    async def test_a_key_reused_for_something_else_is_a_conflict(
        self, harness: StoreHarness
    ) -> None:
        await harness.submit("r1", key="k1", fingerprint="f1")
        reply = await harness.submit("r2", key="k1", fingerprint="f2")
        assert reply == Submitted("r1", False, "queued", conflict=True)
        assert await harness.store.run("r2") is None

    @store_test
    async def test_a_key_is_taken_for_as_long_as_its_run_is_kept(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1", key="k1")
        await harness.settle("r1", epoch, "succeeded", result="1")
        assert await harness.submit("r2", key="k1") == Submitted("r1", False, "succeeded")

    @store_test
    async def test_tenants_do_not_meet_in_a_key(self, harness: StoreHarness) -> None:
        await harness.submit("r1", tenant="acme", key="k1", fingerprint="f1")
        reply = await harness.submit("r2", tenant="bolt", key="k1", fingerprint="f2")
        assert reply == Submitted("r2", True, "queued")

    @store_test
    async def test_runs_without_a_key_never_meet(self, harness: StoreHarness) -> None:
        await harness.submit("r1")
        assert (await harness.submit("r2")).created

    @store_test
    async def test_a_unique_pipeline_has_one_live_run_for_each_tenant(
        self, harness: StoreHarness
    ) -> None:
        await harness.submit("r1", pipeline="solo", unique=True)
        assert await harness.submit("r2", pipeline="solo", unique=True) == Submitted(
            "r1", False, "queued"
        )
        assert await harness.store.run("r2") is None
        assert (await harness.submit("r3", pipeline="solo", unique=True, tenant="bolt")).created
        assert (await harness.submit("r4", pipeline="report", unique=True)).created

    @store_test
    async def test_another_input_is_no_conflict_in_a_unique_slot(
        self, harness: StoreHarness
    ) -> None:
        await harness.submit("r1", pipeline="solo", unique=True, fingerprint="f1")
        reply = await harness.submit("r2", pipeline="solo", unique=True, fingerprint="f2", key="k2")
        assert reply == Submitted("r1", False, "queued", conflict=False)

    @store_test
    async def test_a_finished_run_gives_its_unique_slot_back(self, harness: StoreHarness) -> None:
        for number, outcome in enumerate(("succeeded", "failed")):
            run = f"r{number}"
            epoch = await harness.start(run, pipeline="solo", unique=True)
            await harness.settle(run, epoch, outcome)
        assert (await harness.submit("r9", pipeline="solo", unique=True)).created

    @store_test
    async def test_a_key_is_asked_before_the_unique_slot(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1", pipeline="solo", unique=True, key="k1")
        await harness.settle("r1", epoch, "succeeded")
        await harness.submit("r2", pipeline="solo", unique=True, key="k2")
        reply = await harness.submit("r3", pipeline="solo", unique=True, key="k1")
        assert reply == Submitted("r1", False, "succeeded")

    @store_test
    async def test_a_delayed_run_is_not_claimed_before_its_time(
        self, harness: StoreHarness
    ) -> None:
        await harness.submit("r1", delay=60.0)
        assert (await harness.run("r1")).available == harness.clock.now() + 60.0
        harness.clock.advance(59.0)
        assert await harness.claim() == []
        harness.clock.advance(1.0)
        assert [claim.run for claim in await harness.claim()] == ["r1"]

    @store_test
    async def test_results_taken_over_are_stored_under_epoch_zero(
        self, harness: StoreHarness
    ) -> None:
        await harness.submit("r1", checkpoints=results("a", "b"))
        checkpoints = await harness.store.checkpoints("r1")
        assert [(c.step, c.key, c.value, c.epoch) for c in checkpoints] == [
            ("a", "", "1", 0),
            ("b", "", "1", 0),
        ]
        assert await harness.events("r1") == ["run.queued"]

    @store_test
    async def test_thousands_of_results_are_taken_over(self, harness: StoreHarness) -> None:
        items = [Checkpoint("s", f"i{number}", "1", "c", "t", "f", "{}") for number in range(5_000)]
        await harness.submit("r1", checkpoints=[*results("a"), *items])
        assert len(await harness.store.checkpoints("r1", "s")) == 5_000
        assert [claim.resumed for claim in await harness.claim()] == [True]

    @store_test
    async def test_results_are_not_taken_over_by_a_run_that_was_not_created(
        self, harness: StoreHarness
    ) -> None:
        await harness.submit("r1", key="k1")
        await harness.submit("r2", key="k1", checkpoints=results("a"))
        assert await harness.store.checkpoints("r1") == []
        assert await harness.store.checkpoints("r2") == []

    @store_test
    async def test_a_result_taken_over_can_be_replaced_by_a_new_one(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1", checkpoints=results("s"))
        await harness.do(a_checkpoint("r1", epoch, "s", value="2"))
        [checkpoint] = await harness.store.checkpoints("r1")
        assert (checkpoint.value, checkpoint.epoch) == ("2", epoch)
        assert (await harness.events("r1"))[-1] == "step.completed"

    @store_test
    async def test_any_text_survives(self, harness: StoreHarness) -> None:
        text = '"naïve ☃ 𝄞 \\u0000 \' % {} $1 ?1 :x"'
        await harness.submit("r1", input=text, key="k ' ☃", tenant="t\"'")
        run = await harness.run("r1")
        assert (run.input, run.key, run.tenant) == (text, "k ' ☃", "t\"'")

    @store_test
    async def test_what_was_accepted_survives_the_store_object(self, harness: StoreHarness) -> None:
        if not harness.store.features.durable:
            return
        epoch = await harness.start("r1", key="k1")
        await harness.do(a_checkpoint("r1", epoch))
        before = await harness.everything("r1")
        await harness.store.close()
        harness.store = harness.make_store(harness.clock)
        await harness.store.open()
        assert await harness.everything("r1") == before
        assert await harness.submit("r2", key="k1") == Submitted("r1", False, "running")
        harness.clock.advance(TTL - 1.0)
        assert await harness.do(a_checkpoint("r1", epoch, "t")) is None

    @store_test
    async def test_opening_and_closing_twice_is_harmless(self, harness: StoreHarness) -> None:
        await harness.store.open()
        await harness.do(a_submit("r1"))
        assert await harness.state("r1") == "queued"
        other = harness.make_store(harness.clock)
        await other.open()
        await other.close()
        await other.close()
