"""Checkpoints, quarantine, progress and logs: what an attempt leaves behind."""

from __future__ import annotations

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import LogLine, Quarantine, SaveProgress
from holdfast.testing.contracts.store_topics.harness import (
    StoreHarness,
    StoreTopics,
    a_checkpoint,
    store_test,
)

LOG_LIMIT = 10_000


class CheckpointTopics(StoreTopics):
    @store_test
    async def test_a_checkpoint_is_read_back_as_it_was_saved(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        value = '{"text":"naïve ☃ \\u0000"}'
        await harness.do(
            a_checkpoint(
                "r1",
                epoch,
                "s",
                value=value,
                checksum="c1",
                schema="t1",
                fingerprint="f1",
                record='{"n":7}',
            )
        )
        assert await harness.store.checkpoints("r1") == [
            Checkpoint("s", "", value, "c1", "t1", "f1", '{"n":7}', epoch)
        ]

    @store_test
    async def test_a_step_writes_an_event_with_its_record(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        await harness.do(a_checkpoint("r1", epoch, "s", record='{"step":"s","done":3}'))
        assert await harness.last_event("r1") == ("step.completed", {"step": "s", "done": 3})

    @store_test
    async def test_a_skipped_step_says_so(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        await harness.do(a_checkpoint("r1", epoch, "s", skipped=True))
        assert await harness.last_event("r1") == ("step.skipped", {"n": 1})

    @store_test
    async def test_an_item_writes_no_event(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        await harness.do(a_checkpoint("r1", epoch, "s", "i1"))
        assert await harness.events("r1") == ["run.queued", "run.started"]
        assert [(c.step, c.key) for c in await harness.store.checkpoints("r1")] == [("s", "i1")]

    @store_test
    async def test_a_repeated_checkpoint_replaces_the_value_and_nothing_else(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        await harness.do(a_checkpoint("r1", epoch, "s", value="1"))
        history = await harness.store.history("r1")
        assert await harness.do(a_checkpoint("r1", epoch, "s", value="2")) is None
        assert await harness.store.history("r1") == history
        assert [c.value for c in await harness.store.checkpoints("r1")] == ["2"]

    @store_test
    async def test_steps_and_items_do_not_overwrite_one_another(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        await harness.start("r2")
        await harness.apply(
            a_checkpoint("r1", epoch, "a", value="1"),
            a_checkpoint("r1", epoch, "a", "i1", value="2"),
            a_checkpoint("r1", epoch, "a", "i2", value="3"),
            a_checkpoint("r1", epoch, "b", "i1", value="4"),
            a_checkpoint("r2", epoch, "a", value="5"),
        )
        values = {(c.step, c.key): c.value for c in await harness.store.checkpoints("r1")}
        assert values == {("a", ""): "1", ("a", "i1"): "2", ("a", "i2"): "3", ("b", "i1"): "4"}
        assert {c.key for c in await harness.store.checkpoints("r1", "a")} == {"", "i1", "i2"}
        assert await harness.store.checkpoints("r1", "zzz") == []
        assert [c.value for c in await harness.store.checkpoints("r2")] == ["5"]

    @store_test
    async def test_checkpoints_outlive_the_attempt(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        await harness.do(a_checkpoint("r1", epoch, "s"))
        await harness.lose_worker()
        await harness.restart("r1")
        assert [(c.step, c.epoch) for c in await harness.store.checkpoints("r1")] == [("s", epoch)]

    # --- quarantine ---

    @store_test
    async def test_a_quarantined_checkpoint_is_kept_aside(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        await harness.apply(a_checkpoint("r1", epoch, "s"), a_checkpoint("r1", epoch, "s", "i1"))
        assert await harness.do(Quarantine("r1", epoch, "s", "i1", "damaged")) == 1
        assert [c.key for c in await harness.store.checkpoints("r1")] == [""]
        assert await harness.store.quarantined("r1") == [("s", "i1", "damaged")]
        expected = {"step": "s", "key": "i1", "reason": "damaged"}
        assert await harness.last_event("r1") == ("checkpoint.quarantined", expected)

    @store_test
    async def test_quarantine_counts_what_a_step_lost_in_this_run_so_far(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        await harness.start("r2")
        for key in ("i1", "i2", ""):
            await harness.do(a_checkpoint("r1", epoch, "s", key))
        await harness.apply(a_checkpoint("r1", epoch, "t"), a_checkpoint("r2", 1, "s"))
        assert await harness.do(Quarantine("r1", epoch, "s", "i1", "a")) == 1
        assert await harness.do(Quarantine("r1", epoch, "t", "", "b")) == 1
        assert await harness.do(Quarantine("r2", 1, "s", "", "c")) == 1
        assert await harness.do(Quarantine("r1", epoch, "s", "i2", "d")) == 2
        assert await harness.do(Quarantine("r1", epoch, "s", "", "e")) == 3
        listed = await harness.store.quarantined("r1")
        assert [reason for _, _, reason in listed] == ["a", "b", "d", "e"]

    @store_test
    async def test_the_count_goes_on_in_the_next_attempt(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        await harness.apply(a_checkpoint("r1", epoch, "s"), Quarantine("r1", epoch, "s", "", "a"))
        await harness.lose_worker()
        epoch = await harness.restart("r1")
        await harness.do(a_checkpoint("r1", epoch, "s"))
        assert await harness.do(Quarantine("r1", epoch, "s", "", "b")) == 2

    @store_test
    async def test_a_repeated_quarantine_is_counted_once(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        await harness.do(a_checkpoint("r1", epoch, "s"))
        assert await harness.do(Quarantine("r1", epoch, "s", "", "bad")) == 1
        before = await harness.everything("r1")
        assert await harness.do(Quarantine("r1", epoch, "s", "", "bad")) == 1
        assert await harness.everything("r1") == before

    @store_test
    async def test_a_step_done_again_after_quarantine_completes_again(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        await harness.do(a_checkpoint("r1", epoch, "s", value="1"))
        await harness.do(Quarantine("r1", epoch, "s", "", "bad"))
        await harness.do(a_checkpoint("r1", epoch, "s", value="2"))
        types = await harness.events("r1")
        assert types[2:] == ["step.completed", "checkpoint.quarantined", "step.completed"]
        assert [c.value for c in await harness.store.checkpoints("r1")] == ["2"]

    # --- progress and logs ---

    @store_test
    async def test_progress_is_replaced_and_writes_no_event(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        history = await harness.store.history("r1")
        for count in (1, 2):
            text = f'{{"steps":{{"s":{{"step":"s","status":"in_progress","done":{count}}}}}}}'
            assert await harness.do(SaveProgress("r1", epoch, text)) is None
        assert (await harness.run("r1")).progress.steps["s"].done == 2
        assert await harness.store.history("r1") == history

    @store_test
    async def test_log_lines_are_kept_in_order_and_write_no_event(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        history = await harness.store.history("r1")
        assert await harness.do(LogLine("r1", epoch, "info", "s", "one ☃", '{"a":1}')) is None
        harness.clock.advance(1.0)
        await harness.do(LogLine("r1", epoch, "error", "t", "two"))
        first, second = await harness.store.logs("r1")
        assert (first.level, first.step, first.message, first.fields) == (
            "info",
            "s",
            "one ☃",
            '{"a":1}',
        )
        assert (second.level, second.step, second.message, second.fields) == (
            "error",
            "t",
            "two",
            "{}",
        )
        assert (first.at, second.at) == (harness.clock.now() - 1.0, harness.clock.now())
        assert await harness.store.history("r1") == history

    @store_test
    async def test_logs_are_read_in_pages(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        await harness.start("r2")
        for number in range(5):
            await harness.apply(
                LogLine("r1", epoch, "info", "s", str(number)),
                LogLine("r2", 1, "info", "s", "other"),
            )
        page = await harness.store.logs("r1", after=1, limit=3)
        assert [line.message for line in page] == ["1", "2", "3"]
        assert [line.message for line in await harness.store.logs("r1", after=4)] == ["4"]
        assert await harness.store.logs("r1", after=5) == []

    @store_test
    async def test_a_log_stops_growing_at_its_limit(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        lines = [LogLine("r1", epoch, "info", "s", str(number)) for number in range(LOG_LIMIT + 5)]
        assert await harness.apply(*lines) == [None] * len(lines)
        await harness.do(LogLine("r1", epoch, "info", "s", "one more"))
        stored = await harness.store.logs("r1", limit=2 * LOG_LIMIT)
        assert len(stored) == LOG_LIMIT
        assert stored[-1].message == str(LOG_LIMIT - 1)
