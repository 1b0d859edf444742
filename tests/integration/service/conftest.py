"""An app without a worker on each of the four stores, with a clock that tests move."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.seeds.stores import STORES, make_store

from holdfast import Holdfast
from holdfast.testing.clock import ManualClock


@pytest.fixture(params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def run_story(kind: str, clock: ManualClock, tmp_path: Path) -> Callable[..., Any]:
    """`run_story(story, *pipelines)`: run `story(app)` with an app on the store of this test. The
    app's `another` makes further apps on the same store, as other processes have them."""

    def run_story(story: Callable[[Any], Any], *pipelines: Any, **options: Any) -> Any:
        store = make_store(kind, clock, tmp_path)

        @asynccontextmanager
        async def another(**more: Any):
            app = Holdfast(store, pipelines, worker=False, clock=clock, **{**options, **more})
            await app.open()
            yield app

        async def run() -> Any:
            async with another() as app:
                app.another = another
                try:
                    return await story(app)
                finally:
                    await app.close()

        return asyncio.run(run())

    return run_story
