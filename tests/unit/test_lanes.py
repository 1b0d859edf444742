"""Fifo lanes: strict order, one leader, whatever happens to it."""

import asyncio

import pytest

from holdfast import Holdfast, Lane, Permanent, Pipeline, Transient
from holdfast.adapters.records import StoreRecords
from holdfast.engine.leader_history import LEASE_LOST, NOT_RENEWED, STOPPED, begun
from holdfast.errors import ConfigurationError
from holdfast.model.commands import DefineLane
from holdfast.model.leadership import Leaders
from holdfast.model.options import WorkerOptions
from holdfast.services.lanes import lane_view
from holdfast.testing.world import at_once


def ordered(*, head="dead-letter", seconds=10, fail=None, delay=120):
    """Runs are numbers; `fail` says what happens at the first try of a number."""
    pipeline, log, order = Pipeline("p", lane=Lane("line", "fifo", head)), [], {}

    @pipeline.step(max_attempts=3)
    async def s(input) -> int:
        order[input] = order.get(input, 0) + 1
        log.append(("start", input))
        await asyncio.sleep(seconds)
        failure = (fail or {}).get(input)
        if failure == "permanent":
            raise Permanent("no")
        if failure == "later" and order[input] == 1:
            raise Transient("later", retry_after=delay)
        log.append(("end", input))
        return input

    return pipeline, log


def started(log):
    order = []
    for event, number in log:
        if event == "start" and number not in order:
            order.append(number)
    return order


def in_order(log, count):
    """One at a time, in the order of acceptance."""
    ends = [number for event, number in log if event == "end"]
    assert ends == list(range(count))
    assert started(log) == list(range(count))
    for index, (event, number) in enumerate(log):
        if event == "start":
            assert all(("end", earlier) in log[:index] for earlier in range(number))


def submitted(lab, pipeline, count):
    engine = lab(pipeline)
    return engine, [engine.submit(pipeline, n) for n in range(count)]


def test_runs_go_one_after_the_other_in_the_order_of_acceptance(lab):
    pipeline, log = ordered()
    engine, _ = submitted(lab, pipeline, 4)
    engine.drain()
    in_order(log, 4)


def test_priority_does_not_change_the_order(lab):
    pipeline, log = ordered()
    engine = lab(pipeline)
    for n in range(3):
        engine.submit(pipeline, n, priority=n)
    engine.drain()
    in_order(log, 3)


def test_a_run_that_is_tried_again_later_keeps_its_place(lab):
    pipeline, log = ordered(fail={1: "later"})
    engine, _ = submitted(lab, pipeline, 3)
    engine.drain()
    in_order(log, 3)


def test_the_order_holds_when_the_leader_dies(lab):
    pipeline, log = ordered()
    engine, _ = submitted(lab, pipeline, 4)
    engine.advance(15)
    engine.kill()
    engine.drain()
    in_order(log, 4)


def test_a_lane_has_a_leader_again_within_forty_seconds(lab):
    pipeline, log = ordered()
    engine, _ = submitted(lab, pipeline, 4)
    engine.advance(15)
    engine.kill()
    before = len(log)
    engine.advance(40)
    assert len(log) > before


def test_the_order_holds_when_the_leader_stands_still_past_its_lease(lab):
    pipeline, log = ordered()
    engine, runs = submitted(lab, pipeline, 5)
    engine.advance(15)
    engine.freeze(100)
    engine.join()
    engine.drain()
    engine.advance(120)
    assert all(engine.info(run).state == "succeeded" for run in runs)
    completed = [engine.info(run).finished for run in runs]
    assert completed == sorted(completed)
    assert started(log) == list(range(5))


def test_the_order_holds_when_the_leader_hands_over(lab):
    pipeline, log = ordered()
    engine, _ = submitted(lab, pipeline, 4)
    engine.advance(15)
    engine.stop(grace=1)
    engine.drain()
    in_order(log, 4)


def test_a_leader_that_hands_over_is_replaced_at_once(lab):
    pipeline, log = ordered()
    engine, _ = submitted(lab, pipeline, 2)
    engine.advance(5)
    engine.stop(grace=0)
    engine.advance(3)
    assert log.count(("start", 0)) == 2


def test_two_workers_have_one_leader(lab):
    pipeline, log = ordered()
    engine, _ = submitted(lab, pipeline, 4)
    engine.advance(1)
    engine.join()
    engine.drain()
    in_order(log, 4)


def test_the_term_rises_with_every_leader(lab):
    pipeline, _ = ordered()
    engine, _ = submitted(lab, pipeline, 3)
    engine.advance(5)
    [lane] = at_once(engine.store.lanes())
    engine.kill()
    engine.advance(45)
    [later] = at_once(engine.store.lanes())
    assert later.term == lane.term + 1
    assert later.leader != lane.leader


# --- times of the leader's own --------------------------------------------------------------------


def test_a_leader_with_a_short_lease_of_its_own_is_followed_sooner(lab):
    pipeline, _ = ordered(seconds=1)
    short = WorkerOptions(leader=Leaders(ttl=3.0, renew=1.0))
    engine = lab(pipeline, options=short)
    engine.submit(pipeline, 0)
    engine.advance(60)
    [lane] = at_once(engine.store.lanes())
    engine.kill()
    engine.advance(6)
    [later] = at_once(engine.store.lanes())
    assert (later.term, lane.term) == (lane.term + 1, 1)


def test_a_leader_that_would_be_renewed_too_late_is_refused_when_the_worker_starts():
    pipeline, _ = ordered()
    late = WorkerOptions(leader=Leaders(ttl=3.0, renew=3.0))
    app = Holdfast("memory:", [pipeline], worker=late)
    with pytest.raises(
        ConfigurationError, match=r"lane 'line': leader\.renew \(3 s\) must be less"
    ):
        asyncio.run(app.open())


def leaders(engine):
    return at_once(lane_view(engine.store, StoreRecords(engine.store), "line")).leaders


def test_the_history_of_leaders_says_who_led_and_why_that_ended(lab):
    pipeline, _ = ordered()
    engine, _ = submitted(lab, pipeline, 5)
    engine.advance(5)
    engine.kill()
    engine.advance(45)
    engine.stop(grace=0)
    second, first = leaders(engine)
    assert (first.term, first.ended) == (1, NOT_RENEWED)
    assert (second.term, second.ended) == (2, STOPPED)
    assert first.since < first.until == second.since < second.until


def test_a_leader_that_was_frozen_says_that_it_has_lost_its_lease(lab):
    pipeline, _ = ordered()
    engine, _ = submitted(lab, pipeline, 3)
    engine.advance(5)
    engine.freeze(100)
    engine.advance(200)
    assert [leader.ended for leader in leaders(engine)] == [None, LEASE_LOST]


def test_a_leader_whose_lock_was_taken_away_is_listed_with_who_did_it(lab):
    pipeline, _ = ordered()
    engine, _ = submitted(lab, pipeline, 3)
    engine.advance(5)
    engine.operate("release_lock", "lane:line", actor="ann", reason="its host is gone")
    engine.advance(60)
    second, first = leaders(engine)
    assert (first.ended, second.ended) == ("released by ann: its host is gone", None)
    assert second.term > first.term


def test_the_history_of_leaders_is_bounded():
    history = []
    for term in range(1, 60):
        history = begun(history, f"w{term}", term, float(term))
    assert [leader.term for leader in history] == list(range(40, 60))
    assert [leader.ended for leader in history] == [NOT_RENEWED] * 19 + [None]


def test_a_leader_that_is_late_to_say_so_is_put_in_its_place():
    history = begun(begun([], "w2", 2, 20.0), "w1", 1, 21.0)
    assert [(leader.worker, leader.ended) for leader in history] == [
        ("w1", NOT_RENEWED),
        ("w2", None),
    ]


# --- the head -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("head", "letters"), [("skip", 0), ("dead-letter", 1)])
def test_a_lane_may_go_on_when_its_head_fails(lab, head, letters):
    pipeline, _ = ordered(head=head, fail={1: "permanent"})
    engine, runs = submitted(lab, pipeline, 3)
    engine.drain()
    assert [engine.info(run).state for run in runs] == ["succeeded", "failed", "succeeded"]
    assert len(at_once(engine.store.dead_letters())) == letters


def blocked(lab):
    pipeline, log = ordered(head="block", fail={1: "permanent"})
    engine, runs = submitted(lab, pipeline, 3)
    engine.advance(60)
    assert [engine.info(run).state for run in runs] == ["succeeded", "failed", "queued"]
    [lane] = at_once(engine.store.lanes())
    assert lane.blocked_by == runs[1].id
    return engine, runs, log


def test_a_blocked_lane_goes_on_when_its_head_is_discarded(lab):
    engine, runs, _ = blocked(lab)
    engine.operate("discard", runs[1].id, reason="not needed")
    engine.drain()
    assert engine.info(runs[2]).state == "succeeded"
    assert engine.info(runs[1]).state == "failed"


def test_a_blocked_lane_executes_a_resumed_head_first(lab):
    engine, runs, log = blocked(lab)
    log.clear()
    engine.operate("resume", runs[1].id)
    engine.advance(30)
    assert started(log) == [1]


# --- declaring ------------------------------------------------------------------------------------


def two_lanes(first, second):
    pipelines = [Pipeline("a", lane=first), Pipeline("b", lane=second)]
    for pipeline in pipelines:
        pipeline.step(name="s")(lambda: 1)
    return pipelines


def opened(lab, *pipelines):
    engine = lab(*pipelines)
    worker = engine._app
    engine._process = engine.world.process("worker")
    app = worker(worker=True)
    return engine, app, engine._process


def test_a_lane_can_not_have_two_orders(lab):
    engine, app, process = opened(lab, *two_lanes(Lane("x", "fifo"), Lane("x", "parallel")))
    with pytest.raises(
        ConfigurationError, match=r"declared both as fifo .* and as parallel .*: choose one"
    ):
        engine.world.run(app.open(), process)


def test_a_lane_can_not_have_two_head_policies(lab):
    engine, app, process = opened(
        lab, *two_lanes(Lane("x", "fifo", "block"), Lane("x", "fifo", "skip"))
    )
    with pytest.raises(ConfigurationError):
        engine.world.run(app.open(), process)


def test_a_lane_never_changes_its_order(lab):
    engine, app, process = opened(lab, *two_lanes(Lane("x", "fifo"), Lane("y")))
    engine.world.run(app.open(), process)
    engine.deploy(*two_lanes(Lane("x", "parallel"), Lane("y")))
    changed = engine._app(worker=True)
    with pytest.raises(
        ConfigurationError, match="a lane never changes its order; use another lane name"
    ):
        engine.world.run(changed.open(), process)


def test_an_app_that_could_not_start_its_worker_is_not_open(lab):
    engine, app, process = opened(lab, *two_lanes(Lane("x", "fifo"), Lane("x", "parallel")))
    for _ in range(2):
        with pytest.raises(ConfigurationError):
            engine.world.run(app.open(), process)


def test_a_client_defines_the_lanes_of_its_pipelines_before_any_worker_starts(lab):
    pipeline, _ = ordered(head="block")
    engine = lab(pipeline)
    engine.submit(pipeline, 1)
    [lane] = at_once(engine.store.lanes())
    assert (lane.name, lane.order, lane.head, lane.queued) == ("line", "fifo", "block", 1)


def test_lanes_are_defined_once_by_each_app_that_is_opened(lab, monkeypatch):
    engine = lab(*two_lanes(Lane("x", "fifo"), Lane("y")))
    defined = []
    apply = engine.store.apply

    async def watched(commands):
        defined.extend(c.name for c in commands if isinstance(c, DefineLane))
        return await apply(commands)

    monkeypatch.setattr(engine.store, "apply", watched)
    for number in range(3):
        engine.call(engine.app.submit("a", number))
    assert defined == ["x", "y"]
    engine.drain()
    assert defined == ["x", "y", "x", "y"]


def test_a_client_is_refused_whose_code_gives_a_lane_another_order(lab):
    engine = lab(*two_lanes(Lane("x", "fifo"), Lane("y")))
    engine.call(engine.app.open())
    engine.deploy(*two_lanes(Lane("x", "parallel"), Lane("y")))
    other = engine._app(worker=False)
    with pytest.raises(ConfigurationError, match="'fifo' in this store and 'parallel' in the code"):
        engine.call(other.open())
