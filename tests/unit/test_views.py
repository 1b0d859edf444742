"""What people see of a run: which steps ran, which were reused, what is still to come, what it
cost."""

import asyncio

import msgspec
import pytest

from holdfast import Context, Pause, Permanent, Pipeline
from holdfast.services.views import live_view, run_view, summary


async def price(item: int, ctx: Context) -> int:
    ctx.usage(input_tokens=10, output_tokens=1, cost=0.01)
    return item


def report(break_at="", pause_at=""):
    pipeline = Pipeline("report")

    @pipeline.step
    async def clustering(input, ctx: Context) -> str:
        ctx.usage(input_tokens=100, output_tokens=10, cost=0.5)
        return f"{input}"

    @pipeline.step
    async def claims(clustering: str, ctx: Context) -> int:
        return sum(await ctx.map(price, [1, 2, 3]))

    @pipeline.step(when=lambda input: False)
    async def cruxes(claims: int) -> int:
        return claims

    @pipeline.step(max_attempts=1)
    async def summaries(claims: int, ctx: Context) -> int:
        ctx.usage(input_tokens=5)
        if "summaries" in break_at:
            raise Permanent("the model refused")
        if "summaries" in pause_at:
            raise Pause("budget")
        await asyncio.sleep(3600)
        return claims

    return pipeline


def view_of(engine, pipeline, run, view=run_view):
    info = engine.info(run)
    return engine.call(view(engine.store, info, engine.clock.now(), list(pipeline.steps)))


def words(view):
    return {step.name: f"{step.status}{' reused' if step.reused else ''}" for step in view.steps}


@pytest.fixture
def finished(lab):
    """A run whose worker died after the second step."""
    pipeline = report()
    pipeline.steps["summaries"].timeout = 7200.0
    pipeline.timeout = 7200.0
    engine = lab(pipeline)
    engine.crash_after("claims")
    run = engine.submit(pipeline, "x", tenant="acme", key="k")
    engine.drain()
    return engine, pipeline, run


def test_steps_of_an_earlier_attempt_are_reused_and_the_others_executed(finished):
    view = view_of(*finished)
    assert words(view) == {
        "clustering": "completed reused",
        "claims": "completed reused",
        "cruxes": "skipped",
        "summaries": "completed",
    }
    assert (view.totals.executed, view.totals.reused, view.totals.skipped) == (1, 2, 1)


def test_items_and_usage_are_counted_by_step_and_in_total(finished):
    view = view_of(*finished)
    claims = view.steps[1]
    assert (claims.items, claims.usage.total_tokens, claims.usage.calls) == (3, 33, 3)
    assert view.totals.usage.total_tokens == 110 + 33 + 5
    assert view.totals.usage.cost == pytest.approx(0.53)
    assert view.totals.usage.unpriced == 1


def test_the_cheap_view_tells_the_same_about_the_steps(finished):
    assert words(view_of(*finished, view=live_view)) == words(view_of(*finished))


def test_waiting_and_working_are_told_apart(finished):
    run = view_of(*finished).run
    assert run.wait >= 0
    assert run.duration >= 3600
    assert (run.tenant, run.key, run.state) == ("acme", "k", "succeeded")


def test_the_history_has_no_gaps(finished):
    history = view_of(*finished).history
    assert [event.seq for event in history] == list(range(1, len(history) + 1))
    assert [event.type for event in history][-1] == "run.completed"


def test_without_the_pipeline_the_stored_steps_come_in_the_order_they_ended(finished):
    engine, _, run = finished
    view = engine.call(run_view(engine.store, engine.info(run), engine.clock.now()))
    assert [step.name for step in view.steps][:2] == ["clustering", "claims"]
    assert len(view.steps) == 4


def test_a_run_that_has_not_begun_shows_its_steps_as_pending(lab):
    pipeline = report()
    engine = lab(pipeline)
    run = engine.submit(pipeline, "x")
    view = view_of(engine, pipeline, run)
    assert set(words(view).values()) == {"pending"}
    assert view.run.duration is None


def test_a_step_under_way_is_in_progress(lab):
    pipeline = report()
    engine = lab(pipeline)
    run = engine.submit(pipeline, "x")
    engine.advance(10)
    assert words(view_of(engine, pipeline, run))["summaries"] == "in_progress"


def test_what_was_under_way_when_the_run_was_handed_over_is_pending(lab):
    pipeline = report()
    engine = lab(pipeline)
    run = engine.submit(pipeline, "x")
    engine.advance(10)
    engine.stop(grace=0)
    view = view_of(engine, pipeline, run)
    assert view.run.state == "queued"
    assert words(view)["summaries"] == "pending"
    assert words(view)["claims"] == "completed"


@pytest.mark.parametrize("verb", ["cancel", "pause"])
def test_cancelling_or_pausing_does_not_make_executed_steps_look_reused(lab, verb):
    pipeline = report()
    engine = lab(pipeline)
    run = engine.submit(pipeline, "x")
    engine.advance(10)
    engine.operate(verb, run.id, reason="enough")
    view = view_of(engine, pipeline, run)
    assert words(view)["claims"] == "completed"
    assert view.run.reason == "enough"


def test_a_failed_run_shows_the_step_the_reason_and_its_dead_letter(lab):
    pipeline = report(break_at="summaries")
    engine = lab(pipeline)
    run = engine.submit(pipeline, "x")
    engine.drain()
    view = view_of(engine, pipeline, run)
    assert words(view)["summaries"] == "failed"
    assert view.steps[-1].error.message == "the model refused"
    assert view.dead_letter.id == f"run:{run.id}"


def test_a_rerun_shows_what_it_took_over_and_does_not_count_it_as_spent(lab):
    pipeline = report(break_at="summaries")
    engine = lab(pipeline)
    first = engine.submit(pipeline, "x")
    engine.drain()
    again = engine.operate("rerun", first.id, from_step="summaries")
    assert words(view_of(engine, pipeline, again))["claims"] == "completed reused"
    engine.drain()
    view = view_of(engine, pipeline, again)
    assert [step.inherited for step in view.steps] == [True, True, True, False]
    assert view.run.parent == first.id
    assert view.totals.usage.total_tokens == 5
    assert view.totals.inherited.total_tokens == 143


def test_damaged_checkpoints_are_counted_by_step(lab):
    pipeline = report(pause_at="summaries")
    engine = lab(pipeline)
    run = engine.submit(pipeline, "x")
    engine.drain()
    engine.damage(run, "claims")
    engine.operate("resume", run.id)
    engine.drain()
    view = view_of(engine, pipeline, run)
    assert view.validation_failures == {"claims": 1}
    assert view.steps[1].validation_failures == 1


def test_times_are_written_as_rfc_3339(finished):
    engine, _, run = finished
    text = msgspec.json.encode(summary(engine.info(run), engine.clock.now()))
    assert msgspec.json.decode(text)["created"].endswith("Z")
