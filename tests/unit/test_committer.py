"""Group commit."""

import asyncio

import pytest

from holdfast.engine.committer import BATCH_SIZE, DISPATCH_SIZE, LARGE_BATCH_SIZE, Committer
from holdfast.errors import ConfigurationError, StoreUnavailable
from holdfast.model.commands import Sweep
from holdfast.ports.store import Features


class Store:
    """Answers each command with its own limit, when it is let."""

    features = Features("fake", durable=False, shared=False)

    def __init__(self):
        self.batches = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error = None

    async def apply(self, commands):
        self.batches.append([command.limit for command in commands])
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return [command.limit for command in commands]


def story(function):
    """Run an `async def` test with a store and its committer."""

    def test():
        async def run():
            store = Store()
            await function(store, Committer(store))

        asyncio.run(run())

    test.__name__ = function.__name__
    return test


@story
async def test_commands_of_one_moment_leave_together(store, committer):
    assert await asyncio.gather(*(committer.send(Sweep(n)) for n in range(5))) == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert store.batches == [[0, 1, 2, 3, 4]]


@story
async def test_a_command_given_at_the_moment_of_an_answer_is_not_left_behind(store, committer):
    for n in range(10):
        assert await asyncio.wait_for(committer.send(Sweep(n)), 1) == n


@story
async def test_what_comes_while_the_store_is_busy_waits_for_the_next_batch(store, committer):
    store.gate.clear()
    first = committer.send(Sweep(1))
    await asyncio.sleep(0)
    later = [committer.send(Sweep(n)) for n in (2, 3)]
    await asyncio.sleep(0)
    assert store.batches == [[1]]
    store.gate.set()
    assert await asyncio.gather(first, *later) == [1, 2, 3]
    assert store.batches == [[1], [2, 3]]


@story
async def test_order_is_kept_between_those_who_wait_and_those_who_do_not(store, committer):
    committer.post(Sweep(1))
    sent = committer.send(Sweep(2))
    committer.post(Sweep(3))
    assert await sent == 2
    await committer.drain()
    assert [limit for batch in store.batches for limit in batch] == [1, 2, 3]


@story
async def test_batches_have_a_limit(store, committer):
    answers = await asyncio.gather(*(committer.send(Sweep(n)) for n in range(BATCH_SIZE + 10)))
    assert answers == list(range(BATCH_SIZE + 10))
    assert [len(batch) for batch in store.batches] == [BATCH_SIZE, 10]


@story
async def test_batches_are_large_when_a_lot_waits(store, committer):
    count = LARGE_BATCH_SIZE + 3 * BATCH_SIZE
    assert await asyncio.gather(*(committer.send(Sweep(n)) for n in range(count))) == list(
        range(count)
    )
    assert [len(batch) for batch in store.batches] == [LARGE_BATCH_SIZE, *[BATCH_SIZE] * 3]


@story
async def test_an_error_reaches_everybody_who_waits_each_with_its_own(store, committer):
    store.error = StoreUnavailable("the disk is full")
    errors = await asyncio.gather(
        *(committer.send(Sweep(n)) for n in range(3)), return_exceptions=True
    )
    assert {(type(error), str(error)) for error in errors} == {
        (StoreUnavailable, "the disk is full")
    }
    assert len({id(error) for error in errors}) == 3


@story
async def test_an_error_says_as_much_to_each_as_it_said(store, committer):
    store.error = StoreUnavailable("busy", retry_after=3.0)
    with pytest.raises(StoreUnavailable) as caught:
        await committer.send(Sweep(1))
    assert caught.value.retry_after == 3.0


@story
async def test_the_kind_of_error_is_kept(store, committer):
    store.error = ConfigurationError("damaged")
    with pytest.raises(ConfigurationError, match="damaged"):
        await committer.send(Sweep(1))


@story
async def test_a_strange_error_means_that_the_store_is_unavailable(store, committer):
    store.error = RuntimeError("what")
    with pytest.raises(StoreUnavailable, match="failed unexpectedly: RuntimeError: what"):
        await committer.send(Sweep(1))


@story
async def test_after_an_error_the_next_batch_is_tried(store, committer):
    store.error = StoreUnavailable("away")
    with pytest.raises(StoreUnavailable):
        await committer.send(Sweep(1))
    store.error = None
    assert await committer.send(Sweep(2)) == 2


@story
async def test_who_stopped_waiting_does_not_disturb_the_others(store, committer):
    store.gate.clear()
    gone, second = committer.send(Sweep(1)), committer.send(Sweep(2))
    await asyncio.sleep(0)
    gone.cancel()
    store.gate.set()
    assert await second == 2


@story
async def test_draining_waits_for_everything_given_so_far(store, committer):
    committer.post(Sweep(1))
    await committer.drain()
    assert store.batches == [[1]]


@story
async def test_the_first_half_goes_on_before_the_second_has_its_replies(store, committer):
    answers = [committer.send(Sweep(n)) for n in range(4 * DISPATCH_SIZE)]
    await answers[0]
    assert [answer.done() for answer in answers] == [True] * 2 * DISPATCH_SIZE + [
        False
    ] * 2 * DISPATCH_SIZE
    assert await asyncio.gather(*answers) == list(range(4 * DISPATCH_SIZE))


@story
async def test_every_reply_is_dispatched_also_when_the_flush_is_cancelled_in_between(
    store, committer
):
    answers = [committer.send(Sweep(n)) for n in range(3 * DISPATCH_SIZE)]
    await answers[0]
    for flush in list(committer._flushes):
        flush.cancel()
    assert await asyncio.gather(*answers) == list(range(3 * DISPATCH_SIZE))


@story
async def test_what_has_to_stay_in_order_is_sent_when_the_batch_before_is_written(store, committer):
    store.gate.clear()
    count = 2 * LARGE_BATCH_SIZE + 5
    answers = committer.send_in_order([Sweep(number) for number in range(count)])
    beside = committer.send(Sweep(-1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [len(batch) for batch in store.batches] == [LARGE_BATCH_SIZE, 1]
    store.gate.set()
    await committer.drain()
    assert [await answer for answer in answers] == list(range(count))
    assert await beside == -1
    assert [number for batch in store.batches for number in batch if number >= 0] == list(
        range(count)
    )


@story
async def test_what_stands_behind_a_failed_batch_in_order_is_not_sent(store, committer):
    store.error = StoreUnavailable("away")
    answers = committer.send_in_order([Sweep(number) for number in range(LARGE_BATCH_SIZE + 1)])
    await committer.drain()
    assert len(store.batches) == 1
    for answer in answers:
        with pytest.raises(StoreUnavailable):
            await answer
