"""What people do to runs: cancel, pause, resume. Each intervention leaves an audit entry."""

from __future__ import annotations

from holdfast.model.commands import Cancel, PauseRun, Refused, Resume
from holdfast.testing.contracts.store_topics.harness import (
    StoreHarness,
    StoreTopics,
    a_checkpoint,
    store_test,
)


async def audited(harness: StoreHarness) -> list[tuple[str, str, str]]:
    return [(entry.actor, entry.target, entry.reason) for entry in await harness.store.audit()]


class OperationTopics(StoreTopics):
    # --- cancel ---

    @store_test
    async def test_every_live_run_can_be_cancelled_at_once(self, harness: StoreHarness) -> None:
        await harness.start("running")
        await harness.submit("queued")
        await harness.submit("paused")
        await harness.do(PauseRun("paused", "ann"))
        for run in ("running", "queued", "paused"):
            before = (await harness.run(run)).epoch
            assert await harness.do(Cancel(run, "ann", "not needed")) is None
            after = await harness.run(run)
            assert (after.state, after.epoch, after.reason) == (
                "cancelled",
                before + 1,
                "not needed",
            )
            assert after.finished == harness.clock.now()
            expected = {"from": run, "actor": "ann", "reason": "not needed"}
            assert await harness.last_event(run) == ("run.cancelled", expected)
        assert await harness.claim(limit=9) == []

    @store_test
    async def test_a_finished_run_can_not_be_cancelled(self, harness: StoreHarness) -> None:
        await harness.settle("r1", await harness.start("r1"), "succeeded", result="1")
        await harness.fail("r2")
        await harness.submit("r3")
        await harness.do(Cancel("r3", "ann"))
        for run, state in (("r1", "succeeded"), ("r2", "failed"), ("r3", "cancelled")):
            before = await harness.everything(run)
            assert await harness.do(Cancel(run, "ann")) == Refused(state)
            assert await harness.everything(run) == before

    @store_test
    async def test_a_cancelled_run_never_changes(self, harness: StoreHarness) -> None:
        await harness.submit("r1")
        await harness.do(Cancel("r1", "ann"))
        before = await harness.everything("r1")
        replies = await harness.apply(
            Resume("r1", "ann"), PauseRun("r1", "ann"), Cancel("r1", "bob")
        )
        assert replies == [Refused("cancelled")] * 3
        assert await harness.everything("r1") == before

    @store_test
    async def test_a_succeeded_run_never_changes(self, harness: StoreHarness) -> None:
        await harness.settle("r1", await harness.start("r1"), "succeeded", result="1")
        before = await harness.everything("r1")
        replies = await harness.apply(
            Resume("r1", "ann"), PauseRun("r1", "ann"), Cancel("r1", "bob")
        )
        assert replies == [Refused("succeeded")] * 3
        assert await harness.everything("r1") == before

    @store_test
    async def test_a_run_that_does_not_exist_is_refused_without_a_state(
        self, harness: StoreHarness
    ) -> None:
        replies = await harness.apply(Cancel("x", "ann"), PauseRun("x", "ann"), Resume("x", "ann"))
        assert replies == [Refused(None)] * 3
        assert await harness.store.audit() == []

    # --- pause ---

    @store_test
    async def test_a_queued_run_is_paused(self, harness: StoreHarness) -> None:
        await harness.submit("r1")
        assert await harness.do(PauseRun("r1", "ann", "wait")) is None
        run = await harness.run("r1")
        assert (run.state, run.reason, run.epoch, run.attempts) == ("paused", "wait", 1, 0)
        data = {"from": "queued", "actor": "ann", "reason": "wait"}
        assert await harness.last_event("r1") == ("run.paused", data)
        assert await harness.claim() == []

    @store_test
    async def test_a_running_run_is_paused_and_the_attempt_does_not_count(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        assert await harness.do(PauseRun("r1", "ann", "wait")) is None
        run = await harness.run("r1")
        assert (run.state, run.epoch, run.attempts, run.finished) == ("paused", epoch + 1, 0, None)

    @store_test
    async def test_only_queued_and_running_runs_can_be_paused(self, harness: StoreHarness) -> None:
        await harness.fail("failed")
        await harness.submit("paused")
        await harness.do(PauseRun("paused", "ann"))
        for run in ("failed", "paused"):
            before = await harness.everything(run)
            assert await harness.do(PauseRun(run, "ann")) == Refused(run)
            assert await harness.everything(run) == before

    @store_test
    async def test_a_paused_run_is_not_swept(self, harness: StoreHarness) -> None:
        await harness.start("r1")
        await harness.do(PauseRun("r1", "ann"))
        assert await harness.lose_worker() == []

    # --- resume ---

    @store_test
    async def test_a_paused_run_goes_on_where_it_was(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        await harness.do(a_checkpoint("r1", epoch))
        await harness.submit("r2")
        await harness.do(PauseRun("r1", "ann", "wait"))
        assert await harness.do(Resume("r1", "bob", attempts=2)) is None
        run = await harness.run("r1")
        assert (run.state, run.reason, run.attempts, run.attempt_limit) == ("queued", None, 0, 2)
        type, data = await harness.last_event("r1")
        assert (type, data["actor"]) == ("run.resumed", "bob")
        claimed = await harness.claim(limit=9)
        assert [(claim.run, claim.resumed) for claim in claimed] == [("r1", True), ("r2", False)]
        assert len(await harness.store.checkpoints("r1")) == 1

    @store_test
    async def test_a_failed_run_is_reopened_with_more_attempts(self, harness: StoreHarness) -> None:
        await harness.fail("r1", max_attempts=1)
        assert await harness.do(Resume("r1", "ann", attempts=2)) is None
        run = await harness.run("r1")
        assert (run.state, run.error, run.finished) == ("queued", None, None)
        assert (run.attempts, run.attempt_limit) == (1, 3)
        assert await harness.restart("r1") == 2
        assert await harness.lose_worker() == [("r1", "queued")]
        assert await harness.restart("r1") == 3
        assert await harness.lose_worker() == [("r1", "failed")]

    @store_test
    async def test_a_delay_is_over_when_somebody_pauses_and_resumes(
        self, harness: StoreHarness
    ) -> None:
        await harness.submit("r1", delay=600.0)
        await harness.apply(PauseRun("r1", "ann"), Resume("r1", "ann"))
        assert await harness.restart("r1") == 2

    @store_test
    async def test_a_run_is_not_resumed_by_who_has_seen_an_earlier_attempt(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        await harness.settle("r1", epoch, "failed", error='{"name":"E","message":"m"}')
        assert await harness.do(Resume("r1", "m", 5, "m-1", epoch - 1)) == Refused("failed")
        assert await harness.do(Resume("r1", "m", 5, "m-1", epoch)) is None
        assert await harness.do(Resume("r1", "m", 5, "m-1", epoch)) == Refused("queued")

    @store_test
    async def test_only_paused_and_failed_runs_are_resumed(self, harness: StoreHarness) -> None:
        await harness.start("running")
        await harness.submit("queued")
        for run in ("running", "queued"):
            before = await harness.everything(run)
            assert await harness.do(Resume(run, "ann")) == Refused(run)
            assert await harness.everything(run) == before

    @store_test
    async def test_a_failed_run_is_not_resumed_while_its_unique_slot_is_taken(
        self, harness: StoreHarness
    ) -> None:
        await harness.fail("r1", pipeline="solo", unique=True)
        await harness.submit("r2", pipeline="solo", unique=True)
        before = await harness.everything("r1")
        assert await harness.do(Resume("r1", "ann")) == Refused("failed", "r2")
        assert await harness.everything("r1") == before
        await harness.do(Cancel("r2", "ann"))
        assert await harness.do(Resume("r1", "ann")) is None
        reply = await harness.submit("r3", pipeline="solo", unique=True)
        assert (reply.run, reply.created) == ("r1", False)

    @store_test
    async def test_a_paused_run_keeps_its_unique_slot(self, harness: StoreHarness) -> None:
        await harness.submit("r1", pipeline="solo", unique=True)
        await harness.do(PauseRun("r1", "ann"))
        assert (await harness.submit("r2", pipeline="solo", unique=True)).run == "r1"
        assert await harness.do(Resume("r1", "ann")) is None

    @store_test
    async def test_a_cancelled_run_gives_its_unique_slot_back(self, harness: StoreHarness) -> None:
        await harness.submit("r1", pipeline="solo", unique=True)
        await harness.do(Cancel("r1", "ann"))
        assert (await harness.submit("r2", pipeline="solo", unique=True)).created

    # --- audit ---

    @store_test
    async def test_interventions_are_audited_newest_first(self, harness: StoreHarness) -> None:
        await harness.submit("r1")
        await harness.do(PauseRun("r1", "ann", "a"))
        harness.clock.advance(1.0)
        await harness.do(Resume("r1", "bob"))
        harness.clock.advance(1.0)
        await harness.do(Cancel("r1", "eve", "c"))
        assert await audited(harness) == [("eve", "r1", "c"), ("bob", "r1", ""), ("ann", "r1", "a")]
        entries = await harness.store.audit(limit=2)
        assert [entry.at for entry in entries] == [harness.clock.now(), harness.clock.now() - 1.0]
        assert len({entry.action for entry in await harness.store.audit()}) == 3

    @store_test
    async def test_a_refused_intervention_is_not_audited(self, harness: StoreHarness) -> None:
        await harness.submit("r1")
        await harness.do(Resume("r1", "ann"))
        assert await harness.store.audit() == []
