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
    async def play() -> None:
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

    asyncio.run(play())


def test_nothing_is_free_once_it_is_closed_and_nobody_waits_any_more() -> None:
    async def play() -> None:
        capacity = Capacity(concurrency=1, max_bytes=100)
        capacity.reserve(1)
        waiting = asyncio.create_task(capacity.wait_for_slot())
        await asyncio.sleep(0)
        capacity.close()
        await waiting
        capacity.release()
        assert capacity.free == 0

    asyncio.run(play())
