"""What a step may ask of the engine while it runs."""

import asyncio
import json
import time
import uuid

import pytest

from holdfast import Context, Pipeline, RunFailed, Transient
from holdfast.model.usage import Usage
from holdfast.testing.world import at_once


def one_step(function, **options):
    pipeline = Pipeline("p")
    pipeline.step(name="s", **options)(function)
    return pipeline


def played(lab, function, input=None, **options):
    pipeline = one_step(function, **options)
    engine = lab(pipeline)
    run = engine.submit(pipeline, input)
    engine.drain()
    return engine, run


# --- ctx.step -------------------------------------------------------------------------------------


def test_an_inner_step_runs_once_although_its_step_is_tried_again(lab):
    calls, tries = [], []

    async def charge(amount: int) -> str:
        calls.append(amount)
        return f"receipt-{len(calls)}"

    async def s(ctx: Context) -> str:
        receipt = await ctx.step("charge", charge, 10)
        tries.append(receipt)
        if len(tries) < 3:
            raise Transient("after the charge")
        return receipt

    engine, run = played(lab, s)
    assert engine.result(run) == "receipt-1"
    assert calls == [10]
    assert tries == ["receipt-1"] * 3


def test_an_inner_step_is_found_again_after_a_crash(lab):
    calls = []

    async def charge() -> int:
        calls.append(1)
        return 1

    async def s(ctx: Context) -> int:
        paid = await ctx.step("charge", charge)
        await asyncio.sleep(60)
        return paid

    pipeline = one_step(s)
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(10)
    engine.kill()
    engine.drain()
    assert engine.result(run) == 1
    assert calls == [1]


def test_inner_steps_are_told_apart_by_key(lab):
    async def double(n: int) -> int:
        return n * 2

    async def s(ctx: Context) -> list:
        return [await ctx.step("double", double, n, key=n) for n in (1, 2)]

    engine, run = played(lab, s)
    assert engine.result(run) == [2, 4]


def test_a_name_can_not_be_used_twice(lab):
    async def nothing() -> None: ...

    async def s(ctx: Context) -> None:
        await ctx.step("a", nothing)
        await ctx.step("a", nothing)

    engine, run = played(lab, s)
    with pytest.raises(
        RunFailed, match="used the key '@a' twice: give each item or inner step a key of its own"
    ):
        engine.result(run)


def test_a_def_step_has_inner_steps_too(lab):
    def s(ctx) -> int:
        return ctx.step("sum", sum_of, 1, 2)

    def sum_of(a: int, b: int) -> int:
        return a + b

    engine, run = played(lab, s)
    assert engine.result(run) == 3


@pytest.mark.parametrize("fn", [time.time, uuid.uuid4])
def test_inner_steps_keep_what_differs_each_time(lab, fn):
    values = []

    async def s(ctx: Context) -> int:
        values.append(await ctx.step("once", fn))
        if len(values) < 2:
            raise Transient("again")
        return 1

    engine, run = played(lab, s)
    assert engine.result(run) == 1
    assert values[0] == values[1]


def test_inner_steps_of_items_do_not_meet_those_of_the_step(lab):
    async def say(word: str) -> str:
        return word

    async def item(letter: str, ctx: Context) -> str:
        return await ctx.step("b", lambda: f"item {letter}")

    async def s(ctx: Context) -> list:
        outer = await ctx.step("a", lambda: "outer", key="b")
        return [outer, *await ctx.map(item, ["a"])]

    engine, run = played(lab, s)
    assert engine.result(run) == ["outer", "item a"]


# --- artifacts ------------------------------------------------------------------------------------


def test_an_artifact_is_stored_under_who_made_it(lab):
    async def s(ctx: Context) -> str:
        return await ctx.artifact("report.pdf", b"bytes")

    engine, run = played(lab, s)
    key = engine.result(run)
    assert key.startswith(f"default/{run.id}/s/1/")
    assert key.endswith("-report.pdf")
    assert engine.call(engine.app.runtime.payloads.get(key)) == b"bytes"


def test_the_same_bytes_again_change_nothing_and_other_bytes_are_another_artifact(lab):
    async def s(ctx: Context) -> list:
        return [await ctx.artifact("a", data) for data in (b"1", b"1", b"2")]

    engine, run = played(lab, s)
    first, again, other = engine.result(run)
    assert first == again != other
    assert engine.call(engine.app.runtime.payloads.get(first)) == b"1"


@pytest.mark.parametrize("name", ["../etc/passwd", "", ".hidden", "a b", "x" * 200])
def test_an_artifact_name_must_be_plain(lab, name):
    async def s(ctx: Context) -> str:
        return await ctx.artifact(name, b"")

    engine, run = played(lab, s)
    with pytest.raises(RunFailed, match=r"artifact name .* is not usable: letters, digits"):
        engine.result(run)


# --- progress -------------------------------------------------------------------------------------


def test_progress_can_be_seen_while_the_step_runs(lab):
    async def s(ctx: Context) -> int:
        for n in range(10):
            ctx.progress(n, 10)
            await asyncio.sleep(10)
        return 1

    pipeline = one_step(s)
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(35)
    progress = engine.info(run).progress.steps["s"]
    assert (progress.done, progress.total, progress.status) == (3, 10, "in_progress")
    engine.drain()
    assert engine.info(run).progress.steps == {}


def test_a_map_shows_its_progress_by_itself(lab):
    async def item(n: int) -> int:
        await asyncio.sleep(10)
        return n

    async def s(ctx: Context) -> int:
        return len(await ctx.map(item, range(10), concurrency=2))

    pipeline = one_step(s)
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(25)
    progress = engine.info(run).progress.steps["s"]
    assert (progress.done, progress.total) == (4, 10)


# --- usage ----------------------------------------------------------------------------------------


def test_usage_includes_failed_tries(lab):
    tries = []

    async def s(ctx: Context) -> int:
        tries.append(1)
        ctx.usage(input_tokens=100, output_tokens=10, cost=0.5)
        if len(tries) < 3:
            raise Transient("x")
        return 1

    engine, run = played(lab, s)
    assert engine.steps(run)["s"].usage == Usage(300, 30, 1.5, 3)


def test_usage_counts_calls_of_unknown_price(lab):
    def s(ctx) -> int:
        ctx.usage(input_tokens=1)
        ctx.usage(input_tokens=1, cost=0.0)
        return 1

    engine, run = played(lab, s)
    assert engine.steps(run)["s"].usage == Usage(2, 0, 0.0, 2, 1)


def test_what_a_vanished_attempt_consumed_is_kept_as_wasted(lab):
    async def s(ctx: Context) -> int:
        ctx.usage(input_tokens=7, cost=1.0)
        await asyncio.sleep(60)
        return 1

    pipeline = one_step(s)
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(10)
    engine.kill()
    engine.drain()
    assert engine.info(run).progress.wasted == Usage(7, 0, 1.0, 1)
    assert engine.steps(run)["s"].usage == Usage(7, 0, 1.0, 1)


def test_what_was_wasted_stays_known_whenever_the_next_worker_dies(lab):
    pipeline, naps = Pipeline("p"), [60, 0]

    @pipeline.step
    async def s(ctx: Context) -> int:
        ctx.usage(input_tokens=7, cost=1.0)
        await asyncio.sleep(naps.pop(0))
        return 1

    @pipeline.step
    async def after(s: int) -> int:
        return s

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(10)
    engine.kill()
    engine.crash_after("s")
    engine.drain()
    assert engine.info(run).attempts == 3
    assert engine.info(run).progress.wasted == Usage(7, 0, 1.0, 1)


def test_what_a_failed_run_consumed_is_still_known(lab):
    async def s(ctx: Context) -> int:
        ctx.usage(input_tokens=7, cost=1.0)
        raise ValueError("no")

    engine, run = played(lab, s, max_attempts=2)
    assert engine.info(run).progress.steps["s"].usage == Usage(14, 0, 2.0, 2)


def test_what_a_damaged_result_had_cost_is_not_forgotten(lab):
    pipeline = Pipeline("p")

    @pipeline.step
    async def s(ctx: Context) -> int:
        ctx.usage(input_tokens=7, cost=1.0)
        return 1

    @pipeline.step
    async def after(s: int) -> int:
        await asyncio.sleep(60)
        return s

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(10)
    engine.kill()
    engine.damage(run, "s")
    engine.drain()
    assert engine.steps(run)["s"].usage + engine.info(run).progress.wasted == Usage(14, 0, 2.0, 2)


# --- who am I -------------------------------------------------------------------------------------


def test_the_idempotency_key_is_the_same_in_every_attempt(lab):
    keys = []

    async def s(ctx: Context) -> int:
        keys.append((ctx.idempotency_key, ctx.attempt, ctx.epoch))
        await asyncio.sleep(60)
        return 1

    pipeline = one_step(s)
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(10)
    engine.kill()
    engine.drain()
    assert keys == [(f"{run.id}:s", 1, 1), (f"{run.id}:s", 2, 2)]


def test_a_context_knows_its_run(lab):
    async def s(ctx: Context) -> list:
        return [ctx.run_id, ctx.tenant, ctx.pipeline, ctx.step_name, ctx.attempt]

    pipeline = one_step(s)
    engine = lab(pipeline)
    run = engine.submit(pipeline, tenant="acme")
    engine.drain()
    assert engine.result(run) == [run.id, "acme", "p", "s", 1]


# --- log ------------------------------------------------------------------------------------------


def logged(engine, run):
    return [
        (line.level, line.message, json.loads(line.fields))
        for line in at_once(engine.store.logs(run.id))
    ]


def test_log_lines_are_kept_with_the_run(lab):
    async def s(ctx: Context) -> int:
        ctx.log.info("begun", rows=3)
        ctx.log.warning("odd")
        return 1

    engine, run = played(lab, s)
    assert logged(engine, run) == [("info", "begun", {"rows": 3}), ("warning", "odd", {})]


def test_lines_of_items_carry_their_key_also_from_threads(lab):
    def item(n: int, ctx) -> int:
        ctx.log.info("item")
        return n

    async def s(ctx: Context) -> int:
        return len(await ctx.map(item, [7]))

    engine, run = played(lab, s)
    assert logged(engine, run) == [("info", "item", {"key": "7"})]


def test_log_lines_reach_python_logging(lab, caplog):
    async def s(ctx: Context) -> int:
        ctx.log.error("look here")
        return 1

    played(lab, s)
    assert any(
        record.name == "holdfast.run" and "look here" in record.message for record in caplog.records
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"obj": object()},
        {"n": 2**70},
        {"text": "\ud800"},
        {"step": 3},
        {"level": "high"},
        {"f": float("nan")},
    ],
    ids=[
        "an object",
        "a huge number",
        "half a character",
        "called step",
        "called level",
        "not a number",
    ],
)
def test_no_field_of_a_log_line_makes_a_step_fail(lab, fields):
    async def s(ctx: Context) -> int:
        ctx.log.info("fields", **fields)
        return 1

    engine, run = played(lab, s, max_attempts=1)
    assert engine.info(run).state == "succeeded"
    assert len(logged(engine, run)) == 1


# --- cancelled ------------------------------------------------------------------------------------


def test_the_cancelled_flag_rises_when_a_step_times_out(lab):
    contexts = []

    async def s(ctx: Context) -> list:
        if not contexts:
            contexts.append(ctx)
            await asyncio.sleep(3600)
        return [contexts[0].cancelled, ctx.cancelled]

    engine, run = played(lab, s, timeout=10)
    assert engine.result(run) == [True, False]


def test_the_cancelled_flag_of_an_item_rises_when_its_step_times_out(lab):
    contexts = []

    async def item(n: int, ctx: Context) -> bool:
        if not contexts:
            contexts.append(ctx)
            await asyncio.sleep(3600)
        return contexts[0].cancelled

    async def s(ctx: Context) -> list:
        return await ctx.map(item, [1])

    engine, run = played(lab, s, timeout=10)
    assert engine.result(run) == [True]


def test_the_cancelled_flag_rises_when_the_run_is_cancelled(lab):
    contexts = []

    async def s(ctx: Context) -> int:
        contexts.append(ctx)
        await asyncio.sleep(3600)
        return 1

    pipeline = one_step(s, timeout="2h")
    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(5)
    assert contexts[0].cancelled is False
    engine.operate("cancel", run.id)
    engine.advance(15)
    assert contexts[0].cancelled is True
