"""Locks and leader election for users' own code."""

import asyncio

import pytest

from holdfast import Conflict, LeaseLost, Pipeline
from holdfast.errors import NotFound
from holdfast.testing.world import at_once


@pytest.fixture
def engine(lab):
    pipeline = Pipeline("p")
    pipeline.step(name="s")(lambda: 1)
    return lab(pipeline)


@pytest.fixture
def run_story(engine):
    """Play a story on two apps, each in a process of its own."""

    def run_story(story):
        return engine.call(story(engine.app, engine._app(worker=False)))

    return run_story


def test_one_holder_at_a_time(run_story):
    async def story(first, second):
        async with first.lock("import"):
            with pytest.raises(Conflict, match=r"lock 'import' is held by .*; wait longer"):
                async with second.lock("import", wait=0):
                    pytest.fail("two holders")

    run_story(story)


def test_who_waits_gets_the_lock_when_it_is_released(run_story, engine):
    times = []

    async def story(first, two):
        async def second():
            async with two.lock("import"):
                times.append(engine.clock.monotonic())

        async with first.lock("import"):
            waiting = asyncio.ensure_future(second())
            await asyncio.sleep(20)
            released = engine.clock.monotonic()
        await waiting
        assert times[0] - released < 0.1

    run_story(story)


def test_waiting_ends_when_patience_ends(run_story, engine):
    async def story(first, second):
        async with first.lock("import"):
            start = engine.clock.monotonic()
            assert await second.lock("import").acquire(timeout=5) is False
            assert engine.clock.monotonic() - start == pytest.approx(5, abs=0.1)

    run_story(story)


def test_the_epoch_rises_with_every_holder(run_story):
    async def story(first, second):
        epochs = []
        for app in (first, second, first):
            async with app.lock("import") as lock:
                epochs.append(lock.epoch)
        assert epochs == [1, 2, 3]

    run_story(story)


def test_a_lock_is_kept_for_as_long_as_it_is_used(run_story):
    async def story(first, second):
        async with first.lock("import") as lock:
            await asyncio.sleep(300)
            assert lock.held
            assert not await second.lock("import").try_acquire()

    run_story(story)


def test_a_dead_holders_lock_is_free_after_its_lease(engine):
    async def hold():
        await app.lock("import").acquire()

    engine.join()
    app, process = engine._worker, engine._process
    engine.world.run(hold(), process)
    engine.kill()

    async def take():
        start = engine.clock.monotonic()
        lock = engine.app.lock("import")
        await lock.acquire()
        return engine.clock.monotonic() - start, lock.epoch

    waited, epoch = engine.call(take())
    assert 25 < waited < 31
    assert epoch == 2


def test_losing_the_lock_cancels_the_body(run_story):
    async def story(first, second):
        stopped = []

        async def body():
            async with first.lock("import"):
                await second.operations.release_lock("import", actor="anna", reason="stuck")
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    stopped.append(True)
                    raise

        with pytest.raises(
            LeaseLost, match=r"lock 'import' \(epoch 1\) was lost while it was in use"
        ):
            await body()
        assert stopped == [True]
        assert asyncio.current_task().cancelling() == 0

    run_story(story)


def test_losing_the_lock_cancels_the_body_also_when_this_process_has_it_again(run_story):
    async def story(app, other_app):
        async def body():
            async with app.lock("import"):
                await asyncio.sleep(3600)

        first = asyncio.ensure_future(body())
        await asyncio.sleep(1)
        await other_app.operations.release_lock("import")
        async with app.lock("import"):
            await asyncio.wait([first], timeout=40)
            assert isinstance(first.done() and first.exception(), LeaseLost)

    run_story(story)


def test_a_forced_release_raises_the_epoch_and_is_audited(run_story, engine):
    async def story(first, second):
        lock = first.lock("import")
        await lock.acquire()
        await second.operations.release_lock("import", actor="anna", reason="stuck")
        other = second.lock("import")
        assert await other.try_acquire()
        assert other.epoch == 3

    run_story(story)
    [entry] = at_once(engine.store.audit())
    assert (entry.actor, entry.action, entry.target, entry.reason) == (
        "anna",
        "lock.force_release",
        "import",
        "stuck",
    )


def test_releasing_by_force_what_nobody_holds_is_not_found(run_story):
    async def story(first, second):
        with pytest.raises(NotFound, match="holdfast locks list"):
            await first.operations.release_lock("import")

    run_story(story)


def test_releasing_twice_is_harmless(run_story):
    async def story(first, second):
        lock = first.lock("import")
        assert await lock.acquire()
        assert await lock.release() is True
        assert await lock.release() is False

    run_story(story)


def test_who_lost_the_lock_can_not_release_the_next_holders(run_story):
    async def story(first, second):
        lock = first.lock("import")
        await lock.acquire()
        await second.operations.release_lock("import")
        other = second.lock("import")
        assert await other.try_acquire()
        assert await lock.release() is False
        assert not await first.lock("import").try_acquire()

    run_story(story)


def test_an_error_in_the_body_is_not_hidden(run_story):
    async def story(first, second):
        with pytest.raises(ValueError, match="mine"):
            async with first.lock("import"):
                raise ValueError("mine")
        assert await second.lock("import").try_acquire()

    run_story(story)


# --- election -------------------------------------------------------------------------------------


def test_one_leader_among_many(run_story):
    async def story(app, other_app):
        first, second = app.election("sync"), other_app.election("sync")
        assert await first.campaign()
        assert not await second.campaign(timeout=1)
        assert (first.is_leader, second.is_leader) == (True, False)
        await first.resign()
        assert await second.campaign(timeout=1)
        assert second.term == first.term + 1

    run_story(story)


def test_work_is_led_again_after_leadership_was_lost(run_story):
    async def story(first, second):
        terms, stopped = [], []

        async def work(term):
            terms.append(term)
            if len(terms) == 2:
                return
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                stopped.append(term)
                raise

        leading = asyncio.ensure_future(first.election("sync").lead(work))
        await asyncio.sleep(1)
        await second.operations.release_lock("leader:sync")
        await leading
        assert stopped == [1]
        assert terms == [1, 3]

    run_story(story)


def test_an_error_of_the_work_ends_the_lead_and_frees_the_office(run_story):
    async def story(first, second):
        async def work(term):
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await first.election("sync").lead(work)
        assert await second.election("sync").campaign(timeout=1)

    run_story(story)
