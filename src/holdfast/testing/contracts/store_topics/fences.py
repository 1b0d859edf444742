"""The fence: who no longer holds the lease can write nothing at all."""

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
from holdfast.testing.contracts.store_topics.scene import (
    TTL,
    Scene,
    StoreTopics,
    a_checkpoint,
    an_error,
    story,
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


async def started(scene: Scene) -> int:
    epoch = await scene.start("r1")
    assert await scene.do(a_checkpoint("r1", epoch, "old")) is None
    return epoch


async def assert_fenced_off(scene: Scene, epoch: int) -> None:
    """Nothing gets through: not one by one, not as a batch, not by renewing."""
    before = await scene.everything("r1")
    for command in fenced_writes("r1", epoch):
        assert await scene.do(command) == STALE, command
        assert await scene.everything("r1") == before, command
    writes = fenced_writes("r1", epoch)
    assert await scene.apply(*writes) == [STALE] * len(writes)
    assert await scene.do(Renew([("r1", epoch)], TTL)) == [("r1", epoch)]
    assert await scene.everything("r1") == before


class FenceTopics(StoreTopics):
    @story
    async def test_a_stale_epoch_can_write_nothing(self, scene: Scene) -> None:
        epoch = await started(scene)
        await scene.lose_worker()
        await scene.restart("r1")
        await assert_fenced_off(scene, epoch)

    @story
    async def test_an_epoch_that_was_never_given_out_can_write_nothing(self, scene: Scene) -> None:
        epoch = await started(scene)
        await assert_fenced_off(scene, epoch + 1)
        await assert_fenced_off(scene, 0)

    @story
    async def test_after_the_lease_ended_nothing_is_written_even_before_the_sweep(
        self, scene: Scene
    ) -> None:
        epoch = await started(scene)
        scene.clock.advance(TTL)
        await assert_fenced_off(scene, epoch)

    @story
    async def test_after_the_sweep_nothing_is_written(self, scene: Scene) -> None:
        epoch = await started(scene)
        await scene.lose_worker()
        await assert_fenced_off(scene, epoch)

    @story
    async def test_after_a_cancel_nothing_is_written(self, scene: Scene) -> None:
        epoch = await started(scene)
        assert await scene.do(Cancel("r1", "ann", "enough")) is None
        await assert_fenced_off(scene, epoch)
        await assert_fenced_off(scene, epoch + 1)

    @story
    async def test_after_a_pause_nothing_is_written(self, scene: Scene) -> None:
        epoch = await started(scene)
        assert await scene.do(PauseRun("r1", "ann", "wait")) is None
        await assert_fenced_off(scene, epoch)
        await assert_fenced_off(scene, epoch + 1)

    @story
    async def test_after_a_pause_and_a_resume_the_old_worker_writes_nothing(
        self, scene: Scene
    ) -> None:
        epoch = await started(scene)
        await scene.apply(PauseRun("r1", "ann"), Resume("r1", "ann"))
        await assert_fenced_off(scene, epoch)
        assert await scene.restart("r1") > epoch
        await assert_fenced_off(scene, epoch)

    @story
    async def test_whatever_ended_the_attempt_nothing_is_written_after_it(
        self, scene: Scene
    ) -> None:
        await self._ended(scene, "succeeded")

    @story
    async def test_after_a_failure_nothing_is_written(self, scene: Scene) -> None:
        await self._ended(scene, "failed")

    @story
    async def test_after_a_step_paused_the_run_nothing_is_written(self, scene: Scene) -> None:
        await self._ended(scene, "paused")

    @story
    async def test_after_a_retry_was_scheduled_nothing_is_written(self, scene: Scene) -> None:
        await self._ended(scene, "retry")

    @story
    async def test_after_a_hand_over_nothing_is_written(self, scene: Scene) -> None:
        await self._ended(scene, "handover")

    async def _ended(self, scene: Scene, outcome: str) -> None:
        epoch = await started(scene)
        assert await scene.settle("r1", epoch, outcome) is None
        await assert_fenced_off(scene, epoch)

    @story
    async def test_a_run_that_was_never_claimed_can_not_be_written_to(self, scene: Scene) -> None:
        await scene.submit("r1")
        await assert_fenced_off(scene, 0)
        await assert_fenced_off(scene, 1)

    @story
    async def test_a_run_that_does_not_exist_can_not_be_written_to(self, scene: Scene) -> None:
        writes = fenced_writes("nobody", 1)
        assert await scene.apply(*writes) == [STALE] * len(writes)
        assert await scene.store.run("nobody") is None
        assert await scene.store.history("nobody") == []

    @story
    async def test_a_refusal_is_one_commands_own_answer(self, scene: Scene) -> None:
        epoch = await started(scene)
        await scene.start("r2")
        replies = await scene.apply(
            a_checkpoint("r1", epoch, "a"),
            a_checkpoint("r1", epoch - 1, "b"),
            a_checkpoint("r2", 1, "c"),
            a_checkpoint("r2", 9, "d"),
        )
        assert replies == [None, STALE, None, STALE]
        assert [c.step for c in await scene.store.checkpoints("r1")] == ["a", "old"]
        assert [c.step for c in await scene.store.checkpoints("r2")] == ["c"]

    @story
    async def test_the_holder_can_write_all_of_it(self, scene: Scene) -> None:
        """The other side of the fence: the very commands refused above are accepted from the
        holder."""
        for number in range(len(fenced_writes("", 0))):
            run = f"h{number}"
            epoch = await scene.start(run)
            await scene.do(a_checkpoint(run, epoch, "old"))
            before = await scene.everything(run)
            assert await scene.do(fenced_writes(run, epoch)[number]) != STALE
            assert await scene.everything(run) != before
