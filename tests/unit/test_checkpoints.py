"""Stored results: when they are used again, and when not."""

import asyncio

import pytest
from pydantic import BaseModel

from holdfast import Context, Pipeline, RunFailed
from holdfast.adapters.memory.blobs import MemoryBlobs
from holdfast.engine.payloads import Payloads
from holdfast.errors import Damaged
from holdfast.model.checkpoint import (
    MAX_VALIDATION_FAILURES,
    Checkpoint,
    checksum,
    digest,
    is_outdated,
)
from holdfast.testing.world import at_once


class Word(BaseModel):
    text: str


def chain(*, version="1", result=str, nap=100):
    """first → second → third, the third of which takes its time."""
    pipeline = Pipeline("p")

    @pipeline.step(version=version)
    async def first(input) -> result:
        return result(input)

    @pipeline.step
    async def second(first: result) -> str:
        return f"{first}!"

    @pipeline.step
    async def beside(input) -> str:
        return "beside"

    @pipeline.step
    async def third(second: str, beside: str) -> str:
        await asyncio.sleep(nap)
        return f"{second}!"

    return pipeline


def interrupted(lab, pipeline=None, input="a"):
    """An engine whose worker died while the third step was running."""
    pipeline = pipeline or chain()
    engine = lab(pipeline)
    run = engine.submit(pipeline, input)
    engine.advance(10)
    engine.kill()
    return engine, run


def quarantined(engine, run):
    return at_once(engine.store.quarantined(run.id))


# --- the rule -------------------------------------------------------------------------------------


def stored(**changes):
    fields = {
        "step": "s",
        "key": "",
        "value": "1",
        "checksum": checksum("1"),
        "schema": "int",
        "fingerprint": "f",
    }
    return Checkpoint(**{**fields, **changes})


def test_a_sound_checkpoint_is_reused():
    assert at_once(Payloads(None).result(stored())) == "1"
    assert not is_outdated(stored(), "int", "f")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("@blob:acme/r1/s/1/gone.json", "missing from the blob store"),
        ("2", "checksum does not match"),
    ],
)
def test_a_broken_one_says_why(value, reason):
    with pytest.raises(Damaged, match=reason):
        at_once(Payloads(MemoryBlobs()).result(stored(value=value)))


@pytest.mark.parametrize(("schema", "fingerprint"), [("str", "f"), ("int", "g")])
def test_one_that_answers_another_question_is_outdated(schema, fingerprint):
    assert is_outdated(stored(), schema, fingerprint)


def test_no_two_lists_share_a_digest_by_concatenation():
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("a", "") != digest("a")


# --- damage ---------------------------------------------------------------------------------------


def test_sound_results_are_not_executed_again(lab):
    engine, run = interrupted(lab)
    engine.drain()
    assert engine.result(run) == "a!!"
    assert [engine.times(step) for step in ("first", "second", "beside", "third")] == [1, 1, 1, 2]


@pytest.mark.parametrize("changes", [{"value": '"b"'}, {"checksum": "0"}, {"value": "{"}])
def test_a_damaged_result_is_put_aside_and_made_again(lab, changes):
    engine, run = interrupted(lab)
    engine.damage(run, "first", **changes)
    engine.drain()
    assert engine.result(run) == "a!!"
    assert [engine.times(step) for step in ("first", "second", "beside")] == [2, 1, 1]
    assert [(step, key) for step, key, _ in quarantined(engine, run)] == [("first", "")]
    assert "checksum" in quarantined(engine, run)[0][2]
    assert engine.events(run).count("checkpoint.quarantined") == 1


def test_a_damaged_item_is_put_aside_and_made_again(lab):
    pipeline = Pipeline("p")

    async def square(n: int) -> int:
        return n * n

    @pipeline.step
    async def mapped(ctx: Context) -> list:
        squares = await ctx.map(square, [1, 2, 3])
        await asyncio.sleep(100)
        return squares

    engine, run = interrupted(lab, pipeline)
    engine.damage(run, "mapped", "2", value="5")
    engine.drain()
    assert engine.result(run) == [1, 4, 9]
    assert [engine.times("mapped", key) for key in "123"] == [1, 2, 1]
    assert [(step, key) for step, key, _ in quarantined(engine, run)] == [("mapped", "2")]


def test_when_results_of_a_step_go_bad_three_times_the_run_fails_and_says_what_to_do(lab):
    engine, run = interrupted(lab)
    for _ in range(MAX_VALIDATION_FAILURES):
        engine.damage(run, "first")
        engine.advance(60)
        engine.kill()
    engine.drain()
    with pytest.raises(
        RunFailed,
        match=r"CheckpointsCorrupt: stored results of step 'first' failed validation 3 times",
    ):
        engine.result(run)
    assert "Check the disk and who else writes to the store; then run the pipeline again" in str(
        engine.info(run).error
    )


@pytest.mark.parametrize("on_error", ["fail", "collect"])
def test_items_that_go_bad_too_often_fail_the_run_whatever_the_map_tolerates(lab, on_error):
    pipeline = Pipeline("p")

    async def square(n: int) -> int:
        return n * n

    @pipeline.step
    async def mapped(ctx: Context) -> int:
        squares = await ctx.map(square, [1, 2, 3], on_error=on_error)
        await asyncio.sleep(100)
        return len(squares)

    engine, run = interrupted(lab, pipeline)
    for key in "123":
        engine.damage(run, "mapped", key, value="0")
    engine.drain()
    with pytest.raises(
        RunFailed, match="stored results of step 'mapped' failed validation 3 times"
    ):
        engine.result(run)


# --- other code -----------------------------------------------------------------------------------


def test_a_new_version_of_a_step_is_executed_and_what_depends_on_it(lab):
    engine, run = interrupted(lab)
    changed = chain(version="2")
    changed.steps["first"].function = _shouting
    engine.deploy(changed)
    engine.drain()
    assert engine.result(run) == "A!!"
    assert [engine.times(step) for step in ("first", "second", "beside")] == [2, 2, 1]


async def _shouting(input):
    return input.upper()


def test_a_new_version_with_the_same_answer_spares_what_depends_on_it(lab):
    engine, run = interrupted(lab)
    engine.deploy(chain(version="2"))
    engine.drain()
    assert engine.result(run) == "a!!"
    assert [engine.times(step) for step in ("first", "second")] == [2, 1]


def test_another_result_type_is_executed_again(lab):
    engine, run = interrupted(lab, input=5)
    engine.deploy(chain(result=int))
    engine.drain()
    assert engine.result(run) == "5!!"
    assert engine.times("first") == 2


def mapping(version):
    pipeline = Pipeline("p")

    async def item(n: int) -> str:
        return f"{n} by {version}"

    @pipeline.step(version=version)
    async def mapped(ctx: Context) -> list:
        squares = await ctx.map(item, range(5))
        await asyncio.sleep(100)
        return squares

    return pipeline


def test_a_new_version_of_a_map_makes_all_its_items_anew(lab):
    engine, run = interrupted(lab, mapping("1"))
    engine.deploy(mapping("2"))
    engine.drain()
    assert engine.result(run) == [f"{n} by 2" for n in range(5)]


def test_items_whose_content_changed_are_made_anew(lab):
    pipeline, tries = Pipeline("p"), []

    async def item(pair: list) -> int:
        return pair[1]

    @pipeline.step
    async def mapped(ctx: Context) -> list:
        tries.append(1)
        squares = await ctx.map(item, [[n, len(tries)] for n in range(5)], key=lambda pair: pair[0])
        await asyncio.sleep(100)
        return squares

    engine, run = interrupted(lab, pipeline)
    engine.drain()
    assert engine.result(run) == [2] * 5


# --- large values ---------------------------------------------------------------------------------


def large(size=40_000):
    pipeline = Pipeline("p")

    @pipeline.step
    async def big(input) -> str:
        return "x" * size

    @pipeline.step
    async def after(big: str) -> str:
        await asyncio.sleep(100)
        return big + "y"

    return pipeline


def test_large_values_go_to_the_blob_store_and_come_back(lab):
    engine, run = interrupted(lab, large())
    [checkpoints] = at_once(engine.store.checkpoints(run.id))
    assert checkpoints.value.startswith(f"@blob:default/{run.id}/big/1/")
    engine.drain()
    assert engine.result(run) == "x" * 40_000 + "y"
    assert engine.info(run).result.startswith("@blob:")
    assert engine.times("big") == 1


def test_large_inputs_go_to_the_blob_store_and_come_back(lab):
    pipeline = Pipeline("p", input=str)
    pipeline.step(name="s")(lambda input: len(input))
    engine = lab(pipeline)
    run = engine.submit(pipeline, "x" * 50_000)
    engine.drain()
    assert engine.result(run) == 50_000
    assert len(engine.info(run).input) < 200


def test_a_lost_blob_is_noticed_and_its_step_executed_again(lab):
    engine, run = interrupted(lab, large())
    engine.lose_blobs()
    engine.drain()
    assert engine.result(run) == "x" * 40_000 + "y"
    assert engine.times("big") == 2
    assert "missing from the blob store" in quarantined(engine, run)[0][2]


def test_a_lost_input_fails_the_run_and_says_what_to_do(lab):
    pipeline = large()
    engine = lab(pipeline)
    run = engine.submit(pipeline, "x" * 50_000)
    engine.lose_blobs()
    engine.drain()
    with pytest.raises(RunFailed, match="missing from the blob store; submit it again"):
        engine.result(run)


# --- values that do not fit -----------------------------------------------------------------------


@pytest.mark.parametrize("value", ["three", None, object(), [1]])
def test_a_result_that_does_not_fit_its_type_is_a_clear_error_and_not_tried_again(lab, value):
    pipeline = Pipeline("p")

    @pipeline.step
    async def liar() -> int:
        return value

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    with pytest.raises(
        RunFailed, match="liar: Permanent: what the step returned does not fit its declared type: "
    ):
        engine.result(run)
    assert engine.times("liar") == 1


def test_a_step_after_sees_the_value_as_it_will_be_read_back(run_pipeline):
    pipeline = Pipeline("p")

    @pipeline.step
    async def first() -> dict:
        return {1: ("a", "b")}

    @pipeline.step
    async def second(first: dict) -> bool:
        return first == {"1": ["a", "b"]}

    assert run_pipeline(pipeline) is True


def test_a_stored_input_that_no_longer_fits_fails_the_run(lab):
    before, after = Pipeline("p", input=str), Pipeline("p", input=Word)
    for pipeline in (before, after):
        pipeline.step(name="s")(lambda input: 1)
    engine = lab(before)
    run = engine.submit(before, "a")
    engine.deploy(after)
    engine.drain()
    with pytest.raises(
        RunFailed, match="the stored input no longer fits the pipeline: Word is not valid"
    ):
        engine.result(run)


@pytest.mark.parametrize("data", [b"\xff\xfe no text", b'"changed"', b""])
def test_a_blob_that_is_not_what_it_was_costs_its_step(lab, data):
    pipeline = large()
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.crash_after("big")
    engine.advance(1.0)
    blobs = engine._blobs._objects
    [key] = [key for key in blobs if "/big/" in key]
    blobs[key] = data
    engine.drain()
    assert engine.info(run).state == "succeeded"
    assert engine.times("big") == 2
    [(step, _, reason)] = at_once(engine.store.quarantined(run.id))
    assert (step, "not what its name says" in reason) == ("big", True)


def test_a_large_result_that_is_not_what_it_was_is_not_believed(lab):
    pipeline = large()
    engine = lab(pipeline)
    run = engine.submit(pipeline, "x" * 50_000)
    engine.drain()
    blobs = engine._blobs._objects
    stored = engine.info(run).result
    assert stored.startswith("@blob:")
    blobs[stored.removeprefix("@blob:")] = b'"changed"'
    with pytest.raises(Damaged, match="the result of run"):
        engine.result(run)
