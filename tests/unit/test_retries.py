"""Trying again: how often, how long after, and when not."""

import asyncio
from itertools import pairwise

import pytest

from holdfast import Permanent, Pipeline, Retry, RunFailed, Transient
from holdfast.errors import Conflict, LeaseLost
from holdfast.model.retry import is_retryable


def failing(times, error, *, max_attempts=3, clock=None, pipeline=None, **options):
    """A pipeline whose step fails so many times; it returns the moments of its tries."""
    pipeline = pipeline or Pipeline("p")
    tries = []

    @pipeline.step(max_attempts=max_attempts, **options)
    async def flaky() -> int:
        tries.append(asyncio.get_running_loop().time())
        if len(tries) <= times:
            raise error
        return len(tries)

    return pipeline, tries


# --- the rule -------------------------------------------------------------------------------------


def test_delays_double_up_to_the_maximum():
    retry = Retry(base=1.0, factor=2.0, maximum=60.0)
    longest = [max(retry.delay(n) for _ in range(200)) for n in range(1, 10)]
    assert longest == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60, 60], rel=0.05)


def test_delays_are_spread_between_half_and_all():
    delays = [Retry(base=10.0).delay(1) for _ in range(300)]
    assert 5.0 <= min(delays) < 6.0
    assert 9.0 < max(delays) <= 10.0


def test_a_million_attempts_do_not_overflow():
    assert Retry().delay(1_000_000) <= 60.0


def test_what_the_other_side_asked_for_is_the_least():
    assert Retry().delay(1, Transient(retry_after=500)) == 500
    assert Retry(base=100, maximum=100).delay(1, Transient(retry_after=1)) >= 50


def test_a_retry_may_be_written_in_words():
    assert Retry.of("500ms", 3, "2m") == Retry(0.5, 3, 120.0)


@pytest.mark.parametrize("error", [Transient("x"), ValueError(), OSError(), TimeoutError()])
def test_unknown_errors_may_pass(error):
    assert is_retryable(error)


@pytest.mark.parametrize(
    "error", [Permanent("x"), Conflict("x"), LeaseLost("x"), KeyboardInterrupt()]
)
def test_what_can_not_pass_is_not_tried_again(error):
    assert not is_retryable(error)


# --- steps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [Transient("later"), ValueError("who knows")])
def test_a_step_is_tried_as_often_as_it_says(lab, error):
    pipeline, _ = failing(2, error)
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    assert engine.result(run) == 3
    assert engine.info(run).attempts == 1
    assert engine.steps(run)["flaky"].attempts == 3


def test_then_the_run_fails_with_step_and_error(lab):
    pipeline, tries = failing(9, ValueError("still no"))
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    with pytest.raises(RunFailed, match="flaky: ValueError: still no"):
        engine.result(run)
    assert len(tries) == 3


def test_a_permanent_error_is_not_tried_again(lab):
    pipeline, tries = failing(9, Permanent("never"))
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    with pytest.raises(RunFailed, match="never"):
        engine.result(run)
    assert len(tries) == 1


def test_tries_are_farther_and_farther_apart(lab):
    pipeline, tries = failing(
        4, Transient("x"), max_attempts=5, retry=Retry(base=4.0, factor=4.0, maximum=1000)
    )
    engine = lab(pipeline)
    engine.submit(pipeline)
    engine.drain()
    first, second, third = (b - a for a, b in pairwise(tries[:4]))
    assert 2 <= first <= 4
    assert 8 <= second <= 16
    assert third >= 32


def test_retry_after_is_waited_for(lab):
    pipeline, tries = failing(1, Transient("busy", retry_after=45))
    engine = lab(pipeline)
    engine.submit(pipeline)
    engine.drain()
    assert 45 <= tries[1] - tries[0] < 47


def test_a_long_delay_gives_the_run_back_to_the_queue(lab):
    pipeline, tries = failing(1, Transient("come back", retry_after=120))
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(30)
    info = engine.info(run)
    assert (info.state, info.error.message) == ("queued", "come back")
    engine.drain()
    assert engine.result(run) == 2
    assert 120 <= tries[1] - tries[0] < 122
    assert "run.retrying" in engine.events(run)


def test_other_runs_use_the_time_of_a_long_delay(lab):
    pipeline, _ = failing(1, Transient("come back", retry_after=120))
    other = Pipeline("other")
    other.step(name="a")(lambda: 1)
    engine = lab(pipeline, other)
    engine.submit(pipeline)
    engine.advance(5)
    quick = engine.submit(other)
    engine.advance(5)
    assert engine.info(quick).state == "succeeded"


def test_the_tries_of_a_step_are_counted_across_long_delays(lab):
    pipeline, tries = failing(9, Transient("come back", retry_after=120))
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    assert engine.info(run).state == "failed"
    assert len(tries) == 3


def test_a_step_may_be_tried_more_often_than_its_run_however_long_the_delays(lab):
    pipeline, tries = failing(7, Transient("come back", retry_after=120), max_attempts=8)
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    assert engine.info(run).state == "succeeded"
    assert len(tries) == 8


def test_a_retry_of_one_step_does_not_use_up_the_tries_of_another(lab):
    pipeline, flaky_tries, other_tries = Pipeline("p"), [], []

    @pipeline.step
    async def flaky() -> int:
        flaky_tries.append(1)
        await asyncio.sleep(10)
        if len(flaky_tries) < 3:
            raise Transient("come back", retry_after=120)
        return 1

    @pipeline.step(max_attempts=2)
    async def innocent() -> int:
        await asyncio.sleep(100)
        other_tries.append(1)
        if len(other_tries) == 1:
            raise Transient("once")
        return 1

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    assert engine.info(run).state == "succeeded"


# --- timeouts -------------------------------------------------------------------------------------


def test_an_async_step_that_takes_too_long_is_stopped_and_tried_again(lab):
    pipeline, stopped = Pipeline("p"), []

    @pipeline.step(timeout="10s", max_attempts=2)
    async def slow() -> int:
        try:
            await asyncio.sleep(0 if stopped else 3600)
        except asyncio.CancelledError:
            stopped.append(True)
            raise
        return 1

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    assert engine.result(run) == 1
    assert stopped == [True]
    assert engine.info(run).finished - engine.info(run).started < 15


def test_a_def_step_that_takes_too_long_is_stopped(lab):
    pipeline, stopped = Pipeline("p"), []

    @pipeline.step(timeout="10s", max_attempts=1)
    def slow(ctx) -> int:
        try:
            ctx.step("wait", asyncio.sleep, 3600)
        except BaseException:
            stopped.append(True)
            raise
        return 1

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    with pytest.raises(
        RunFailed, match=r"StepTimeout: it took longer than 10\.0 s and was stopped"
    ):
        engine.result(run)
    assert stopped == [True]


def test_a_time_out_of_its_own_is_an_error_like_others(lab):
    pipeline, _ = failing(1, TimeoutError("the socket"))
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    assert engine.result(run) == 2


def test_a_run_that_takes_too_long_fails_and_says_what_to_do(lab):
    pipeline = Pipeline("p", timeout="1m")

    @pipeline.step
    async def quick() -> int:
        return 1

    @pipeline.step
    async def slow(quick: int) -> int:
        await asyncio.sleep(3600)
        return 1

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    with pytest.raises(
        RunFailed,
        match=r"RunTimeout: the run took longer than 1 min .*raise the pipeline's timeout",
    ):
        engine.result(run)
    assert list(engine.steps(run)) == ["quick"]
    assert engine.info(run).attempts == 1
