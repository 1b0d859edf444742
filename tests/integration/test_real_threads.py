"""`def` steps in real threads: stopped from outside, and unable to do harm."""

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from holdfast import Holdfast, LeaseTimes, Pipeline, RunFailed, RunState, WorkerOptions
from holdfast.engine.threads import call, computing
from holdfast.services.workers import list_workers

QUICK = LeaseTimes(ttl=1.0, renew=0.2, margin=0.2, sweep=0.2)


def run_story(pipeline, story, **options):
    async def run():
        async with Holdfast("memory:", [pipeline], **options) as app:
            return await asyncio.wait_for(story(app), 15)

    return asyncio.run(run())


def test_a_busy_loop_ends_when_its_step_times_out():
    pipeline, threads = Pipeline("p"), []

    @pipeline.step(timeout=0.2, max_attempts=1)
    def busy() -> int:
        threads.append(threading.current_thread())
        count = 0
        while True:
            count += 1

    async def story(app):
        run = await app.submit(pipeline)
        with pytest.raises(RunFailed, match="StepTimeout"):
            await run.result()

    run_story(pipeline, story)
    threads[0].join(timeout=5)
    assert not threads[0].is_alive()


def test_a_busy_item_ends_when_its_step_times_out():
    pipeline, threads = Pipeline("p"), []

    def busy(n: int) -> int:
        threads.append(threading.current_thread())
        while True:
            n += 1

    @pipeline.step(timeout=0.2, max_attempts=1)
    async def mapped(ctx) -> list:
        return await ctx.map(busy, [1, 2])

    async def story(app):
        run = await app.submit(pipeline)
        with pytest.raises(RunFailed, match="StepTimeout"):
            await run.result()

    run_story(pipeline, story)
    for thread in threads:
        thread.join(timeout=5)
    assert [thread.is_alive() for thread in threads] == [False, False]


def test_a_thread_inside_a_blocking_call_can_write_nothing_any_more():
    pipeline, release, finished = Pipeline("p"), threading.Event(), threading.Event()

    @pipeline.step(timeout=0.2, max_attempts=1)
    def blocked(ctx) -> int:
        try:
            release.wait(10)  # one call into C: nothing can interrupt it
        finally:
            ctx.log.info("too late")
            finished.set()
        return 1

    async def story(app):
        run = await app.submit(pipeline)
        with pytest.raises(RunFailed, match="StepTimeout"):
            await run.result()
        release.set()
        await asyncio.to_thread(finished.wait, 10)
        await app.runtime.committer.drain()
        return await app.store.logs(run.id), (await run.info()).state

    logs, state = run_story(pipeline, story)
    assert logs == []
    assert state == RunState.FAILED


def test_cancelling_a_run_stops_its_thread():
    pipeline, started, threads = Pipeline("p"), threading.Event(), []

    @pipeline.step
    def busy() -> int:
        threads.append(threading.current_thread())
        started.set()
        while True:
            pass

    async def story(app):
        run = await app.submit(pipeline)
        await asyncio.to_thread(started.wait, 10)
        await app.operations.cancel(run.id)
        await asyncio.to_thread(threads[0].join, 5)
        return await run.wait()

    assert run_story(pipeline, story) is RunState.CANCELLED
    assert not threads[0].is_alive()


def test_many_def_steps_run_at_once():
    pipeline, together = Pipeline("p"), threading.Barrier(20, timeout=10)

    def item(n: int) -> int:
        together.wait()
        return n

    @pipeline.step
    def mapped(ctx) -> int:
        return len(ctx.map(item, range(20), concurrency=20))

    async def story(app):
        return await (await app.submit(pipeline)).result()

    assert run_story(pipeline, story) == 20


LEAVING = """
import asyncio, os, threading
from holdfast import Holdfast, Pipeline

pipeline, other = Pipeline("p"), Pipeline("other")

@pipeline.step(max_attempts=1)
def leaves() -> int:
    raise SystemExit(3)

other.step(name="s")(lambda: 1)

async def run_story():
    async with Holdfast("memory:", [pipeline, other]) as app:
        await app.submit(pipeline)
        print(await (await app.submit(other)).result(10), flush=True)
        os._exit(0)

watchdog = threading.Timer(3, os._exit, [4])
watchdog.daemon = True
watchdog.start()
asyncio.run(run_story())
"""


def test_a_step_that_leaves_the_program_fails_alone():
    ended = subprocess.run([sys.executable, "-c", LEAVING], capture_output=True, timeout=15)
    assert (ended.stdout, ended.returncode) == (b"1\n", 0)


def test_an_interrupt_that_comes_after_the_end_of_a_step_does_no_harm(monkeypatch):
    unhandled, delivering = [], threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda args: unhandled.append(args.exc_type))

    async def story():
        loop = asyncio.get_running_loop()
        deliver = loop.call_soon_threadsafe

        def slow(*args):
            if threading.current_thread().name.startswith("holdfast-step"):
                delivering.set()
                deadline = time.monotonic() + 0.3
                while time.monotonic() < deadline:
                    pass
            return deliver(*args)

        monkeypatch.setattr(loop, "call_soon_threadsafe", slow)
        calling = asyncio.ensure_future(call(lambda: 1, "s"))
        await asyncio.sleep(0)
        delivering.wait(5)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        for thread in threading.enumerate():
            if thread.name.startswith("holdfast-step"):
                thread.join(5)
        return computing(loop)

    assert asyncio.run(story()) == 0
    assert unhandled == []


def test_blocking_the_event_loop_does_not_lose_the_lease(tmp_path):
    pipeline, blocked, over = Pipeline("p"), threading.Event(), threading.Event()

    @pipeline.step
    async def rude() -> int:
        blocked.set()
        time.sleep(2.5)  # noqa: ASYNC251 - that is the point
        return 1

    @pipeline.step
    async def after(rude: int) -> int:
        return rude + 1

    url = f"sqlite:///{tmp_path}/a.db"

    def rival():
        """Another process's worker, eager to take over."""

        async def compete():
            blocked.wait(10)
            async with Holdfast(url, [pipeline], lease=QUICK, worker=WorkerOptions(poll=0.1)):
                await asyncio.to_thread(over.wait, 15)

        asyncio.run(compete())

    async def story():
        async with Holdfast(url, [pipeline], lease=QUICK) as app:
            run = await app.submit(pipeline)
            assert await run.result(15) == 2
            return await run.info()

    thread = threading.Thread(target=rival)
    thread.start()
    try:
        info = asyncio.run(story())
    finally:
        over.set()
        thread.join(15)
    assert (info.attempts, info.epoch) == (1, 1)


def test_a_worker_says_that_it_is_alive_while_a_step_blocks_the_event_loop():
    pipeline = Pipeline("p")

    @pipeline.step
    async def blocking() -> None:
        time.sleep(1.5)  # noqa: ASYNC251 - that is the point

    async def story(app):
        run = await app.submit(pipeline)
        await run.result()
        [worker] = await list_workers(app.runtime.records)
        assert worker.state == "alive"
        assert worker.silent < 1.0

    run_story(pipeline, story, lease=QUICK)
