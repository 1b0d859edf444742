"""A worker works or ends: loops that fail come back, or end the worker with a reason."""

import asyncio
import logging

import pytest

from holdfast import Context, Pipeline
from holdfast.engine.journal import Journal
from holdfast.engine.supervision import HEALTHY, RESTART_DELAYS, Supervisor
from holdfast.errors import ConfigurationError
from holdfast.testing.world import World


@pytest.fixture
def world():
    world = World()
    yield world
    world.close()


class Loop:
    """Fails as often as it is told, each time after a while."""

    def __init__(self, failures, error=None, lasts=0.0):
        self.failures = failures
        self.error = error or ValueError("a bug")
        self.lasts = lasts
        self.starts = 0

    async def run(self):
        self.starts += 1
        await asyncio.sleep(self.lasts)
        if self.starts <= self.failures:
            raise self.error
        await asyncio.sleep(3600)


def supervise(world, loop, seconds=0.0):
    supervisor = Supervisor()

    async def story():
        task = supervisor.start("the loop", loop.run)
        failed = asyncio.create_task(supervisor.failed())
        await asyncio.wait([failed], timeout=seconds or sum(RESTART_DELAYS) + 1)
        outcome = failed.exception() if failed.done() else None
        task.cancel()
        return outcome

    return world.run(story(), world.process("worker"))


def test_a_loop_that_fails_is_started_again(world, caplog):
    loop = Loop(failures=len(RESTART_DELAYS))
    assert supervise(world, loop) is None
    assert loop.starts == len(RESTART_DELAYS) + 1
    assert "the loop failed, starts again in 1.0 s" in caplog.text
    assert "a bug" in caplog.text


def test_a_loop_that_keeps_failing_ends_the_worker_with_its_error(world, caplog):
    loop = Loop(failures=100)
    assert supervise(world, loop) is loop.error
    assert loop.starts == len(RESTART_DELAYS) + 1
    assert "the loop failed for good, the worker ends: a bug" in caplog.text


def test_failures_that_are_far_apart_are_counted_anew(world):
    loop = Loop(failures=20, lasts=HEALTHY + 1)
    assert supervise(world, loop, seconds=21 * (HEALTHY + 2)) is None
    assert loop.starts == 21


def test_what_only_a_person_can_mend_is_not_tried_again(world):
    loop = Loop(failures=100, error=ConfigurationError("restore the file"))
    assert supervise(world, loop) is loop.error
    assert loop.starts == 1


def test_a_worker_whose_loop_is_given_up_hands_its_runs_over(lab, monkeypatch):
    pipeline = Pipeline("p")

    @pipeline.step
    async def slow() -> None:
        await asyncio.sleep(100)

    engine = lab(pipeline)
    run = engine.submit(pipeline)
    engine.advance(1)
    assert engine.info(run).state == "running"
    worker = engine._worker
    assert worker is not None

    monkeypatch.setattr(worker.worker._progress, "write", lambda: 1 / 0)
    engine.advance(sum(RESTART_DELAYS) + 5 * worker.worker.options.progress + 5)
    assert isinstance(worker.runtime.supervisor.failure, ZeroDivisionError)
    assert engine.info(run).state == "queued"
    assert [event.type for event in engine.history(run)][-1] == "run.handed_over"


def test_one_value_that_can_not_be_written_costs_nobody_else_their_progress(
    lab, caplog, monkeypatch
):
    pipeline = Pipeline("p", input=str)
    progress_text = Journal.progress_text

    def of_good_runs(journal):
        if journal.input == "bad" and not journal.results:
            raise TypeError("no JSON")
        return progress_text(journal)

    monkeypatch.setattr(Journal, "progress_text", of_good_runs)

    @pipeline.step
    async def slow(input: str, ctx: Context) -> None:
        for number in range(10):
            await asyncio.sleep(1)
            ctx.progress(number)
        ctx.progress(10)

    engine = lab(pipeline)
    with caplog.at_level(logging.WARNING, "holdfast.worker"):
        bad, good = engine.submit(pipeline, "bad"), engine.submit(pipeline, "good")
        engine.advance(5.9)
    assert engine.info(good).progress.steps["slow"].done >= 2
    records = [r for r in caplog.records if "progress can't be written" in r.getMessage()]
    assert [bad.id in record.getMessage() for record in records] == [True]
    engine.drain()
    assert engine.info(bad).state == "succeeded"
