"""Whoever waits for a run is told when nobody can tell them any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holdfast import Holdfast, Pipeline
from holdfast.engine.handle import RunHandle
from holdfast.errors import ConfigurationError, StoreUnavailable

pipeline: Pipeline[str] = Pipeline("p", input=str)


@pipeline.step
async def echo(input: str) -> str:
    return input


def play(story: Callable[[Holdfast, RunHandle, asyncio.Task[str]], Awaitable[None]]) -> None:
    """A run that nobody executes, and a task that waits for it."""

    async def whole() -> None:
        app = Holdfast("memory:", [pipeline], worker=False)
        async with app:
            run = await app.submit(pipeline, "a")
            waiting = asyncio.create_task(run.result())
            await asyncio.sleep(0)
            await story(app, run, waiting)

    asyncio.run(asyncio.wait_for(whole(), 10))


def test_closing_the_app_ends_the_waiting() -> None:
    async def story(app: Holdfast, run: RunHandle, waiting: asyncio.Task[str]) -> None:
        await app.close()
        with pytest.raises(StoreUnavailable, match="the app was closed"):
            await waiting

    play(story)


def test_a_store_that_can_not_be_used_any_more_ends_the_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def over(runs: list[str]) -> None:
        raise ConfigurationError("the file is damaged")

    async def story(app: Holdfast, run: RunHandle, waiting: asyncio.Task[str]) -> None:
        monkeypatch.setattr(app.store, "over", over)
        with pytest.raises(ConfigurationError, match="the file is damaged"):
            await waiting

    play(story)


def test_a_handle_is_asked_again_when_the_app_is_open_again() -> None:
    """Also one that a worker of this process would have answered."""
    release = asyncio.Event()
    gated: Pipeline[str] = Pipeline("gated", input=str)

    @gated.step
    async def wait(input: str) -> str:
        await release.wait()
        return input

    async def story() -> None:
        app = Holdfast("memory:", [gated])
        async with app:
            run = await app.submit(gated, "a")
            waiting = asyncio.create_task(run.result())
            await asyncio.sleep(0)
            await app.close(grace=0)
            with pytest.raises(StoreUnavailable):
                await waiting
        release.set()
        async with app:
            assert await run.result() == "a"

    asyncio.run(asyncio.wait_for(story(), 10))
