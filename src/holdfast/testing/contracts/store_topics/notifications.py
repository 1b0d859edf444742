"""Notifications: they arrive during a wait and before it, from any thread, and none is lost."""

from __future__ import annotations

import asyncio

from holdfast.model.commands import Acquire, Cancel, ForceRelease, PauseRun, Resume, Settle, Wake
from holdfast.ports.store import Store
from holdfast.testing.contracts.store_topics.harness import (
    StoreHarness,
    StoreTopics,
    a_submit,
    store_test,
)

LONG = 60.0
"""Longer than any test may take: whoever waits this long was not notified."""
SOON = 20.0
QUIET = 0.15
"""Longer than a notification of another process takes."""


class NotificationTopics(StoreTopics):
    @store_test
    async def test_who_waits_is_notified(self, harness: StoreHarness) -> None:
        change = await harness.store.wait(0, 0.0)
        waiting = asyncio.create_task(harness.store.wait(change, LONG))
        await asyncio.sleep(0)
        await harness.submit("r1")
        assert await asyncio.wait_for(waiting, SOON) > change

    @store_test
    async def test_a_notification_between_two_waits_is_not_lost(
        self, harness: StoreHarness
    ) -> None:
        change = await harness.store.wait(0, 0.0)
        for number in range(3):
            await harness.submit(f"r{number}")
            again = await asyncio.wait_for(harness.store.wait(change, LONG), SOON)
            assert again > change
            change = again

    @store_test
    async def test_everybody_is_notified_however_late(self, harness: StoreHarness) -> None:
        change = await harness.store.wait(0, 0.0)
        await harness.submit("r1")
        first = await asyncio.wait_for(harness.store.wait(change, LONG), SOON)
        second = await asyncio.wait_for(harness.store.wait(change, LONG), SOON)
        assert first > change
        assert second > change

    @store_test
    async def test_all_who_wait_are_woken(self, harness: StoreHarness) -> None:
        change = await harness.store.wait(0, 0.0)
        waiting = [asyncio.create_task(harness.store.wait(change, LONG)) for _ in range(5)]
        await asyncio.sleep(0)
        await harness.submit("r1")
        assert min(await asyncio.wait_for(asyncio.gather(*waiting), SOON)) > change

    @store_test
    async def test_the_end_of_a_run_is_a_notification(self, harness: StoreHarness) -> None:
        epoch = await harness.start("r1")
        change = await harness.store.wait(0, 0.0)
        await harness.do(Settle("r1", epoch, "succeeded", result="1"))
        assert await asyncio.wait_for(harness.store.wait(change, LONG), SOON) > change

    @store_test
    async def test_who_waits_for_work_is_notified_of_all_that_can_be_claimed(
        self, harness: StoreHarness
    ) -> None:
        change = await harness.store.wait(0, 0.0)
        await harness.submit("r1")
        change = await self._work(harness, change)
        for outcome in ("handover", "retry", "paused"):
            [claimed] = await harness.claim()
            await harness.settle("r1", claimed.epoch, outcome)
            change = await self._work(harness, change)
        await harness.do(Resume("r1", "ann"))
        await self._work(harness, change)

    @store_test
    async def test_work_that_comes_with_an_end_is_a_notification(
        self, harness: StoreHarness
    ) -> None:
        epoch = await harness.start("r1")
        change = await harness.store.wait(0, 0.0)
        await harness.store.apply([Settle("r1", epoch, "succeeded", result="1"), a_submit("r2")])
        await self._work(harness, change)

    async def _work(self, harness: StoreHarness, change: int) -> int:
        again = await asyncio.wait_for(harness.store.wait(change, LONG, wake=Wake.WORKERS), SOON)
        assert again > change
        return again

    @store_test
    async def test_who_holds_a_lease_is_notified_when_it_is_taken_away(
        self, harness: StoreHarness
    ) -> None:
        await self._take_away(harness, harness.store)

    @store_test
    async def test_holders_are_notified_by_another_store_object(
        self, harness: StoreHarness
    ) -> None:
        if not harness.store.features.shared:
            return
        other = harness.make_store(harness.clock)
        await other.open()
        try:
            await self._take_away(harness, other)
        finally:
            await other.close()

    async def _take_away(self, harness: StoreHarness, holder: Store) -> None:
        """Cancel a run, pause one and release a lock by force, one after the other; `holder` has
        the leases."""
        await harness.start("r1")
        await harness.start("r2")
        await harness.do(Acquire("l1", "t1", "ann", 1000.0))
        interventions = [
            Cancel("r1", "ann"),
            PauseRun("r2", "ann"),
            ForceRelease("l1", "ann", "stuck"),
        ]
        for number, intervention in enumerate(interventions):
            await harness.submit(f"unrelated-{number}")
            change = await _last_notice(holder)
            waiting = asyncio.create_task(holder.wait(change, LONG, wake=Wake.HOLDERS))
            await asyncio.sleep(0)
            await harness.do(intervention)
            assert await asyncio.wait_for(waiting, SOON) > change

    @store_test
    async def test_a_wait_ends_with_its_time_out(self, harness: StoreHarness) -> None:
        change = await harness.store.wait(0, 0.0)
        for _ in range(3):
            change = await asyncio.wait_for(harness.store.wait(change, 0.01), SOON)

    @store_test
    async def test_a_wait_can_be_given_up(self, harness: StoreHarness) -> None:
        change = await harness.store.wait(0, 0.0)
        waiting = asyncio.create_task(harness.store.wait(change, LONG))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        await harness.submit("r1")
        assert await asyncio.wait_for(harness.store.wait(change, LONG), SOON) > change

    @store_test
    async def test_it_comes_from_another_thread_and_loop(self, harness: StoreHarness) -> None:
        change = await harness.store.wait(0, 0.0)
        waiting = asyncio.create_task(harness.store.wait(change, LONG))
        await asyncio.sleep(0)
        await asyncio.to_thread(asyncio.run, harness.store.apply([a_submit("r1")]))
        assert await asyncio.wait_for(waiting, SOON) > change

    @store_test
    async def test_it_reaches_another_thread_and_loop(self, harness: StoreHarness) -> None:
        change = await harness.store.wait(0, 0.0)
        elsewhere = asyncio.to_thread(asyncio.run, harness.store.wait(change, LONG))
        waiting = asyncio.create_task(elsewhere)
        await asyncio.sleep(0)
        await harness.submit("r1")
        assert await asyncio.wait_for(waiting, SOON) > change

    @store_test
    async def test_it_reaches_another_store_object(self, harness: StoreHarness) -> None:
        if not harness.store.features.shared:
            return
        other = harness.make_store(harness.clock)
        await other.open()
        try:
            change = await other.wait(0, 0.0)
            waiting = asyncio.create_task(other.wait(change, LONG))
            await asyncio.sleep(0)
            await harness.submit("r1")
            assert await asyncio.wait_for(waiting, SOON) > change
            assert await other.run("r1") is not None
        finally:
            await other.close()


async def _last_notice(store: Store) -> int:
    """Wait until no notification comes any more: those of another store arrive a little later."""
    change = await store.wait(0, 0.0)
    while (newer := await store.wait(change, QUIET)) > change:
        change = newer
    return change
