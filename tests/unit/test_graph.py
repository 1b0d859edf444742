"""Steps in dependency order, concurrently, and skipped when not wanted."""

import asyncio

import pytest

from holdfast import Context, Pipeline, RunFailed
from holdfast.model.run import StepStatus


def test_a_step_is_given_the_results_that_its_parameters_name(run_pipeline):
    pipeline = Pipeline("p", input=int)

    @pipeline.step
    async def double(input: int) -> int:
        return input * 2

    @pipeline.step
    def square(input: int) -> int:
        return input**2

    @pipeline.step
    async def total(double: int, square: int, input: int) -> int:
        return double + square + input

    assert run_pipeline(pipeline, 3) == 6 + 9 + 3


def test_independent_steps_run_at_the_same_time(lab):
    pipeline = Pipeline("p")

    @pipeline.step
    async def a() -> int:
        await asyncio.sleep(100)
        return 1

    @pipeline.step
    async def b() -> int:
        await asyncio.sleep(100)
        return 2

    @pipeline.step
    async def both(a: int, b: int) -> int:
        return a + b

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    info = engine.info(run)
    assert engine.result(run) == 3
    assert info.finished - info.started == pytest.approx(100, abs=1)


def test_a_step_starts_only_when_all_it_needs_has_ended(lab):
    pipeline, order = Pipeline("p"), []

    @pipeline.step
    async def slow() -> int:
        await asyncio.sleep(50)
        order.append("slow")
        return 1

    @pipeline.step
    async def quick() -> int:
        order.append("quick")
        return 1

    @pipeline.step
    async def after(slow: int, quick: int) -> int:
        order.append("after")
        return 1

    engine = lab(pipeline)
    engine.submit(pipeline)
    engine.drain()
    assert order == ["quick", "slow", "after"]


def test_the_result_is_that_of_the_last_step_or_of_the_one_named(run_pipeline):
    last, by_name = Pipeline("last"), Pipeline("named", result="a")
    for pipeline in (last, by_name):
        pipeline.step(name="a")(lambda: "a")
        pipeline.step(name="b")(lambda: "b")
    assert run_pipeline(last) == "b"
    assert run_pipeline(by_name) == "a"


def test_a_step_with_another_name_is_wired_by_that_name(run_pipeline):
    pipeline = Pipeline("p")

    @pipeline.step(name="first")
    def _anything() -> int:
        return 1

    @pipeline.step
    def second(first: int) -> int:
        return first + 1

    assert run_pipeline(pipeline) == 2


# --- when= ----------------------------------------------------------------------------------------


def skipping(*, last: bool = False):
    pipeline = Pipeline("p", input=int)

    @pipeline.step
    async def before(input: int) -> int:
        return input

    @pipeline.step(when=lambda before: before > 10)
    async def maybe(before: int) -> int:
        return before * 2

    if not last:

        @pipeline.step
        async def after(maybe: int | None) -> str:
            return f"got {maybe}"

    return pipeline


def test_a_step_that_is_not_wanted_is_skipped_and_gives_none(run_pipeline):
    assert run_pipeline(skipping(), 5) == "got None"
    assert run_pipeline(skipping(), 15) == "got 30"


def test_skipping_is_recorded(lab):
    pipeline = skipping()
    engine = lab(pipeline)
    run = engine.submit(pipeline, 5)
    engine.drain()
    assert engine.events(run).count("step.skipped") == 1
    assert engine.steps(run)["maybe"].status is StepStatus.SKIPPED
    assert engine.times("maybe") == 0


def test_a_skipped_step_stays_skipped_after_a_crash(lab):
    pipeline = skipping()
    engine = lab(pipeline)
    run = engine.submit(pipeline, 5)
    engine.crash_after("maybe")
    engine.drain()
    assert engine.result(run) == "got None"
    assert engine.events(run).count("step.skipped") == 1


def test_a_run_whose_last_step_is_skipped_has_no_result(run_pipeline):
    assert run_pipeline(skipping(last=True), 5) is None


def test_a_condition_may_be_asynchronous_and_use_the_input(run_pipeline):
    pipeline = Pipeline("p", input=int)

    async def odd(input):
        await asyncio.sleep(1)
        return input % 2

    @pipeline.step(when=odd)
    async def maybe(input: int) -> int:
        return input

    @pipeline.step
    async def after(maybe: int | None) -> int:
        return maybe or 0

    assert run_pipeline(pipeline, 3) == 3
    assert run_pipeline(pipeline, 4) == 0


def test_a_condition_that_fails_says_in_which_step(lab):
    pipeline = Pipeline("p")

    @pipeline.step(when=lambda input: input["missing"])
    async def maybe() -> int:
        return 1

    engine = lab(pipeline)
    run = engine.submit(pipeline, {})
    engine.drain()
    with pytest.raises(RunFailed, match="maybe"):
        engine.result(run)


# --- sharing --------------------------------------------------------------------------------------


def test_one_failed_step_stops_the_others(lab):
    pipeline, stopped = Pipeline("p"), []

    @pipeline.step(max_attempts=1)
    async def bad() -> int:
        await asyncio.sleep(1)
        raise ValueError("no")

    @pipeline.step
    async def long() -> int:
        try:
            await asyncio.sleep(500)
        except asyncio.CancelledError:
            stopped.append(True)
            raise
        return 1

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    with pytest.raises(RunFailed, match="bad: ValueError: no"):
        engine.result(run)
    assert stopped == [True]


def test_context_is_given_only_to_who_asks(run_pipeline):
    pipeline = Pipeline("p")

    @pipeline.step
    async def with_it(ctx: Context) -> str:
        return ctx.step_name

    @pipeline.step
    def without(with_it: str) -> str:
        return with_it

    assert run_pipeline(pipeline) == "with_it"
