"""`ctx.map`: many items, each with a checkpoint of its own."""

import asyncio
import functools

import pytest
from pydantic import BaseModel

from holdfast import Context, Failure, Permanent, Pipeline, RunFailed, Transient
from holdfast.errors import InvalidInput
from holdfast.model.usage import Usage
from holdfast.testing.world import at_once


class Comment(BaseModel):
    id: str
    text: str = ""


def mapping(fn, items=None, *, timeout="10m", max_attempts=3, **options):
    """A pipeline of one step that maps, and one after it."""
    pipeline = Pipeline("p")

    @pipeline.step(timeout=timeout, max_attempts=max_attempts)
    async def mapped(input, ctx: Context) -> list:
        return await ctx.map(fn, input if items is None else items(), **options)

    @pipeline.step
    async def after(mapped: list) -> list:
        return mapped

    return pipeline


def fails(engine, run, match):
    with pytest.raises(RunFailed, match=match):
        engine.result(run)


# --- results --------------------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_items(run_pipeline):
    async def slow_first(n: int) -> int:
        await asyncio.sleep(10 - n)
        return n * 10

    assert run_pipeline(mapping(slow_first), [1, 2, 3, 4]) == [10, 20, 30, 40]


def test_nothing_maps_to_nothing(run_pipeline):
    assert run_pipeline(mapping(asyncio.sleep), []) == []


def test_models_are_named_by_key(lab):
    async def shout(comment: Comment) -> str:
        return comment.text.upper()

    pipeline = mapping(
        shout,
        lambda: [Comment(id="c1", text="a"), Comment(id="c2", text="b")],
        key=lambda comment: comment.id,
    )
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    assert engine.result(run) == ["A", "B"]
    assert [key for _, step, key in engine.executed if key] == ["c1", "c2"]


def test_def_functions_run_beside_one_another(run_pipeline):
    def double(n: int) -> int:
        return n * 2

    assert run_pipeline(mapping(double), [1, 2, 3]) == [2, 4, 6]


def test_an_item_may_ask_for_its_context(run_pipeline):
    async def key_of(n: int, ctx: Context) -> str:
        return ctx.idempotency_key.split(":", 1)[1]

    def same(n: int, ctx) -> str:
        return ctx.idempotency_key.split(":", 1)[1]

    assert run_pipeline(mapping(key_of), [7]) == ["mapped:7"]
    assert run_pipeline(mapping(same), [7]) == ["mapped:7"]


def test_partial_functions_work(run_pipeline):
    async def scale(factor: int, n: int) -> int:
        return factor * n

    assert run_pipeline(mapping(functools.partial(scale, 10)), [1, 2]) == [10, 20]


def test_a_lambda_around_a_coroutine_function_works(run_pipeline):
    async def scale(factor: int, n: int) -> int:
        return factor * n

    assert run_pipeline(mapping(lambda n: scale(10, n)), [1, 2]) == [10, 20]


@pytest.mark.parametrize("fn", [abs, float])
def test_builtin_functions_work(run_pipeline, fn):
    assert run_pipeline(mapping(fn), [1, 2]) == [1, 2]


def test_asynchronous_iterables_are_read_as_they_come(run_pipeline):
    async def source():
        for n in range(5):
            await asyncio.sleep(1)
            yield n

    async def double(n: int) -> int:
        return n * 2

    assert run_pipeline(mapping(double, source, concurrency=2)) == [0, 2, 4, 6, 8]


def test_an_endless_source_is_not_read_ahead(lab):
    items_read = []

    def source():
        for n in range(1000):
            items_read.append(n)
            yield n

    async def slow(n: int) -> int:
        await asyncio.sleep(3600)
        return n

    pipeline = mapping(slow, source, concurrency=3)
    engine = lab(pipeline)
    engine.submit(pipeline)
    engine.advance(10)
    assert items_read == [0, 1, 2]


def test_a_def_step_maps_too(run_pipeline):
    pipeline = Pipeline("p")

    async def double(n: int) -> int:
        return n * 2

    @pipeline.step
    def mapped(input, ctx) -> list:
        return ctx.map(double, input)

    assert run_pipeline(pipeline, [1, 2, 3]) == [2, 4, 6]


def test_an_item_that_maps_itself_gets_results_of_its_own(run_pipeline):
    async def outer(letter: str, ctx: Context) -> list:
        async def inner(n: int) -> str:
            return f"{letter}{n}"

        return await ctx.map(inner, [1, 2])

    assert run_pipeline(mapping(outer, concurrency=1), ["a", "b"]) == [["a1", "a2"], ["b1", "b2"]]


# --- concurrency ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [1, 3])
def test_no_more_items_are_under_way_than_allowed(run_pipeline, bound):
    now, most = 0, 0

    async def work(n: int) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(5)
        now -= 1
        return n

    run_pipeline(mapping(work, concurrency=bound), list(range(10)))
    assert most == bound


# --- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "options", "match"),
    [
        ([1, 2, 1], {}, "used the key '1' twice: give each item"),
        ([[1], [2]], {}, "ctx.map needs key=... for items of type list"),
        (["", "a"], {}, "must not be empty or begin with '@'"),
        (["@a"], {}, "must not be empty or begin with '@'"),
        ([1], {"on_error": "ignore"}, "use 'fail' or 'collect'"),
        ([1], {"concurrency": 0}, "concurrency=0: ctx.map takes a number from 1 on"),
        ([1], {"concurrency": "4"}, "concurrency='4': ctx.map takes a number from 1 on"),
        ([1], {"max_failures": -1}, "max_failures=-1: ctx.map takes a number from 0 on"),
        ([1], {"max_failures": 1}, "add on_error='collect'"),
    ],
)
def test_wrong_calls_fail_at_once_and_say_why(lab, items, options, match):
    async def same(item):
        return item

    pipeline = mapping(same, **options)
    engine = lab(pipeline)
    run = engine.submit(pipeline, items)
    engine.drain()
    fails(engine, run, match)
    assert engine.times("mapped") == 1


# --- crashes --------------------------------------------------------------------------------------


def counted():
    executed = []

    async def work(n: int, ctx: Context) -> int:
        executed.append(n)
        ctx.usage(input_tokens=10, cost=1.0)
        await asyncio.sleep(10)
        return n * n

    return executed, work


def test_a_crash_repeats_only_the_items_in_flight(lab):
    executed, work = counted()
    pipeline = mapping(work, concurrency=2)
    engine = lab(pipeline)
    run = engine.submit(pipeline, list(range(8)))
    engine.advance(25)  # 0 to 3 are stored, 4 and 5 under way
    engine.kill()
    engine.drain()
    assert engine.result(run) == [n * n for n in range(8)]
    assert sorted(executed) == [0, 1, 2, 3, 4, 4, 5, 5, 6, 7]


def test_usage_of_items_is_summed_once_also_after_a_crash(lab):
    _, work = counted()
    pipeline = mapping(work, concurrency=2)
    engine = lab(pipeline)
    run = engine.submit(pipeline, list(range(8)))
    engine.advance(25)
    engine.kill()
    engine.drain()
    assert engine.steps(run)["mapped"].usage == Usage(80, 0, 8.0, 8)
    assert engine.info(run).progress.wasted == Usage(20, 0, 2.0, 2)


def test_usage_is_summed_once_when_the_step_itself_is_tried_again(lab):
    _, work = counted()
    pipeline, tries = Pipeline("p"), []

    @pipeline.step
    async def mapped(ctx: Context) -> int:
        await ctx.map(work, [1, 2, 3])
        tries.append(1)
        if len(tries) < 3:
            raise Transient("once more")
        return 1

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    assert engine.steps(run)["mapped"].usage == Usage(30, 0, 3.0, 3)


def test_a_map_survives_faults_at_every_boundary(crash_safe):

    async def square(n: int) -> int:
        await asyncio.sleep(1)
        return n * n

    report = crash_safe(
        mapping(square, concurrency=2),
        [1, 2, 3],
        max_boundaries=3,
        faults=("kill after", "pause before"),
    )
    assert report.takeovers > 0


# --- errors ---------------------------------------------------------------------------------------


def flaky(times):
    tries = {}

    async def work(n: int) -> int:
        tries[n] = tries.get(n, 0) + 1
        if n == 2 and tries[n] <= times:
            raise Transient(f"try {tries[n]}")
        return n

    return tries, work


def test_an_item_is_tried_again_alone(lab):
    tries, work = flaky(2)
    pipeline = mapping(work)
    engine = lab(pipeline)
    run = engine.submit(pipeline, [1, 2, 3])
    engine.drain()
    assert engine.result(run) == [1, 2, 3]
    assert tries == {1: 1, 2: 3, 3: 1}
    assert engine.steps(run)["mapped"].attempts == 1


def test_a_map_may_allow_more_tries_than_its_step(lab):
    tries, work = flaky(4)
    pipeline = Pipeline("p")

    @pipeline.step(max_attempts=1)
    async def mapped(input, ctx: Context) -> list:
        return await ctx.map(work, input, max_attempts=5)

    engine = lab(pipeline)
    run = engine.submit(pipeline, [1, 2])
    engine.drain()
    assert engine.result(run) == [1, 2]
    assert tries[2] == 5


def test_an_item_that_fails_for_good_fails_the_step(lab):
    _, work = flaky(99)
    pipeline = mapping(work)
    engine = lab(pipeline)
    run = engine.submit(pipeline, [1, 2, 3])
    engine.drain()
    fails(engine, run, "mapped: ItemsFailed: item '2' failed: Transient: try 3")


def test_an_item_that_waits_long_gives_the_run_back_to_the_queue(lab):
    tries = []

    async def busy(n: int) -> int:
        tries.append(n)
        if len(tries) == 1:
            raise Transient("come back", retry_after=1200)
        return n

    pipeline = mapping(busy)
    engine = lab(pipeline)
    run = engine.submit(pipeline, [1])
    engine.advance(30)
    assert engine.info(run).state == "queued"
    engine.drain()
    assert engine.result(run) == [1]
    assert len(tries) == 2


def test_an_item_inside_an_item_that_waits_long_is_not_tried_sooner(lab):
    """The item around it must not take the long wait for a failure of its own."""
    times = []

    async def inner(n: int) -> int:
        times.append(engine.clock.monotonic())
        if len(times) == 1:
            raise Transient("come back", retry_after=1200)
        return n

    async def outer(n: int, ctx: Context) -> list[int]:
        return await ctx.map(inner, [n])

    pipeline = mapping(outer)
    engine = lab(pipeline)
    run = engine.submit(pipeline, [1])
    engine.drain()
    assert engine.result(run) == [[1]]
    assert len(times) == 2
    assert times[1] - times[0] >= 1200


def test_what_an_item_itself_finds_invalid_is_not_taken_for_its_result(lab):
    async def picky(n: int) -> int:
        raise InvalidInput(f"{n} is not welcome")

    pipeline = mapping(picky)
    engine = lab(pipeline)
    run = engine.submit(pipeline, [1])
    engine.drain()
    fails(engine, run, "mapped: InvalidInput: 1 is not welcome")


def test_a_retry_of_an_item_is_in_the_log_of_the_run(lab):
    _, work = flaky(1)
    pipeline = mapping(work)
    engine = lab(pipeline)
    run = engine.submit(pipeline, [1, 2, 3])
    engine.drain()
    [line] = at_once(engine.store.logs(run.id))
    assert (line.level, line.step, line.fields) == ("warning", "mapped", '{"key":"2"}')
    assert line.message.startswith("attempt 1 failed, next in ")
    assert line.message.endswith(": try 1")


async def bad_twos(n: int) -> int:
    if n % 2 == 0:
        raise Permanent(f"{n} is even")
    return n


def test_failures_can_be_collected(lab):
    got = []
    pipeline = Pipeline("p")

    @pipeline.step
    async def mapped(input, ctx: Context) -> int:
        got.extend(await ctx.map(bad_twos, input, on_error="collect"))
        return len(got)

    engine = lab(pipeline)
    run = engine.submit(pipeline, [1, 2, 3])
    engine.drain()
    assert got[0] == 1
    assert got[2] == 3
    assert isinstance(got[1], Failure)
    assert str(got[1].error) == "mapped[2]: Permanent: 2 is even"
    assert engine.steps(run)["mapped"].failed_items == 1


def test_too_many_failures_fail_the_step(lab):
    pipeline = mapping(bad_twos, on_error="collect", max_failures=1)
    engine = lab(pipeline)
    run = engine.submit(pipeline, [1, 2, 3, 4])
    engine.drain()
    fails(
        engine, run, "ItemsFailed: 2 items failed, more than max_failures=1; the last: .*4 is even"
    )


def test_just_as_many_failures_as_allowed_do_not(lab):
    pipeline = Pipeline("p")

    @pipeline.step
    async def mapped(input, ctx: Context) -> int:
        return len(await ctx.map(bad_twos, input, on_error="collect", max_failures=2))

    engine = lab(pipeline)
    run = engine.submit(pipeline, [1, 2, 3, 4])
    engine.drain()
    assert engine.result(run) == 4


def test_a_crash_gives_items_that_had_failed_another_chance(lab):
    executed, pipeline = [], Pipeline("p")

    async def work(n: int) -> int:
        executed.append(n)
        if n == 2:
            raise Permanent("never")
        return n

    @pipeline.step
    async def mapped(ctx: Context) -> int:
        await ctx.map(work, [1, 2, 3], on_error="collect")
        await asyncio.sleep(100)
        return 1

    engine = lab(pipeline)
    engine.submit(pipeline)
    engine.advance(10)
    engine.kill()
    engine.drain()
    assert sorted(executed) == [1, 2, 2, 3]


def test_what_an_item_returns_has_to_fit_its_declared_type(lab):
    async def liar(n: int) -> int:
        return "three"

    pipeline = mapping(liar)
    engine = lab(pipeline)
    run = engine.submit(pipeline, [1])
    engine.drain()
    fails(engine, run, "does not fit its declared type: int is not valid")


def test_a_blob_store_that_is_away_for_a_moment_does_not_fail_the_run(lab, monkeypatch):
    from holdfast.errors import StoreUnavailable

    away = [True]

    async def large(n: int) -> str:
        return "x" * 40_000

    pipeline = mapping(large)
    engine = lab(pipeline)
    put = engine._blobs.put

    async def flaky_put(key, data, **options):
        if away and away.pop():
            raise StoreUnavailable("the bucket is away")
        return await put(key, data, **options)

    monkeypatch.setattr(engine._blobs, "put", flaky_put)
    run = engine.submit(pipeline, [1])
    engine.drain()
    assert engine.info(run).state == "succeeded"
