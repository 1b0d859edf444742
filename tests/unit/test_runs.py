"""A run's life: accepted once, queued, running, paused, finished for good."""

import asyncio

import pytest

from holdfast import (
    Conflict,
    Context,
    Holdfast,
    Pause,
    Pipeline,
    RunCancelled,
    RunFailed,
    Transient,
    WorkerOptions,
)
from holdfast.errors import InvalidInput, NotFound, UnknownPipeline


def sleeper(seconds=60, **options):
    pipeline = Pipeline("p", **options)

    @pipeline.step
    async def first(input) -> str:
        return f"{input}"

    @pipeline.step
    async def second(first: str) -> str:
        await asyncio.sleep(seconds)
        return f"{first}!"

    return pipeline


def breaking(times):
    """Its second step fails permanently so many times."""
    pipeline, tries = Pipeline("p"), []

    @pipeline.step
    async def first(input) -> int:
        return input

    @pipeline.step(max_attempts=1)
    async def second(first: int) -> int:
        tries.append(1)
        if len(tries) <= times:
            raise ValueError("broken")
        return first + 1

    return pipeline


# --- intake ---------------------------------------------------------------------------------------


def test_the_same_key_and_input_is_the_same_run(lab):
    pipeline = sleeper()
    engine = lab(pipeline)
    first = engine.submit(pipeline, "a", key="k")
    again = engine.submit(pipeline, "a", key="k")
    assert (first.created, again.created) == (True, False)
    assert first.id == again.id


def test_a_finished_run_still_answers_its_key(lab):
    pipeline = sleeper(0)
    engine = lab(pipeline)
    engine.submit(pipeline, "a", key="k")
    engine.drain()
    assert engine.result(engine.submit(pipeline, "a", key="k")) == "a!"
    assert engine.times("first") == 1


def test_the_same_key_with_other_input_is_a_conflict_that_names_the_run(lab):
    pipeline = sleeper()
    engine = lab(pipeline)
    first = engine.submit(pipeline, "a", key="k")
    with pytest.raises(Conflict, match="use a new key for new work") as caught:
        engine.submit(pipeline, "b", key="k")
    assert caught.value.run_id == first.id


def test_keys_of_tenants_do_not_meet(lab):
    pipeline = sleeper()
    engine = lab(pipeline)
    first = engine.submit(pipeline, "a", key="k", tenant="one")
    two = engine.submit(pipeline, "b", key="k", tenant="two")
    assert two.created
    assert first.id != two.id


@pytest.mark.parametrize(
    "options",
    [{"tenant": "Ac me"}, {"tenant": ""}, {"tenant": "a/b"}, {"key": ""}, {"key": "x" * 256}],
)
def test_unusable_tenants_and_keys_are_refused(lab, options):
    engine = lab(sleeper())
    with pytest.raises(InvalidInput):
        engine.submit(sleeper(), "a", **options)


def test_a_key_that_no_store_can_hold_is_refused(lab):
    engine = lab(sleeper())
    with pytest.raises(InvalidInput):
        engine.submit(sleeper(), "a", key="\ud800")


def test_wrong_input_is_refused_before_anything_is_stored(lab):
    pipeline = Pipeline("p", input=int)
    pipeline.step(name="s")(lambda input: input)
    engine = lab(pipeline)
    with pytest.raises(InvalidInput, match="int is not valid"):
        engine.submit(pipeline, "x")


def test_a_unique_pipeline_has_one_live_run_per_tenant(lab):
    pipeline = sleeper(unique=True)
    engine = lab(pipeline)
    first = engine.submit(pipeline, "a")
    second = engine.submit(pipeline, "b")
    other = engine.submit(pipeline, "b", tenant="other")
    assert (second.id, second.created) == (first.id, False)
    assert other.created
    engine.drain()
    assert engine.submit(pipeline, "c").created


def test_pipelines_are_found_by_name_or_said_to_be_unknown(lab):
    pipeline = sleeper(0)
    engine = lab(pipeline)
    run = engine.submit("p", "a")
    engine.drain()
    assert engine.result(run) == "a!"
    with pytest.raises(UnknownPipeline, match=r"'q' is not registered here \(known: p\)"):
        engine.submit("q", "a")


def test_higher_priority_goes_first_and_equals_in_order(lab):
    started, pipeline = [], Pipeline("p")

    @pipeline.step
    async def s(input) -> int:
        started.append(input)
        await asyncio.sleep(10)
        return 1

    engine = lab(pipeline, options=WorkerOptions(concurrency=1))
    for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
        engine.submit(pipeline, name, priority=priority)
    engine.drain()
    assert started == ["b", "d", "a", "c"]


def test_a_delayed_run_waits_for_its_time(lab):
    pipeline = sleeper(0)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a", delay="100s")
    engine.advance(95)
    assert engine.info(run).state == "queued"
    engine.advance(15)
    assert engine.info(run).state == "succeeded"


def test_unknown_runs_are_not_found(lab):
    engine = lab(sleeper())
    with pytest.raises(NotFound, match="no run 'nope'"):
        engine.call(engine.app.run("nope"))


# --- cancel ---------------------------------------------------------------------------------------


def test_a_queued_run_can_be_cancelled_and_never_starts(lab):
    pipeline = sleeper()
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.operate("cancel", run.id, reason="not needed")
    engine.advance(10)
    with pytest.raises(RunCancelled, match="was cancelled: not needed"):
        engine.result(run)
    assert engine.executed == []


def test_a_running_run_is_stopped_when_it_is_cancelled_elsewhere(lab):
    stopped, pipeline = [], Pipeline("p")

    @pipeline.step
    async def s() -> int:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            stopped.append(asyncio.get_running_loop().time())
            raise
        return 1

    engine = lab(pipeline, options=WorkerOptions())
    run = engine.submit(pipeline)
    engine.advance(5)
    cancelled = engine.clock.monotonic()
    engine.operate("cancel", run.id)
    engine.advance(15)
    assert engine.info(run).state == "cancelled"
    assert stopped
    assert stopped[0] - cancelled <= 2


def test_a_full_worker_notices_a_cancelled_run_as_soon_as_an_idle_one(lab):
    stopped, pipeline = [], Pipeline("p")

    @pipeline.step
    async def s() -> int:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            stopped.append(asyncio.get_running_loop().time())
            raise
        return 1

    engine = lab(pipeline, options=WorkerOptions(concurrency=1))
    run = engine.submit(pipeline)
    engine.advance(12)
    cancelled = engine.clock.monotonic()
    engine.operate("cancel", run.id)
    engine.advance(15)
    assert stopped[0] - cancelled <= 2


def test_nothing_commits_after_a_cancel(lab):
    pipeline = sleeper(6)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.advance(5)
    engine.operate("cancel", run.id)
    before = engine.events(run)
    engine.advance(60)
    assert engine.events(run) == before
    assert list(engine.steps(run)) == ["first"]


def test_finished_is_final(lab):
    pipeline = sleeper(0)
    engine = lab(pipeline)
    succeeded, stopped = engine.submit(pipeline, "a"), engine.submit(pipeline, "b")
    engine.operate("cancel", stopped.id)
    engine.drain()
    for action in ("cancel", "pause", "resume"):
        with pytest.raises(Conflict, match="is succeeded and can't be"):
            engine.operate(action, succeeded.id)
        with pytest.raises(Conflict, match="is cancelled and can't be"):
            engine.operate(action, stopped.id)
    with pytest.raises(NotFound, match="holdfast runs list"):
        engine.operate("cancel", "nope")


# --- pause ----------------------------------------------------------------------------------------


def test_a_paused_run_waits_and_goes_on_from_its_checkpoints(lab):
    pipeline = sleeper()
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.advance(15)
    engine.operate("pause", run.id, reason="budget")
    engine.advance(100)
    info = engine.info(run)
    assert (info.state, info.reason, info.attempts) == ("paused", "budget", 0)
    engine.operate("resume", run.id)
    engine.drain()
    assert engine.result(run) == "a!"
    assert engine.times("first") == 1


def test_a_step_may_pause_its_run(lab):
    pipeline, budget = Pipeline("p"), []

    @pipeline.step
    async def s() -> int:
        if not budget:
            raise Pause("out of budget")
        return 1

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(10)
    info = engine.info(run)
    assert (info.state, info.reason, info.attempts) == ("paused", "out of budget", 0)
    budget.append(1)
    engine.operate("resume", run.id)
    engine.drain()
    assert engine.result(run) == 1


def test_an_item_may_pause_its_run(lab):
    pipeline, budget = Pipeline("p"), []

    async def item(n: int) -> int:
        if n == 2 and not budget:
            raise Pause("out of budget")
        return n

    @pipeline.step
    async def s(ctx: Context) -> list:
        return await ctx.map(item, [1, 2], on_error="collect")

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(10)
    assert engine.info(run).state == "paused"
    budget.append(1)
    engine.operate("resume", run.id)
    engine.drain()
    assert engine.result(run) == [1, 2]


def test_work_stops_when_its_run_was_paused_and_resumed_behind_its_back(lab):
    stopped, pipeline = [], Pipeline("p")

    @pipeline.step
    async def s(ctx: Context) -> int:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            stopped.append(ctx.epoch)
            raise
        return ctx.epoch

    async def pause_and_resume(app, run):
        await app.operations.pause(run.id)
        await app.operations.resume(run.id)

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(15)
    engine.call(pause_and_resume(engine.app, run))
    engine.advance(40)
    assert stopped == [1]
    engine.drain()
    assert engine.result(run) == 3


# --- failing and going on -------------------------------------------------------------------------


def test_a_failed_run_goes_on_from_its_checkpoints_when_it_is_resumed(lab):
    pipeline = breaking(1)
    engine = lab(pipeline)
    run = engine.submit(pipeline, 1)
    engine.drain()
    with pytest.raises(RunFailed, match="second: ValueError: broken"):
        engine.result(run)
    engine.operate("resume", run.id)
    engine.drain()
    assert engine.result(run) == 2
    assert engine.times("first") == 1
    assert engine.info(run).error is None


def test_a_resumed_run_has_fresh_attempts(lab):
    pipeline, tries = Pipeline("p", timeout="1m"), []

    @pipeline.step(max_attempts=2)
    async def s() -> int:
        tries.append(1)
        if len(tries) <= 2:
            await asyncio.sleep(3600)  # until the run's time is over
        if len(tries) == 3:
            raise Transient("just once")
        return 1

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    for _ in range(2):
        engine.drain()
        assert engine.info(run).state == "failed"
        engine.operate("resume", run.id)
    engine.drain()
    assert engine.info(run).state == "succeeded"


def test_a_rerun_is_a_new_run_linked_to_the_old_one(lab):
    pipeline = sleeper(0)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.drain()
    again = engine.operate("rerun", run.id)
    engine.drain()
    assert again.id != run.id
    assert engine.info(again).parent == run.id
    assert engine.result(again) == "a!"
    assert engine.times("first") == 2


def test_a_rerun_from_a_step_takes_over_what_does_not_depend_on_it(lab):
    pipeline = sleeper(0)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.drain()
    again = engine.operate("rerun", run.id, from_step="second")
    engine.drain()
    assert engine.result(again) == "a!"
    assert (engine.times("first"), engine.times("second")) == (1, 2)
    assert engine.reused(again) == ["first"]


def test_a_rerun_has_blobs_of_its_own(lab):
    pipeline = Pipeline("p")

    @pipeline.step
    async def big() -> str:
        return "x" * 40_000

    @pipeline.step
    async def size(big: str) -> int:
        return len(big)

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.drain()
    again = engine.operate("rerun", run.id, from_step="size")
    engine.call(engine.app.runtime.payloads.forget(f"default/{run.id}/"))
    engine.drain()
    assert engine.result(again) == 40_000
    assert engine.times("big") == 1


def test_a_rerun_from_a_step_that_does_not_exist_names_those_that_do(lab):
    pipeline = sleeper(0)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.drain()
    with pytest.raises(NotFound, match="its steps: first, second"):
        engine.operate("rerun", run.id, from_step="third")


# --- crashes and hand-over ------------------------------------------------------------------------


def test_a_dead_workers_run_goes_on_within_forty_seconds(lab):
    pipeline = sleeper(60)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.advance(10)
    engine.kill()
    engine.advance(40)
    assert engine.info(run).state == "running"
    assert engine.info(run).attempts == 2


def test_attempts_are_bounded_also_when_only_crashes_end_them(lab):
    pipeline = sleeper(60, max_attempts=2)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    for _ in range(2):
        engine.advance(45)
        engine.kill()
    engine.drain()
    with pytest.raises(
        RunFailed, match=r"the worker vanished 2 times.*look at what kills it, then resume"
    ):
        engine.result(run)


def test_a_worker_that_stops_hands_over_at_once_and_gives_the_attempt_back(lab):
    pipeline = sleeper(60)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.advance(10)
    engine.stop(grace=5)
    assert (engine.info(run).state, engine.info(run).attempts) == ("queued", 0)
    assert "run.handed_over" in engine.events(run)
    engine.drain()
    assert engine.result(run) == "a!"
    assert engine.times("first") == 1


def test_a_step_that_ends_within_the_grace_is_kept(lab):
    pipeline = sleeper(12)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.advance(10)
    engine.stop(grace=5)
    assert engine.result(run) == "a!"
    assert engine.info(run).epoch == 1


def test_handing_over_does_not_use_up_the_tries_of_a_step(lab):
    pipeline, tries = Pipeline("p"), []

    @pipeline.step(max_attempts=2)
    async def s() -> int:
        tries.append(1)
        if len(tries) <= 3:
            await asyncio.sleep(3600)
        if len(tries) == 4:
            raise Transient("just once")
        return 1

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    for _ in range(3):
        engine.advance(10)
        engine.stop(grace=0)
    engine.drain()
    assert engine.info(run).state == "succeeded"


def test_steps_under_way_may_finish_although_another_waits_for_its_next_try(lab):
    pipeline = Pipeline("p")

    @pipeline.step
    async def waits() -> int:
        raise Transient("later", retry_after=50)

    @pipeline.step
    async def works() -> int:
        await asyncio.sleep(12)
        return 1

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(10)
    engine.stop(grace=5)
    assert list(engine.steps(run)) == ["works"]


def test_a_worker_that_was_frozen_past_its_lease_writes_nothing(lab):
    pipeline = sleeper(20)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    engine.advance(10)
    engine.freeze(100)
    engine.join()
    engine.advance(200)
    assert engine.result(run) == "a!"
    assert engine.info(run).epoch == 2
    assert engine.events(run).count("run.completed") == 1


def test_waiting_for_a_run_has_a_limit(lab):
    pipeline = sleeper(600)
    engine = lab(pipeline)
    run = engine.submit(pipeline, "a")
    with pytest.raises(TimeoutError):
        engine.call(run.wait(timeout=10))


def test_who_waited_for_a_run_that_failed_can_wait_for_it_again_when_it_was_resumed():
    async def story():
        pipeline = breaking(times=1)
        async with Holdfast("memory:", [pipeline]) as app:
            run = await app.submit(pipeline, 1)
            for _ in range(2):
                with pytest.raises(RunFailed, match="broken"):
                    await run.result(10)
            await app.operations.resume(run.id)
            assert await run.result(10) == 2

    asyncio.run(story())
