"""What those beside a worker know about it."""

from __future__ import annotations

import asyncio

from holdfast import Holdfast, Pipeline
from holdfast.engine.local_workers import LocalWorkers


def test_every_worker_hears_of_a_submission_until_it_is_removed() -> None:
    workers, first, second = LocalWorkers(), [], []
    assert not workers
    workers.add(first.append)
    workers.add(second.append)
    assert workers
    workers.announce("a")
    workers.remove(first.append)
    workers.announce("b")
    workers.remove(first.append)
    assert (first, second) == (["a"], ["a", "b"])


def test_an_app_has_a_worker_beside_it_from_opening_to_closing() -> None:
    pipeline = Pipeline("p", input=int)

    @pipeline.step
    async def only(input: int) -> int:
        return input

    async def story() -> None:
        app = Holdfast("memory:", [pipeline])
        assert not app.runtime.local_workers
        async with app:
            assert app.runtime.local_workers
            assert await (await app.submit(pipeline, 1)).result(5) == 1
        assert not app.runtime.local_workers
        async with Holdfast("memory:", [pipeline], worker=False) as client:
            assert not client.runtime.local_workers

    asyncio.run(story())
