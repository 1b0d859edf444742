"""The fence: a worker that no longer holds the lease can't write anything."""

from __future__ import annotations

from holdfast.model.commands import (
    STALE,
    Cancel,
    Command,
    LogLine,
    PauseRun,
    Quarantine,
    Renew,
    Resume,
    SaveProgress,
    Settle,
)
from holdfast.testing.contracts.store_topics.harness import (
    TTL,
    StoreHarness,
    StoreTopics,
    a_checkpoint,
    an_error,
    store_test,
)


def fenced_writes(run: str, epoch: int) -> list[Command]:
    """Every command that carries run and epoch, in every shape that writes something else."""
    error = an_error("too late")
    return [
        a_checkpoint(run, epoch, "new"),
        a_checkpoint(run, epoch, "new", skipped=True),
        a_checkpoint(run, epoch, "old", value="2"),
        a_checkpoint(run, epoch, "old", "item"),
        Quarantine(run, epoch, "old", "", "bad"),
        SaveProgress(run, epoch, '{"steps":{"s":{"step":"s","status":"failed"}}}'),
        LogLine(run, epoch, "info", "s", "late"),
        Settle(run, epoch, "succeeded", result="2", last=a_checkpoint(run, epoch, "new")),
        Settle(run, epoch, "failed", error=error),
        Settle(run, epoch, "paused", reason="late"),
        Settle(run, epoch, "retry", error=error, delay=5.0),
        Settle(run, epoch, "handover"),
    ]


async def started(harness: StoreHarness) -> int:
    epoch = await harness.start("r1")
    assert await harness.do(a_checkpoint("r1", epoch, "old")) is None
    return epoch


async def assert_fenced_off(harness: StoreHarness, epoch: int) -> None:
    """Every fenced write is refused: alone, in a batch, and as a renewal."""
    before = await harness.everything("r1")
    for command in fenced_writes("r1", epoch):
        assert await harness.do(command) == STALE, command
        assert await harness.everything("r1") == before, command
    writes = fenced_writes("r1", epoch)
    assert await harness.apply(*writes) == [STALE] * len(writes)
    assert await harness.do(Renew([("r1", epoch)], TTL)) == [("r1", epoch)]
    assert await harness.everything("r1") == before


class FenceTopics(StoreTopics):
    @store_test
    async def test_a_stale_epoch_can_write_nothing(self, harness: StoreHarness) -> None:
        epoch = await started(harness)
        await harness.lose_worker()
        await harness.restart("r1")
        await assert_fenced_off(harness, epoch)

    @store_test
    async def test_an_epoch_that_was_never_given_out_can_write_nothing(
        self, harness: StoreHarness
    ) -> None:
        epoch = await started(harness)
        await assert_fenced_off(harness, epoch + 1)
        await assert_fenced_off(harness, 0)

    @store_test
    async def test_after_the_lease_ended_nothing_is_written_even_before_the_sweep(
        self, harness: StoreHarness
    ) -> None:
        epoch = await started(harness)
        harness.clock.advance(TTL)
        await assert_fenced_off(harness, epoch)

    @store_test
    async def test_after_the_sweep_nothing_is_written(self, harness: StoreHarness) -> None:
        epoch = await started(harness)
        await harness.lose_worker()
        await assert_fenced_off(harness, epoch)

    @store_test
    async def test_after_a_cancel_nothing_is_written(self, harness: StoreHarness) -> None:
        epoch = await started(harness)
        assert await harness.do(Cancel("r1", "ann", "enough")) is None
        await assert_fenced_off(harness, epoch)
        await assert_fenced_off(harness, epoch + 1)

    @store_test
    async def test_after_a_pause_nothing_is_written(self, harness: StoreHarness) -> None:
        epoch = await started(harness)
        assert await harness.do(PauseRun("r1", "ann", "wait")) is None
        await assert_fenced_off(harness, epoch)
        await assert_fenced_off(harness, epoch + 1)

    @store_test
    async def test_after_a_pause_and_a_resume_the_old_worker_writes_nothing(
        self, harness: StoreHarness
    ) -> None:
        epoch = await started(harness)
        await harness.apply(PauseRun("r1", "ann"), Resume("r1", "ann"))
        await assert_fenced_off(harness, epoch)
        assert await harness.restart("r1") > epoch
        await assert_fenced_off(harness, epoch)

    @store_test
    async def test_whatever_ended_the_attempt_nothing_is_written_after_it(
        self, harness: StoreHarness
    ) -> None:
        await self._ended(harness, "succeeded")

    @store_test
    async def test_after_a_failure_nothing_is_written(self, harness: StoreHarness) -> None:
        await self._ended(harness, "failed")

    @store_test
    async def test_after_a_step_paused_the_run_nothing_is_written(
        self, harness: StoreHarness
    ) -> None:
        await self._ended(harness, "paused")

    @store_test
    async def test_after_a_retry_was_scheduled_nothing_is_written(
        self, harness: StoreHarness
    ) -> None:
        await self._ended(harness, "retry")

    @store_test
    async def test_after_a_hand_over_nothing_is_written(self, harness: StoreHarness) -> None:
        await self._ended(harness, "handover")

    async def _ended(self, harness: StoreHarness, outcome: str) -> None:
        epoch = await started(harness)
        assert await harness.settle("r1", epoch, outcome) is None
        await assert_fenced_off(harness, epoch)

    @store_test
    async def test_a_run_that_was_never_claimed_can_not_be_written_to(
        self, harness: StoreHarness
    ) -> None:
        await harness.submit("r1")
        await assert_fenced_off(harness, 0)
        await assert_fenced_off(harness, 1)

    @store_test
    async def test_a_run_that_does_not_exist_can_not_be_written_to(
        self, harness: StoreHarness
    ) -> None:
        writes = fenced_writes("nobody", 1)
        assert await harness.apply(*writes) == [STALE] * len(writes)
        assert await harness.store.run("nobody") is None
        assert await harness.store.history("nobody") == []

    @store_test
    async def test_a_refusal_is_one_commands_own_answer(self, harness: StoreHarness) -> None:
        epoch = await started(harness)
        await harness.start("r2")
        replies = await harness.apply(
            a_checkpoint("r1", epoch, "a"),
            a_checkpoint("r1", epoch - 1, "b"),
            a_checkpoint("r2", 1, "c"),
            a_checkpoint("r2", 9, "d"),
        )
        assert replies == [None, STALE, None, STALE]
        assert [c.step for c in await harness.store.checkpoints("r1")] == ["a", "old"]
        assert [c.step for c in await harness.store.checkpoints("r2")] == ["c"]

    @store_test
    async def test_the_holder_can_write_all_of_it(self, harness: StoreHarness) -> None:
        """The other side of the fence: the very commands refused above are accepted from the
        holder."""
        for number in range(len(fenced_writes("", 0))):
            run = f"h{number}"
            epoch = await harness.start(run)
            await harness.do(a_checkpoint(run, epoch, "old"))
            before = await harness.everything(run)
            assert await harness.do(fenced_writes(run, epoch)[number]) != STALE
            assert await harness.everything(run) != before
