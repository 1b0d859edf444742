"""Finding runs by what people know: id, start of the id, idempotency key, labels."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Holdfast, Pipeline
from holdfast.errors import InvalidInput, NotFound
from holdfast.ports.store import RunFilter
from holdfast.services.lookup import find_run

PIPELINE = Pipeline("echo", input=int, labels=lambda number: {"number": str(number)})


@PIPELINE.step
def echo(request: int) -> int:
    return request


def with_app(story):
    async def run():
        async with Holdfast("memory:", [PIPELINE], worker=False) as app:
            await story(app)

    asyncio.run(run())


def test_a_run_is_found_by_id_key_and_start_of_id():
    async def story(app):
        run = await app.submit(PIPELINE, 1, key="abc123")
        for name in (run.id, run.id[:8], "abc123"):
            assert (await app.run(name)).id == run.id
            assert (await find_run(app.store, name)).id == run.id
            assert (await app.operations.find(name)).id == run.id

    with_app(story)


def test_what_matches_whole_comes_before_the_start_of_an_id():
    async def story(app):
        first = await app.submit(PIPELINE, 1)
        other = await app.submit(PIPELINE, 2, key=first.id[:4])
        assert (await app.run(first.id[:4])).id == other.id
        assert (await app.run(first.id)).id == first.id

    with_app(story)


def test_several_that_match_are_listed():
    async def story(app):
        runs = [await app.submit(PIPELINE, 1, key="r-1", tenant=tenant) for tenant in ("a", "b")]
        with pytest.raises(NotFound, match="several runs have the key 'r-1'") as error:
            await app.run("r-1")
        assert all(run.id in str(error.value) for run in runs)
        assert "echo of b, queued" in str(error.value)
        assert (await app.run("r-1", tenant="b")).id == runs[1].id
        for number in range(20):
            await app.submit(PIPELINE, number)
        with pytest.raises(NotFound, match=r"several runs begin with '0'(?s:.)*and others"):
            await app.run("0")

    with_app(story)


def test_a_tenant_does_not_find_the_runs_of_another():
    async def story(app):
        run = await app.submit(PIPELINE, 1, key="r-1", tenant="a")
        for name in (run.id, run.id[:9], "r-1", "", "nothing"):
            with pytest.raises(NotFound, match="no run"):
                await app.run(name, tenant="b")

    with_app(story)


def test_what_is_done_to_a_run_takes_the_same_names():
    async def story(app):
        run = await app.submit(PIPELINE, 1, key="abc123")
        await app.operations.pause("abc123")
        await app.operations.resume(run.id[:12])
        await app.operations.cancel("abc123")
        assert (await run.info()).state == "cancelled"
        with pytest.raises(NotFound, match="no run 'abc124'"):
            await app.operations.cancel("abc124")

    with_app(story)


def test_labels_of_the_call_and_of_the_pipeline_are_kept():
    async def story(app):
        run = await app.submit(PIPELINE, 1, labels={"user_id": "42"})
        assert (await run.info()).labels == {"number": "1", "user_id": "42"}
        many = await app.submit_many(PIPELINE, [2, 3], labels={"number": "many", "user_id": "7"})
        runs = await app.store.runs(RunFilter(labels={"number": "many"}))
        assert {run.id for run in runs} == {run.id for run in many}
        again = await app.operations.rerun(run.id)
        assert (await again.info()).labels == {"number": "1", "user_id": "42"}

    with_app(story)


def test_labels_are_checked_when_they_are_given():
    async def story(app):
        with pytest.raises(InvalidInput, match="labels are texts"):
            await app.submit(PIPELINE, 1, labels={"user_id": 42})
        with pytest.raises(InvalidInput, match=r"input 1: label user_id .* none of them"):
            await app.submit_many(PIPELINE, [1], labels={"user_id": ""})
        assert await app.store.runs(RunFilter()) == []

    with_app(story)
