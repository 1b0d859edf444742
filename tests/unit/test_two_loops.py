"""One app in several event loops, one after another, as in a script that calls `asyncio.run`
twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, Pipeline, RunFailed

pipeline = Pipeline("p", input=int)


@pipeline.step(timeout="100ms", max_attempts=1)
async def only(input: int) -> int:
    if input < 0:
        await asyncio.Event().wait()
    return input + 1


@pytest.fixture(params=["memory:", "sqlite:///{folder}/runs.db"])
def store(request: Any, tmp_path: Path) -> str:
    return request.param.format(folder=tmp_path)


def test_an_app_is_opened_again_in_another_loop(store: str) -> None:
    app = Holdfast(store, [pipeline])

    async def story(number: int) -> int:
        async with app:
            async with app.lock("one at a time"):
                run = await app.submit(pipeline, number)
            return await run.result(5)

    assert [asyncio.run(story(number)) for number in (1, 2, 3)] == [2, 3, 4]


def test_time_outs_strike_in_every_loop(store: str) -> None:
    app = Holdfast(store, [pipeline])

    async def story(number: int) -> int:
        async with app:
            return await (await app.submit(pipeline, number)).result(5)

    assert asyncio.run(story(1)) == 2
    with pytest.raises(RunFailed, match="took longer than"):
        asyncio.run(story(-1))


def test_an_app_that_nobody_closed_goes_on_in_another_loop(store: str) -> None:
    app = Holdfast(store, [pipeline], worker=False)
    first, second = (asyncio.run(app.submit(pipeline, number, key="the same")) for number in (1, 1))
    assert (first.id, first.created, second.created) == (second.id, True, False)
    asyncio.run(app.close())


def test_a_lock_that_is_lost_after_its_loop_was_closed_harms_nobody(store: str) -> None:
    app = Holdfast(store, [pipeline], worker=False)
    lost: list[Any] = []

    async def acquire() -> None:
        await app.open()
        lock = app.lock("import")
        assert await lock.try_acquire()
        lost.append(lock)

    async def go_on() -> None:
        assert not await lost[0].release()
        assert (await app.submit(pipeline, 1)).created
        await app.close()

    asyncio.run(acquire())
    lost[0]._lease.lose()  # as the keeper does, in its thread
    asyncio.run(go_on())
