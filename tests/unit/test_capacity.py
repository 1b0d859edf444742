"""The slots of a worker: reserved with a request, released with the answer or with the outcome."""

from __future__ import annotations

import asyncio

from holdfast.engine.capacity import Capacity


def test_a_new_worker_has_all_its_slots_free() -> None:
    capacity = Capacity(concurrency=4, max_bytes=100)
    assert (capacity.free, capacity.free_bytes) == (4, 100)


def test_what_is_requested_is_taken_until_it_is_released() -> None:
    capacity = Capacity(concurrency=4, max_bytes=100)
    capacity.reserve(3)
    assert capacity.free == 1
    capacity.release(2)  # the claim brought one run
    assert capacity.free == 3
    capacity.release()  # that run has its outcome
    assert capacity.free == 4


def test_inputs_count_until_they_are_removed_and_may_pass_the_limit() -> None:
    """One run is always allowed, however large its input is."""
    capacity = Capacity(concurrency=4, max_bytes=100)
    capacity.add_input(30)
    assert capacity.free_bytes == 70
    capacity.add_input(1000)
    assert capacity.free_bytes == 0
    capacity.remove_input(1000)
    assert capacity.free_bytes == 70


def test_whoever_waits_for_a_slot_is_woken_by_a_release() -> None:
    async def story() -> None:
        capacity = Capacity(concurrency=1, max_bytes=100)
        await capacity.wait_for_slot()
        capacity.reserve(1)
        waiting = asyncio.create_task(capacity.wait_for_slot())
        await asyncio.sleep(0)
        capacity.release(0)  # somebody else's answer
        await asyncio.sleep(0)
        assert not waiting.done()
        capacity.release()
        await waiting

    asyncio.run(story())


def test_nothing_is_free_once_it_is_closed_and_nobody_waits_any_more() -> None:
    async def story() -> None:
        capacity = Capacity(concurrency=1, max_bytes=100)
        capacity.reserve(1)
        waiting = asyncio.create_task(capacity.wait_for_slot())
        await asyncio.sleep(0)
        capacity.close()
        await waiting
        capacity.release()
        assert capacity.free == 0

    asyncio.run(story())


def test_inputs_wait_in_order_until_they_fit_and_nothing_is_free_meanwhile() -> None:
    async def story() -> None:
        capacity = Capacity(concurrency=4, max_bytes=100)
        room = capacity.inputs
        first = await room.enter("x" * 60)
        order: list[str] = []

        async def load(name: str, size: int) -> None:
            async def read() -> str:
                order.append(f"read {name}")
                return "x" * size

            await room.load(read)
            order.append(f"in {name}")

        large = asyncio.create_task(load("large", 90))
        small = asyncio.create_task(load("small", 10))
        slot = asyncio.create_task(capacity.wait_for_slot())
        for _ in range(5):
            await asyncio.sleep(0)
        assert order == ["read large"]
        assert (capacity.free, slot.done()) == (0, False)
        room.leave(first)
        await asyncio.gather(large, small)
        assert order == ["read large", "in large", "read small", "in small"]
        assert (capacity.free, room.bytes) == (0, 100)
        room.leave(90)
        await slot
        assert capacity.free == 4

    asyncio.run(asyncio.wait_for(story(), 5))


def test_a_text_beyond_ascii_counts_by_its_bytes_and_one_is_always_let_in() -> None:
    async def story() -> None:
        room = Capacity(concurrency=4, max_bytes=100).inputs
        assert await room.enter("ü" * 100) == 200
        room.leave(200)
        assert (room.bytes, room.is_full) == (0, False)

    asyncio.run(asyncio.wait_for(story(), 5))


def test_who_stops_waiting_for_room_leaves_it_to_the_others() -> None:
    async def story() -> None:
        room = Capacity(concurrency=4, max_bytes=100).inputs
        await room.enter("x" * 100)
        waiting = asyncio.create_task(room.enter("x" * 50))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        room.leave(100)
        assert not room.is_full
        assert await room.enter("x" * 50) == 50

    asyncio.run(asyncio.wait_for(story(), 5))
