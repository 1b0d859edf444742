"""Many runs accepted at once: in order, all or nothing when an input is bad, one by one when a key
is taken."""

import asyncio
from collections.abc import Sequence
from functools import wraps

import pytest

from holdfast import Conflict, Holdfast, Pipeline
from holdfast.errors import InvalidInput, StoreUnavailable
from holdfast.model.run import Run
from holdfast.ports.store import RunFilter


def in_a_loop(test):
    @wraps(test)
    def run(*arguments, **options):
        asyncio.run(test(*arguments, **options))

    return run


def doubling():
    pipeline = Pipeline("double", input=int)

    @pipeline.step
    async def twice(input: int) -> int:
        return 2 * input

    return pipeline


@in_a_loop
async def test_results_come_in_the_order_of_the_inputs():
    pipeline = doubling()
    async with Holdfast("memory:", pipelines=[pipeline]) as app:
        runs = await app.submit_many(pipeline, range(300))
        results = await asyncio.wait_for(asyncio.gather(*[run.result() for run in runs]), 30)
    assert results == [2 * number for number in range(300)]


@in_a_loop
async def test_the_endings_are_heard_without_asking_the_store():
    """Runs that ended while later ones were being accepted must not wait for the next look at the
    store."""

    async def none_is_over(runs: Sequence[str]) -> list[Run]:
        return []

    pipeline = doubling()
    async with Holdfast("memory:", pipelines=[pipeline]) as app:
        runs = await app.submit_many(pipeline, range(300))
        app.store.over = none_is_over  # type: ignore[method-assign]
        for run in runs:
            assert await run.wait(30) == "succeeded"


@in_a_loop
async def test_one_bad_input_means_that_nothing_was_accepted():
    pipeline = doubling()
    async with Holdfast("memory:", pipelines=[pipeline], worker=False) as app:
        with pytest.raises(InvalidInput, match=r"input 2: .*; none of them was accepted"):
            await app.submit_many("double", [1, "two", 3])
        assert await app.store.count(RunFilter()) == {}


@in_a_loop
async def test_keys_find_the_same_runs_again():
    pipeline = doubling()
    async with Holdfast("memory:", pipelines=[pipeline], worker=False) as app:
        first = await app.submit_many(pipeline, [1, 2], keys=["a", "b"])
        again = await app.submit_many(pipeline, [1, 2, 3], keys=["a", "b", "c"])
    assert [run.id for run in again[:2]] == [run.id for run in first]
    assert [run.created for run in again] == [False, False, True]


@in_a_loop
async def test_a_key_that_is_taken_does_not_stop_the_others():
    pipeline = doubling()
    async with Holdfast("memory:", pipelines=[pipeline], worker=False) as app:
        existing = await app.submit(pipeline, 1, key="a")
        with pytest.raises(Conflict, match=r"key 'a' .* \(2 of 3 were accepted\)") as caught:
            await app.submit_many(pipeline, [7, 8, 9], keys=["b", "a", "c"])
        assert caught.value.run_id == existing.id
        assert await app.store.count(RunFilter()) == {"queued": 3}


@in_a_loop
async def test_every_input_has_a_key_or_none_has():
    pipeline = doubling()
    async with Holdfast("memory:", pipelines=[pipeline], worker=False) as app:
        with pytest.raises(InvalidInput, match="2 inputs and 1 keys"):
            await app.submit_many(pipeline, [1, 2], keys=["a"])
        assert await app.submit_many(pipeline, []) == []


@in_a_loop
async def test_a_store_that_is_away_is_said_once(caplog):
    pipeline = doubling()
    async with Holdfast("memory:", pipelines=[pipeline], worker=False) as app:

        async def away(commands):
            raise StoreUnavailable("gone")

        app.store.apply = away  # type: ignore[method-assign]
        with pytest.raises(StoreUnavailable, match="gone"):
            await app.submit_many(pipeline, range(300))
    assert not caplog.records
