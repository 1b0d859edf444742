"""`Items[T]`: a step that works on another one's items while they are being made."""

import asyncio

import pytest

from holdfast import Context, Items, Pipeline, RunFailed
from holdfast.testing.world import at_once


async def slow_square(n: int) -> int:
    await asyncio.sleep(10)
    return n * n


def streaming(consumer, *, count=4, concurrency=1):
    """A producer that takes ten seconds per item, and the given consumer beside it."""
    pipeline = Pipeline("p")

    @pipeline.step
    async def made(ctx: Context) -> int:
        return len(await ctx.map(slow_square, range(1, count + 1), concurrency=concurrency))

    pipeline.step(name="used")(consumer)
    return pipeline


def test_a_consumer_sees_items_as_they_are_made(lab):
    values = []

    async def consumer(made: Items[int]) -> int:
        async for key, value in made:
            values.append((key, value, asyncio.get_running_loop().time()))
        return len(values)

    pipeline = streaming(consumer)
    engine = lab(pipeline)
    start = engine.clock.monotonic()
    run = engine.submit(pipeline)
    engine.drain()
    assert engine.result(run) == 4
    assert [(key, value) for key, value, _ in values] == [("1", 1), ("2", 4), ("3", 9), ("4", 16)]
    assert [round((at - start) / 10) for _, _, at in values] == [1, 2, 3, 4]


def test_a_consumer_starts_with_its_producer(lab):
    started = []

    async def consumer(made: Items[int]) -> int:
        started.append(asyncio.get_running_loop().time())
        return len(await made.all())

    pipeline = streaming(consumer)
    engine = lab(pipeline)
    start = engine.clock.monotonic()
    engine.submit(pipeline)
    engine.drain()
    assert started[0] - start < 1


def test_single_items_can_be_awaited(run_pipeline):
    async def consumer(made: Items[int]) -> list:
        third = await made["3"]
        return [third, *await made.gather(["2", "1"])]

    assert run_pipeline(streaming(consumer)) == [9, 4, 1]


def test_everything_can_be_awaited(run_pipeline):
    async def consumer(made: Items[int]) -> dict:
        return await made.all()

    assert run_pipeline(streaming(consumer, concurrency=4)) == {"1": 1, "2": 4, "3": 9, "4": 16}


def test_waiting_for_an_item_that_never_comes_fails_clearly(lab):
    async def consumer(made: Items[int]) -> int:
        return await made["99"]

    pipeline = streaming(consumer)
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    with pytest.raises(RunFailed, match="step 'made' ended without an item '99'"):
        engine.result(run)


def test_a_resumed_consumer_sees_the_stored_items_first(lab):
    attempts = []

    async def consumer(made: Items[int], ctx: Context) -> list:
        attempts.append([])
        async for key, _ in made:
            attempts[-1].append((key, asyncio.get_running_loop().time()))
        return [key for key, _ in attempts[-1]]

    pipeline = streaming(consumer)
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(25)
    engine.kill()
    engine.drain()
    assert engine.result(run) == ["1", "2", "3", "4"]
    first, second = attempts
    assert [key for key, _ in first] == ["1", "2"]
    assert second[0][1] == pytest.approx(second[1][1], abs=0.1)
    assert engine.times("made", "1") == engine.times("made", "2") == 1


def test_a_consumer_that_dies_after_its_producer_ended_sees_all_items_again(lab):
    async def consumer(made: Items[int]) -> int:
        total = sum([value async for _, value in made])
        await asyncio.sleep(30)
        return total

    pipeline = streaming(consumer)
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.crash_after("made")
    engine.drain()
    assert engine.result(run) == 1 + 4 + 9 + 16
    assert engine.times("made") == 1


def streaming_large_items():
    """Each is a blob; the consumer takes ten seconds."""
    pipeline = Pipeline("p")

    async def large(n: int) -> str:
        return str(n) * 40_000

    @pipeline.step
    async def made(ctx: Context) -> int:
        return len(await ctx.map(large, [1, 2]))

    @pipeline.step
    async def used(made: Items[str]) -> int:
        items = await made.all()
        await asyncio.sleep(10)
        return sum(len(text) for text in items.values())

    return pipeline


def test_items_that_were_too_large_for_the_store_are_streamed_again(lab):
    pipeline = streaming_large_items()
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.crash_after("made")
    engine.drain()
    assert engine.result(run) == 80_000


def test_items_that_a_rerun_cannot_take_over_are_made_anew(lab):
    pipeline = streaming_large_items()
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    engine.lose_blobs()
    again = engine.operate("rerun", run.id, from_step="used")
    engine.drain()
    assert engine.result(again) == 80_000


def streaming_then_crash(lab, harm):
    """The producer has ended, its worker dies, something happens to an item, and the consumer goes
    on."""

    async def consumer(made: Items[int]) -> dict:
        items = await made.all()
        await asyncio.sleep(60)
        return items

    pipeline = streaming(consumer, count=2)
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(25)
    assert list(engine.steps(run)) == ["made"]
    engine.kill()
    harm(engine, run)
    engine.drain()
    return engine, run


def test_a_damaged_item_is_not_streamed(lab):
    engine, run = streaming_then_crash(
        lab, lambda engine, run: engine.damage(run, "made", "1", value="666")
    )
    state = engine.info(run).state
    assert state == "failed" or engine.result(run) == {"1": 1, "2": 4}


def test_a_lost_item_is_not_silently_left_out(lab):
    def harm(engine, run):
        engine.damage(run, "made", "1", value="@blob:default/gone/made/1/x.json")

    engine, run = streaming_then_crash(lab, harm)
    state = engine.info(run).state
    assert state == "failed" or engine.result(run) == {"1": 1, "2": 4}


def test_an_item_that_was_put_aside_is_not_left_out(lab):
    """The worker dies as soon as anything was put aside, and nothing is made anew yet."""

    def harm(engine, run):
        engine.damage(run, "made", "1", value="666")
        engine.advance(0)
        engine.world.run_until(lambda: bool(at_once(engine.store.quarantined(run.id))))
        engine.kill()

    engine, run = streaming_then_crash(lab, harm)
    assert engine.result(run) == {"1": 1, "2": 4}


@pytest.mark.parametrize(
    "record", ["no record", '{"step":"made","status":"completed","source":"?"}']
)
def test_an_item_that_cannot_be_told_is_not_left_out(lab, record):
    engine, run = streaming_then_crash(
        lab, lambda engine, run: engine.damage(run, "made", "1", record=record)
    )
    assert engine.result(run) == {"1": 1, "2": 4}


def released(version, count):
    """A version of code that makes other items; the consumer is in no hurry."""
    pipeline = Pipeline("p")

    async def item(n: int) -> str:
        await asyncio.sleep(10)
        return f"{n} of {version}"

    @pipeline.step(version=version)
    async def made(ctx: Context) -> int:
        return len(await ctx.map(item, range(1, count + 1), concurrency=1))

    @pipeline.step
    async def used(made: Items[str]) -> dict:
        items = await made.all()
        await asyncio.sleep(60)
        return items

    return pipeline


def test_items_that_only_older_code_made_are_not_streamed(lab):
    old, new = released("1", count=3), released("2", count=2)
    engine = lab(old)
    run = engine.submit(old)
    engine.crash_after("made")
    engine.advance(35)
    engine.deploy(new)
    engine.crash_after("made")
    engine.drain()
    assert engine.times("made") == 2
    assert engine.result(run) == {"1": "1 of 2", "2": "2 of 2"}


def test_items_that_other_code_replaced_are_not_streamed(lab):
    """A worker of the new release has just begun when it dies, and one of the old goes on."""
    old, new = released("1", count=2), released("2", count=2)
    engine = lab(old)
    run = engine.submit(old)
    engine.crash_after("made")
    engine.advance(25)
    engine.deploy(new)
    engine.advance(0)
    engine.world.run_until(lambda: engine.times("made", "2") == 2)
    engine.kill()
    engine.deploy(old)
    engine.drain()
    assert engine.result(run) == {"1": "1 of 1", "2": "2 of 1"}
    assert "checkpoint.quarantined" not in engine.events(run)


def test_a_producer_that_is_skipped_has_no_items(run_pipeline):
    pipeline = Pipeline("p")

    @pipeline.step(when=lambda input: input)
    async def made(ctx: Context) -> int:
        return len(await ctx.map(slow_square, [1]))

    @pipeline.step
    async def used(made: Items[int]) -> dict:
        return await made.all()

    assert run_pipeline(pipeline, False) == {}


def test_inner_steps_are_no_items(run_pipeline):
    pipeline = Pipeline("p")

    @pipeline.step
    async def made(ctx: Context) -> int:
        await ctx.step("inner", slow_square, 5)
        return len(await ctx.map(slow_square, [1]))

    @pipeline.step
    async def used(made: Items[int]) -> dict:
        return await made.all()

    assert run_pipeline(pipeline) == {"1": 1}


def test_streaming_survives_faults_at_every_boundary(crash_safe):

    async def consumer(made: Items[int]) -> int:
        return sum((await made.all()).values())

    report = crash_safe(
        streaming(consumer, count=2), max_boundaries=3, faults=("kill after", "pause before")
    )
    assert report.takeovers > 0
