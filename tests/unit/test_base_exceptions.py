"""What is no `Exception` ends the step that raised it, and neither its worker nor the count of its
tries."""

import asyncio

import pytest

from holdfast import Pipeline, RunFailed

ENDINGS = [SystemExit("2"), asyncio.CancelledError("2"), GeneratorExit("2"), BaseException("2")]


def failed(engine, pipeline):
    """The error that the run ends with."""
    run = engine.submit(pipeline, 1)
    engine.drain()
    with pytest.raises(RunFailed):
        engine.result(run)
    assert engine.info(run).attempts == 1
    return engine.info(run).error


@pytest.mark.parametrize("error", ENDINGS, ids=repr)
@pytest.mark.parametrize("is_async", [True, False])
def test_a_step_that_raises_it_is_tried_again_and_fails(lab, error, is_async):
    pipeline = Pipeline("p", input=int)
    tries = []

    def work(input: int) -> int:
        tries.append(input)
        raise error

    async def work_async(input: int) -> int:
        return work(input)

    pipeline.step(name="work", max_attempts=2)(work_async if is_async else work)
    info = failed(lab(pipeline), pipeline)
    assert len(tries) == 2
    assert info.message == f"the step was ended by {type(error).__name__}: 2"
    assert info.step == "work"


@pytest.mark.parametrize("error", ENDINGS, ids=repr)
@pytest.mark.parametrize("where", ["item", "key", "source"])
def test_no_item_is_left_out_because_of_it(lab, error, where):
    pipeline = Pipeline("p", input=int)

    def give_up(*_):
        raise error

    async def items():
        yield 1
        yield give_up() if where == "source" else 2

    async def item(number):
        return give_up() if where == "item" else number

    @pipeline.step(max_attempts=1)
    async def work(input: int, ctx) -> list[int]:
        key = give_up if where == "key" else str
        return await ctx.map(item, items(), key=key, concurrency=1)

    info = failed(lab(pipeline), pipeline)
    assert f"ended by {type(error).__name__}: 2" in info.message


def test_steps_beside_it_are_kept(lab):
    pipeline = Pipeline("p", input=int)

    @pipeline.step
    async def calm(input: int) -> int:
        return input

    @pipeline.step(max_attempts=1)
    async def cancelled(calm: int) -> int:
        raise asyncio.CancelledError

    @pipeline.step(max_attempts=1)
    async def beside(calm: int) -> int:
        await asyncio.sleep(100)
        return calm

    @pipeline.step
    async def last(cancelled: int, beside: int) -> int:
        return cancelled + beside

    info = failed(lab(pipeline), pipeline)
    assert (info.step, info.name) == ("cancelled", "RuntimeError")


@pytest.mark.parametrize("error", ENDINGS, ids=repr)
def test_a_condition_that_raises_it_fails_its_step(lab, error):
    pipeline = Pipeline("p", input=int)

    def wanted(input: int) -> bool:
        raise error

    @pipeline.step(when=wanted)
    async def work(input: int) -> int:
        return input

    assert "its condition (when=) failed" in failed(lab(pipeline), pipeline).message


@pytest.mark.parametrize("error", [SystemExit("2"), GeneratorExit("2")], ids=repr)
def test_a_time_limit_that_raises_it_fails_its_run(lab, error):
    def limit(input):
        raise error

    pipeline = Pipeline("p", input=int, timeout_for=limit, max_attempts=1)

    @pipeline.step
    async def work(input: int) -> int:
        return input

    assert "the run was ended by" in failed(lab(pipeline), pipeline).message


def test_a_step_whose_coroutine_is_closed_has_not_failed(lab, caplog):
    """As when what waited in a loop that is gone is thrown away, while another task runs."""
    pipeline = Pipeline("p", input=int)
    ends = []

    @pipeline.step(max_attempts=5)
    async def work(input: int) -> int:
        try:
            await asyncio.sleep(100)
        except BaseException as error:
            ends.append(type(error))
            raise
        return input

    engine = lab(pipeline)
    run = engine.submit(pipeline, 1)
    engine.advance(10)
    (task,) = [task for task in engine.worker_tasks() if "Worker._execute" in repr(task)]

    async def close():
        task.get_coro().close()

    engine.call(close())
    assert ends == [GeneratorExit]
    assert "failed" not in caplog.text
    assert engine.info(run).state == "running"
