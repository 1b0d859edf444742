"""Whether a worker has anything left to do."""

import pytest

from holdfast import Lane, Permanent, Pipeline, Transient
from holdfast.services.backlog import has_work


def made(**options):
    pipeline = Pipeline("p", **options)

    @pipeline.step(max_attempts=1)
    async def only(input) -> int:
        if input == "fail":
            raise Permanent("no")
        return 1

    return pipeline


def busy(engine, pipeline, worker="me"):
    return engine.call(has_work(engine.store, [pipeline], worker, engine.clock.now()))


@pytest.mark.parametrize("lane", ["default", Lane("line", "fifo")])
def test_a_queued_run_is_work_until_it_is_done(lab, lane):
    pipeline = made(lane=lane)
    engine = lab(pipeline)
    assert not busy(engine, pipeline)
    engine.submit(pipeline, "x")
    assert busy(engine, pipeline)
    engine.drain()
    engine.stop()
    assert not busy(engine, pipeline)


def test_a_run_that_is_not_due_is_no_work_yet(lab):
    pipeline = made()
    engine = lab(pipeline)
    engine.submit(pipeline, "x", delay=3600)
    assert not busy(engine, pipeline)


def test_runs_of_other_pipelines_are_no_work(lab):
    pipeline = made()
    engine = lab(pipeline)
    engine.submit(pipeline, "x")
    assert not busy(engine, Pipeline("other"))


def test_a_lane_that_is_blocked_or_led_by_another_is_no_work(lab):
    pipeline = made(lane=Lane("line", "fifo", "block"))
    engine = lab(pipeline)
    engine.submit(pipeline, "fail")
    engine.submit(pipeline, "x")
    engine.advance(10)
    assert not busy(engine, pipeline), "blocked by its head"
    engine.stop()
    assert not busy(engine, pipeline), "still blocked when nobody leads"


def test_a_run_under_way_is_work_for_its_worker_only(lab):
    import asyncio

    pipeline = Pipeline("p")

    @pipeline.step
    async def long(input) -> int:
        await asyncio.sleep(300)
        raise Transient("later")

    engine = lab(pipeline)
    run = engine.submit(pipeline, "x")
    engine.advance(10)
    assert busy(engine, pipeline, engine.info(run).worker)
    assert not busy(engine, pipeline, "another")
