"""Leases that were lost because the interpreter was blocked: who is told, and when."""

import asyncio
from collections import deque

from holdfast import Pipeline
from holdfast.adapters.records import StoreRecords
from holdfast.engine import interpreter, lease_losses
from holdfast.engine.interpreter import InterpreterWatch, note_end
from holdfast.engine.sweeper import AFTER_A_BLOCK, Sweeper
from holdfast.model.lease_losses import Blocked
from holdfast.services.explanation import explain
from holdfast.testing.world import at_once


def waiting():
    pipeline = Pipeline("p", input=int, max_attempts=1)

    @pipeline.step
    async def work(input: int) -> int:
        await asyncio.sleep(1000)
        return input

    return pipeline


def test_who_could_not_run_notes_its_losses_before_it_sweeps(lab, monkeypatch):
    swept = []
    sweep = Sweeper.sweep

    async def noted(self):
        swept.append(asyncio.get_running_loop().time())
        return await sweep(self)

    monkeypatch.setattr(Sweeper, "sweep", noted)
    engine = lab(waiting())
    engine.submit(waiting(), 1)
    engine.advance(11)
    before = len(swept)
    woken = engine.world.clock.monotonic() + 60
    engine.freeze(60)
    engine.advance(70)
    assert before >= 2
    assert swept[before] >= woken + AFTER_A_BLOCK
    assert swept[before] < woken + AFTER_A_BLOCK + 5.1, "the one that it rested for"


def test_what_is_noted_after_the_run_was_given_up_is_explained(lab):
    pipeline = waiting()
    engine = lab(pipeline)
    run = engine.submit(pipeline, 1)
    engine.advance(5)
    engine.kill()
    engine.join()
    engine.advance(60)
    info = engine.info(run)
    assert (info.state, info.error.name) == ("failed", "WorkerLost")
    assert at_once(explain(engine.store, info)).cause == "worker_lost"
    records = StoreRecords(engine.store)
    at_once(lease_losses.note(records, run.id, Blocked(34.0, "work")))
    explained = at_once(explain(engine.store, info))
    assert explained.cause == "interpreter_blocked"
    assert "the interpreter was blocked for 34.0 s in step work" in explained.sentence
    assert "process of its own" in explained.sentence


def test_a_step_that_is_over_when_somebody_looks_is_named(monkeypatch):
    monkeypatch.setattr(interpreter, "_ended", deque())
    watch = InterpreterWatch()
    watch.looked -= 30.0
    watch._processor -= 30.0
    note_end("culprit", 2.0)
    note_end("next", 0.1)
    blocked = watch.look(0.5)
    assert blocked is not None
    assert blocked.step == "culprit"
    note_end("later", 2.0)
    assert watch.look(0.5) is None
