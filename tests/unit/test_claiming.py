"""How a worker claims: ahead of its work, never more than it has room for, and nothing is lost when
it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast import Holdfast, Pipeline, WorkerOptions
from holdfast.engine.worker import Worker
from holdfast.model.commands import Claim

OPTIONS = WorkerOptions(concurrency=4, batch=2, poll=0.05)


def a_pipeline(body: Callable[[], Awaitable[None]]) -> Pipeline[Any]:
    pipeline = Pipeline("p", input=int)

    @pipeline.step
    async def only(input: int) -> int:
        await body()
        return input

    return pipeline


def watch(
    app: Holdfast, answered: asyncio.Event | None = None, gate: asyncio.Event | None = None
) -> list[int]:
    """Note how many runs each claim asks for; with a gate, hold back what the store has
    answered."""
    sizes: list[int] = []
    apply = app.store.apply

    async def watched(commands: Any) -> Any:
        replies = await apply(commands)
        limits = [command.limit for command in commands if isinstance(command, Claim)]
        sizes.extend(limits)
        if limits and answered is not None and gate is not None:
            answered.set()
            await gate.wait()
        return replies

    app.store.apply = watched  # type: ignore[method-assign]
    return sizes


def test_outcomes_and_the_claim_that_fills_their_slots_are_one_batch() -> None:
    async def story() -> None:
        async def body() -> None:
            pass

        pipeline = a_pipeline(body)
        async with Holdfast("memory:", [pipeline], worker=False) as app:
            handles = await app.submit_many(pipeline, range(8))
            batches: list[list[str]] = []
            apply = app.store.apply

            async def watched(commands: Any) -> Any:
                batches.append([type(command).__name__ for command in commands])
                return await apply(commands)

            app.store.apply = watched  # type: ignore[method-assign]
            worker = await _start(app)
            await asyncio.gather(*[handle.result(5) for handle in handles])
            await worker.stop()
        outcomes = [batch for batch in batches if "Settle" in batch]
        assert outcomes
        assert all(batch[-1] == "Claim" for batch in outcomes)

    asyncio.run(story())


def test_a_worker_has_as_many_runs_as_it_may_and_never_more() -> None:
    async def story() -> None:
        most, now, all_there = 0, 0, asyncio.Barrier(4)

        async def body() -> None:
            nonlocal most, now
            now += 1
            most = max(most, now)
            await all_there.wait()
            now -= 1

        pipeline = a_pipeline(body)
        async with Holdfast("memory:", [pipeline], worker=OPTIONS) as app:
            handles = await app.submit_many(pipeline, range(48))
            await asyncio.gather(*[handle.result(5) for handle in handles])
        assert most == 4

    asyncio.run(story())


async def never() -> None:
    raise AssertionError("the worker was told to stop before")


def test_what_a_worker_is_given_while_it_stops_is_handed_over() -> None:
    async def story() -> None:
        pipeline, answered, gate = a_pipeline(never), asyncio.Event(), asyncio.Event()
        async with Holdfast("memory:", [pipeline], worker=False) as app:
            handle = await app.submit(pipeline, 1)
            watch(app, answered, gate)
            worker = await _start(app)
            await answered.wait()
            assert (await handle.info()).state == "running"
            stopping = asyncio.create_task(worker.stop())
            await asyncio.sleep(0)
            gate.set()
            await stopping
            info = await handle.info()
            assert (info.state, info.attempts, worker.active) == ("queued", 0, 0)

    asyncio.run(story())


def test_what_a_worker_has_not_begun_when_it_stops_is_handed_over() -> None:
    async def story() -> None:
        pipeline = a_pipeline(never)
        async with Holdfast("memory:", [pipeline], worker=False) as app:
            handle = await app.submit(pipeline, 1)
            worker = await _start(app)
            while not worker.active:  # noqa: ASYNC110 - the very moment is wanted
                await asyncio.sleep(0)
            await worker.stop(grace=0)
            info = await handle.info()
            assert (info.state, info.attempts, worker.active) == ("queued", 0, 0)

    asyncio.run(story())


def test_a_worker_claims_one_half_while_it_works_on_the_other() -> None:
    async def story() -> None:
        async def body() -> None:
            await asyncio.sleep(0)

        pipeline = a_pipeline(body)
        async with Holdfast("memory:", [pipeline], worker=False) as app:
            handles = await app.submit_many(pipeline, range(40))
            sizes = watch(app)
            worker = await _start(app, WorkerOptions(concurrency=8, poll=0.05))
            await asyncio.gather(*[handle.result(5) for handle in handles])
            await worker.stop()
        assert max(sizes) == 4

    asyncio.run(story())


async def _start(app: Holdfast, options: WorkerOptions = OPTIONS) -> Worker:
    worker = Worker(app.runtime, app.pipelines.values(), options)
    await worker.start()
    return worker
