"""The doorbell: heard while waiting and after, from any thread, and never a reason to wait too
long."""

from __future__ import annotations

import asyncio

from holdfast.model.commands import Resume, Settle
from holdfast.testing.contracts.store_topics.scene import Scene, StoreTopics, a_submit, story

LONG = 60.0
"""Longer than any test may take: whoever waits this long has not heard the bell."""
SOON = 20.0


class DoorbellTopics(StoreTopics):
    @story
    async def test_who_waits_hears_the_bell(self, scene: Scene) -> None:
        heard = await scene.store.wait(0, 0.0)
        waiting = asyncio.create_task(scene.store.wait(heard, LONG))
        await asyncio.sleep(0)
        await scene.submit("r1")
        assert await asyncio.wait_for(waiting, SOON) > heard

    @story
    async def test_a_ring_between_two_waits_is_not_lost(self, scene: Scene) -> None:
        heard = await scene.store.wait(0, 0.0)
        for number in range(3):
            await scene.submit(f"r{number}")
            again = await asyncio.wait_for(scene.store.wait(heard, LONG), SOON)
            assert again > heard
            heard = again

    @story
    async def test_everybody_hears_it_however_late(self, scene: Scene) -> None:
        heard = await scene.store.wait(0, 0.0)
        await scene.submit("r1")
        first = await asyncio.wait_for(scene.store.wait(heard, LONG), SOON)
        second = await asyncio.wait_for(scene.store.wait(heard, LONG), SOON)
        assert first > heard
        assert second > heard

    @story
    async def test_all_who_wait_are_woken(self, scene: Scene) -> None:
        heard = await scene.store.wait(0, 0.0)
        waiting = [asyncio.create_task(scene.store.wait(heard, LONG)) for _ in range(5)]
        await asyncio.sleep(0)
        await scene.submit("r1")
        assert min(await asyncio.wait_for(asyncio.gather(*waiting), SOON)) > heard

    @story
    async def test_the_end_of_a_run_rings(self, scene: Scene) -> None:
        epoch = await scene.start("r1")
        heard = await scene.store.wait(0, 0.0)
        await scene.do(Settle("r1", epoch, "succeeded", result="1"))
        assert await asyncio.wait_for(scene.store.wait(heard, LONG), SOON) > heard

    @story
    async def test_who_waits_for_work_hears_of_all_that_can_be_claimed(self, scene: Scene) -> None:
        heard = await scene.store.wait(0, 0.0)
        await scene.submit("r1")
        heard = await self._work(scene, heard)
        for outcome in ("handover", "retry", "paused"):
            [claimed] = await scene.claim()
            await scene.settle("r1", claimed.epoch, outcome)
            heard = await self._work(scene, heard)
        await scene.do(Resume("r1", "ann"))
        await self._work(scene, heard)

    @story
    async def test_work_that_comes_with_an_end_is_heard(self, scene: Scene) -> None:
        epoch = await scene.start("r1")
        heard = await scene.store.wait(0, 0.0)
        await scene.store.apply([Settle("r1", epoch, "succeeded", result="1"), a_submit("r2")])
        await self._work(scene, heard)

    async def _work(self, scene: Scene, heard: int) -> int:
        again = await asyncio.wait_for(scene.store.wait(heard, LONG, work=True), SOON)
        assert again > heard
        return again

    @story
    async def test_silence_ends_with_the_time_out(self, scene: Scene) -> None:
        heard = await scene.store.wait(0, 0.0)
        for _ in range(3):
            heard = await asyncio.wait_for(scene.store.wait(heard, 0.01), SOON)

    @story
    async def test_a_wait_can_be_given_up(self, scene: Scene) -> None:
        heard = await scene.store.wait(0, 0.0)
        waiting = asyncio.create_task(scene.store.wait(heard, LONG))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        await scene.submit("r1")
        assert await asyncio.wait_for(scene.store.wait(heard, LONG), SOON) > heard

    @story
    async def test_it_is_heard_from_another_thread_and_loop(self, scene: Scene) -> None:
        heard = await scene.store.wait(0, 0.0)
        waiting = asyncio.create_task(scene.store.wait(heard, LONG))
        await asyncio.sleep(0)
        await asyncio.to_thread(asyncio.run, scene.store.apply([a_submit("r1")]))
        assert await asyncio.wait_for(waiting, SOON) > heard

    @story
    async def test_it_is_heard_in_another_thread_and_loop(self, scene: Scene) -> None:
        heard = await scene.store.wait(0, 0.0)
        elsewhere = asyncio.to_thread(asyncio.run, scene.store.wait(heard, LONG))
        waiting = asyncio.create_task(elsewhere)
        await asyncio.sleep(0)
        await scene.submit("r1")
        assert await asyncio.wait_for(waiting, SOON) > heard

    @story
    async def test_it_is_heard_through_another_store_object(self, scene: Scene) -> None:
        if not scene.store.features.shared:
            return
        other = scene.make_store(scene.clock)
        await other.open()
        try:
            heard = await other.wait(0, 0.0)
            waiting = asyncio.create_task(other.wait(heard, LONG))
            await asyncio.sleep(0)
            await scene.submit("r1")
            assert await asyncio.wait_for(waiting, SOON) > heard
            assert await other.run("r1") is not None
        finally:
            await other.close()
