"""Settling: one transaction ends the attempt, with everything that follows from it."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.model.commands import STALE, Settle
from holdfast.testing.contracts.store_topics.harness import (
    StoreHarness,
    StoreTopics,
    a_checkpoint,
    an_error,
    store_test,
)

PROGRESS = '{"steps":{"s":{"step":"s","status":"completed","done":3}}}'


class SettlingTopics(StoreTopics):
    @store_test
    async def test_a_run_succeeds_with_its_result_and_its_last_checkpoint(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        harness.clock.advance(5.0)
        last = a_checkpoint("r1", epoch, "s", value='"☃"')
        ended = Settle(
            "r1", epoch, "succeeded", result='"☃"', last=last, progress=PROGRESS, execution_ms=5000
        )
        assert await harness.do(replace(ended, checksum="c1")) is None
        run = await harness.run("r1")
        assert (run.state, run.result, run.error) == ("succeeded", '"☃"', None)
        assert run.result_checksum == "c1"
        assert (run.finished, run.attempts, run.epoch) == (harness.clock.now(), 1, epoch)
        assert run.progress.steps["s"].done == 3
        assert [c.value for c in await harness.store.checkpoints("r1")] == ['"☃"']
        assert (await harness.events("r1"))[2:] == ["step.completed", "run.completed"]
        data = {"attempt": 1, "execution_time_ms": 5000}
        assert await harness.last_event("r1") == ("run.completed", data)
        assert run.events == 4
        assert await harness.store.dead_letters() == []

    @store_test
    async def test_a_last_step_that_was_skipped_says_so(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        await harness.settle(
            "r1", epoch, "succeeded", last=a_checkpoint("r1", epoch, "s", skipped=True)
        )
        assert (await harness.events("r1"))[2:] == ["step.skipped", "run.completed"]

    @store_test
    async def test_a_last_checkpoint_saved_before_completes_its_step_once(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        last = a_checkpoint("r1", epoch, "s")
        await harness.do(last)
        await harness.settle("r1", epoch, "succeeded", last=last)
        assert (await harness.events("r1"))[2:] == ["step.completed", "run.completed"]

    @store_test
    async def test_a_success_forgets_the_error_of_an_earlier_attempt(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        await harness.settle("r1", epoch, "retry")
        await harness.settle("r1", await harness.restart("r1"), "succeeded", result="1")
        assert (await harness.run("r1")).error is None

    @store_test
    async def test_finished_is_final_and_written_once(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        settle = Settle("r1", epoch, "succeeded", result="1")
        assert await harness.do(settle) is None
        before = await harness.everything("r1")
        assert await harness.do(settle) == STALE
        assert await harness.everything("r1") == before
        assert await harness.claim() == []

    @store_test
    async def test_a_run_fails_with_its_error_and_one_dead_letter(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1", input='{"a":"☃"}', tenant="acme")
        harness.clock.advance(5.0)
        error = an_error("no such file", "Permanent")
        await harness.settle("r1", epoch, "failed", error=error, execution_ms=77)
        run = await harness.run("r1")
        assert run.error is not None
        assert (run.state, run.finished, run.result) == ("failed", harness.clock.now(), None)
        assert (run.error.name, run.error.message) == ("Permanent", "no such file")
        expected = {
            "error": {"name": "Permanent", "message": "no such file"},
            "attempt": 1,
            "execution_time_ms": 77,
        }
        assert await harness.last_event("r1") == ("run.failed", expected)
        letter = await harness.dead_letter("r1")
        assert (letter.id, letter.source, letter.run, letter.tenant) == (
            "run:r1",
            "run",
            "r1",
            "acme",
        )
        assert (letter.body, letter.reason) == ('{"a":"☃"}'.encode(), "Permanent: no such file")
        assert letter.attributes == {"pipeline": "report", "attempts": "1"}
        assert (letter.created, letter.closed, letter.resolution) == (
            harness.clock.now(),
            None,
            None,
        )
        assert await harness.store.dead_letters() == [letter]

    @store_test
    async def test_a_failed_run_is_not_claimed_again(self, harness: StoreHarness) -> None:
        await harness.fail("r1")
        assert await harness.claim() == []

    @store_test
    async def test_a_step_can_pause_its_run_and_the_attempt_does_not_count(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        await harness.settle("r1", epoch, "paused", reason="over budget")
        run = await harness.run("r1")
        assert (run.state, run.reason, run.attempts, run.finished) == (
            "paused",
            "over budget",
            0,
            None,
        )
        assert await harness.last_event("r1") == ("run.paused", {"reason": "over budget"})
        assert await harness.claim() == []

    @store_test
    async def test_a_retry_waits_for_its_delay(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        await harness.settle("r1", epoch, "retry", delay=60.0, error=an_error("busy", "Transient"))
        run = await harness.run("r1")
        assert (run.state, run.attempts, run.finished) == ("queued", 1, None)
        assert run.available == harness.clock.now() + 60.0
        error = {"name": "Transient", "message": "busy"}
        assert await harness.last_event("r1") == (
            "run.retrying",
            {"attempt": 1, "delay": 60.0, "error": error},
        )
        harness.clock.advance(59.0)
        assert await harness.claim() == []
        harness.clock.advance(1.0)
        assert await harness.restart("r1") == epoch + 1
        assert (await harness.run("r1")).attempts == 2

    @store_test
    async def test_a_retry_without_delay_is_claimable_at_once(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        await harness.settle("r1", epoch, "retry")
        assert await harness.restart("r1") == epoch + 1

    @store_test
    async def test_a_waiting_retry_is_overtaken_in_a_parallel_lane(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        await harness.submit("r2")
        await harness.settle("r1", epoch, "retry", delay=60.0)
        assert [claim.run for claim in await harness.claim(limit=9)] == ["r2"]

    @store_test
    async def test_a_retry_keeps_its_place_in_the_queue(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        await harness.submit("r2")
        await harness.settle("r1", epoch, "retry")
        assert [claim.run for claim in await harness.claim(limit=9)] == ["r1", "r2"]

    @store_test
    async def test_a_retry_after_the_last_attempt_is_a_failure(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1", max_attempts=2)
        await harness.settle("r1", epoch, "retry")
        epoch = await harness.restart("r1")
        await harness.settle(
            "r1", epoch, "retry", delay=5.0, error=an_error("still busy", "Transient")
        )
        run = await harness.run("r1")
        assert run.error is not None
        assert (run.state, run.error.message, run.available) == ("failed", "still busy", None)
        assert (await harness.last_event("r1"))[0] == "run.failed"
        assert (await harness.dead_letter("r1")).reason == "Transient: still busy"

    @store_test
    async def test_a_deferred_retry_does_not_count(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1", max_attempts=1)
        settle = Settle(
            "r1", epoch, "retry", error=an_error("not today"), delay=60.0, deferred=True
        )
        assert await harness.do(settle) is None
        run = await harness.run("r1")
        assert (run.state, run.attempts, run.available) == ("queued", 0, harness.clock.now() + 60.0)

    @store_test
    async def test_a_hand_over_is_claimable_at_once_and_does_not_count(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1", max_attempts=1)
        for _ in range(3):
            await harness.settle("r1", epoch, "handover", progress=PROGRESS)
            run = await harness.run("r1")
            assert (run.state, run.attempts, run.available) == ("queued", 0, None)
            assert await harness.last_event("r1") == ("run.handed_over", {})
            [claimed] = await harness.claim()
            assert (claimed.attempt, claimed.epoch, claimed.progress) == (1, epoch + 1, PROGRESS)
            epoch = claimed.epoch

    @store_test
    async def test_an_attempt_that_ends_early_can_leave_its_last_checkpoint(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        await harness.settle("r1", epoch, "handover", last=a_checkpoint("r1", epoch, "s"))
        assert [c.step for c in await harness.store.checkpoints("r1")] == ["s"]
        assert (await harness.events("r1"))[2:] == ["step.completed", "run.handed_over"]

    @store_test
    async def test_settling_one_run_leaves_the_others_alone(self, harness: StoreHarness) -> None:
        for run in ("r1", "r2", "r3"):
            await harness.start(run)
        before = [await harness.everything(run) for run in ("r1", "r3")]
        await harness.settle("r2", 1, "failed")
        assert [await harness.everything(run) for run in ("r1", "r3")] == before
