"""Notifications: seen while waiting and after, from any thread, and never a reason to wait too
long."""

from __future__ import annotations

import asyncio

from holdfast.model.commands import Resume, Settle
from holdfast.testing.contracts.store_topics.scene import Scene, StoreTopics, a_submit, story

LONG = 60.0
"""Longer than any test may take: whoever waits this long was not notified."""
SOON = 20.0


class NotificationTopics(StoreTopics):
    @story
    async def test_who_waits_is_notified(self, scene: Scene) -> None:
        seen = await scene.store.wait(0, 0.0)
        waiting = asyncio.create_task(scene.store.wait(seen, LONG))
        await asyncio.sleep(0)
        await scene.submit("r1")
        assert await asyncio.wait_for(waiting, SOON) > seen

    @story
    async def test_a_notification_between_two_waits_is_not_lost(self, scene: Scene) -> None:
        seen = await scene.store.wait(0, 0.0)
        for number in range(3):
            await scene.submit(f"r{number}")
            again = await asyncio.wait_for(scene.store.wait(seen, LONG), SOON)
            assert again > seen
            seen = again

    @story
    async def test_everybody_is_notified_however_late(self, scene: Scene) -> None:
        seen = await scene.store.wait(0, 0.0)
        await scene.submit("r1")
        first = await asyncio.wait_for(scene.store.wait(seen, LONG), SOON)
        second = await asyncio.wait_for(scene.store.wait(seen, LONG), SOON)
        assert first > seen
        assert second > seen

    @story
    async def test_all_who_wait_are_woken(self, scene: Scene) -> None:
        seen = await scene.store.wait(0, 0.0)
        waiting = [asyncio.create_task(scene.store.wait(seen, LONG)) for _ in range(5)]
        await asyncio.sleep(0)
        await scene.submit("r1")
        assert min(await asyncio.wait_for(asyncio.gather(*waiting), SOON)) > seen

    @story
    async def test_the_end_of_a_run_is_a_notification(self, scene: Scene) -> None:
        epoch = await scene.start("r1")
        seen = await scene.store.wait(0, 0.0)
        await scene.do(Settle("r1", epoch, "succeeded", result="1"))
        assert await asyncio.wait_for(scene.store.wait(seen, LONG), SOON) > seen

    @story
    async def test_who_waits_for_work_is_notified_of_all_that_can_be_claimed(
        self, scene: Scene
    ) -> None:
        seen = await scene.store.wait(0, 0.0)
        await scene.submit("r1")
        seen = await self._work(scene, seen)
        for outcome in ("handover", "retry", "paused"):
            [claimed] = await scene.claim()
            await scene.settle("r1", claimed.epoch, outcome)
            seen = await self._work(scene, seen)
        await scene.do(Resume("r1", "ann"))
        await self._work(scene, seen)

    @story
    async def test_work_that_comes_with_an_end_is_a_notification(self, scene: Scene) -> None:
        epoch = await scene.start("r1")
        seen = await scene.store.wait(0, 0.0)
        await scene.store.apply([Settle("r1", epoch, "succeeded", result="1"), a_submit("r2")])
        await self._work(scene, seen)

    async def _work(self, scene: Scene, seen: int) -> int:
        again = await asyncio.wait_for(scene.store.wait(seen, LONG, work=True), SOON)
        assert again > seen
        return again

    @story
    async def test_a_wait_ends_with_its_time_out(self, scene: Scene) -> None:
        seen = await scene.store.wait(0, 0.0)
        for _ in range(3):
            seen = await asyncio.wait_for(scene.store.wait(seen, 0.01), SOON)

    @story
    async def test_a_wait_can_be_given_up(self, scene: Scene) -> None:
        seen = await scene.store.wait(0, 0.0)
        waiting = asyncio.create_task(scene.store.wait(seen, LONG))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        await scene.submit("r1")
        assert await asyncio.wait_for(scene.store.wait(seen, LONG), SOON) > seen

    @story
    async def test_it_comes_from_another_thread_and_loop(self, scene: Scene) -> None:
        seen = await scene.store.wait(0, 0.0)
        waiting = asyncio.create_task(scene.store.wait(seen, LONG))
        await asyncio.sleep(0)
        await asyncio.to_thread(asyncio.run, scene.store.apply([a_submit("r1")]))
        assert await asyncio.wait_for(waiting, SOON) > seen

    @story
    async def test_it_reaches_another_thread_and_loop(self, scene: Scene) -> None:
        seen = await scene.store.wait(0, 0.0)
        elsewhere = asyncio.to_thread(asyncio.run, scene.store.wait(seen, LONG))
        waiting = asyncio.create_task(elsewhere)
        await asyncio.sleep(0)
        await scene.submit("r1")
        assert await asyncio.wait_for(waiting, SOON) > seen

    @story
    async def test_it_reaches_another_store_object(self, scene: Scene) -> None:
        if not scene.store.features.shared:
            return
        other = scene.make_store(scene.clock)
        await other.open()
        try:
            seen = await other.wait(0, 0.0)
            waiting = asyncio.create_task(other.wait(seen, LONG))
            await asyncio.sleep(0)
            await scene.submit("r1")
            assert await asyncio.wait_for(waiting, SOON) > seen
            assert await other.run("r1") is not None
        finally:
            await other.close()
