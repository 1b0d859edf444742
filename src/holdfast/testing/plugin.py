"""The pytest plugin: fixtures for tests of pipelines.

The names carry a prefix: a plugin is loaded into every project, and `engine` or `clock` are usually
taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from holdfast.testing.clock import ManualClock
    from holdfast.testing.crash import CrashReport
    from holdfast.testing.engine import TestEngine


@pytest.fixture
def holdfast_engine() -> Iterator[Callable[..., TestEngine]]:
    """`holdfast_engine(pipeline, …)`: an engine in memory, in virtual time."""
    from holdfast.testing.engine import TestEngine

    engines: list[TestEngine] = []

    def make(*pipelines: Any, **options: Any) -> TestEngine:
        engines.append(TestEngine(*pipelines, **options))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


@pytest.fixture
def run_pipeline(holdfast_engine: Callable[..., TestEngine]) -> Callable[..., Any]:
    """`run_pipeline(pipeline, input)`: the result of one run."""

    def run(
        pipeline: Any, input: Any = None, *, crash_after: str | None = None, **options: Any
    ) -> Any:
        engine = holdfast_engine(pipeline)
        handle = engine.submit(pipeline, input, **options)
        if crash_after:
            engine.crash_after(crash_after)
        engine.drain()
        return engine.result(handle)

    return run


@pytest.fixture
def holdfast_clock() -> ManualClock:
    """A clock that moves only when the test says so."""
    from holdfast.testing.clock import ManualClock

    return ManualClock()


@pytest.fixture
def crash_safe() -> Callable[..., CrashReport]:
    """`crash_safe(pipeline, input)`: kill, pause, duplicate and lose at every boundary, and check
    the contract."""
    from holdfast.testing.crash import assert_crash_safe

    return assert_crash_safe
