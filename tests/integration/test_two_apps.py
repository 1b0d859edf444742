"""Two apps on one SQLite file, as two processes of one host would be."""

import asyncio
import time

import pytest

from holdfast import (
    Holdfast,
    Lane,
    LeaseTimes,
    MessageProjection,
    Outgoing,
    Pipeline,
    RunCancelled,
    WorkerOptions,
)
from holdfast.adapters.inprocess.bus import InProcessBus
from holdfast.adapters.sqlite import database
from holdfast.engine import cursors
from holdfast.errors import ConfigurationError, StoreUnavailable
from holdfast.model.event import EVENTS_TOPIC
from holdfast.ports.store import RunFilter

LAZY = WorkerOptions(poll=60.0)
"""Only a notification wakes such a worker in time."""


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/a.db"


def quick():
    pipeline = Pipeline("p")
    pipeline.step(name="s")(lambda input: input + 1)
    return pipeline


class Gate:
    """A pipeline whose step waits until it is let, and says where it runs."""

    def __init__(self, **options):
        self.pipeline = Pipeline("gated", **options)
        self.started, self.open, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.executions = 0

        @self.pipeline.step
        async def gated() -> int:
            self.executions += 1
            self.started.set()
            try:
                await self.open.wait()
            except asyncio.CancelledError:
                self.stopped.set()
                raise
            return self.executions


def run_story(story, *args):
    return asyncio.run(asyncio.wait_for(story(*args), 20))


def test_a_lazy_worker_hears_at_once_what_another_app_submits(url):
    async def story():
        pipeline = quick()
        async with (
            Holdfast(url, [pipeline], worker=LAZY),
            Holdfast(url, [pipeline], worker=False) as client,
        ):
            await (await client.submit(pipeline, 0)).result(10)
            start = time.monotonic()
            run = await client.submit(pipeline, 1)
            assert await run.result(10) == 2
            return time.monotonic() - start

    assert run_story(story) < 0.9


def test_a_lazy_worker_hears_at_once_what_its_own_app_submits(url):
    async def story():
        pipeline = quick()
        async with Holdfast(url, [pipeline], worker=LAZY) as app:
            await (await app.submit(pipeline, 0)).result(10)
            start = time.monotonic()
            assert await (await app.submit(pipeline, 1)).result(10) == 2
            return time.monotonic() - start

    assert run_story(story) < 0.9


def test_cancelling_from_another_app_stops_the_work(url):
    async def story():
        gate = Gate()
        options = WorkerOptions(poll=0.2)
        async with (
            Holdfast(url, [gate.pipeline], worker=options),
            Holdfast(url, worker=False) as client,
        ):
            run = await client.submit(gate.pipeline)
            await gate.started.wait()
            await client.operations.cancel(run.id, reason="enough")
            await asyncio.wait_for(gate.stopped.wait(), 3)
            with pytest.raises(RunCancelled, match="enough"):
                await run.result(5)

    run_story(story)


def test_a_lazy_worker_stops_cancelled_work_as_soon_as_it_hears_of_it(url):
    async def story():
        gate, lazy = Gate(), WorkerOptions(poll=60.0, grace=0.0)
        async with (
            Holdfast(url, [gate.pipeline], worker=lazy),
            Holdfast(url, worker=False) as client,
        ):
            run = await client.submit(gate.pipeline)
            await gate.started.wait()
            await client.operations.cancel(run.id)
            await asyncio.wait_for(gate.stopped.wait(), 1.5)

    run_story(story)


def test_a_closing_app_hands_its_runs_over(url):
    async def story():
        gate = Gate()
        first = Holdfast(url, [gate.pipeline])
        run = await first.submit(gate.pipeline)
        await gate.started.wait()
        async with Holdfast(url, worker=False) as client:
            await first.close(grace=0)
            info = await (await client.run(run.id)).info()
            assert (info.state, info.attempts) == ("queued", 0)
        gate.open.set()
        async with Holdfast(url, [gate.pipeline]) as second:
            return await (await second.run(run.id)).result(5)

    assert run_story(story) == 2


def test_a_closing_app_lets_work_end_within_its_grace(url):
    async def story():
        gate = Gate()
        app = Holdfast(url, [gate.pipeline])
        run = await app.submit(gate.pipeline)
        await gate.started.wait()
        asyncio.get_running_loop().call_later(0.1, gate.open.set)
        await app.close(grace=5)
        async with Holdfast(url, [gate.pipeline], worker=False) as client:
            return await (await client.run(run.id)).result(5)

    assert run_story(story) == 1


def test_a_fifo_lane_goes_on_when_its_leader_closes(url):
    async def story():
        gate = Gate(lane=Lane("line", "fifo"))
        first = Holdfast(url, [gate.pipeline])
        runs = [await first.submit(gate.pipeline) for _ in range(3)]
        await gate.started.wait()
        async with Holdfast(url, [gate.pipeline]) as second:
            gate.open.set()
            await first.close()
            results = [await (await second.run(run.id)).result(10) for run in runs]
        assert results == sorted(results)

    run_story(story)


def test_a_lock_released_in_one_app_is_taken_in_the_other_at_once(url):
    async def story():
        async with Holdfast(url, worker=False) as first, Holdfast(url, worker=False) as second:
            lock = first.lock("import")
            await lock.acquire()
            waiting = asyncio.ensure_future(second.lock("import").acquire())
            await asyncio.sleep(0)
            await lock.release()
            start = time.monotonic()
            assert await waiting
            return time.monotonic() - start

    assert run_story(story) < 0.4


def test_who_waits_for_a_lock_does_not_keep_the_store_busy(url):
    async def story():
        async with Holdfast(url, worker=False) as first, Holdfast(url, worker=False) as second:
            await first.lock("import").acquire()
            calls = 0
            apply = second.store.apply

            async def counted(commands):
                nonlocal calls
                calls += 1
                return await apply(commands)

            second.store.apply = counted
            assert not await second.lock("import").acquire(timeout=1.2)
            return calls

    assert run_story(story) <= 10


def test_an_app_can_be_opened_again(url):
    async def story():
        pipeline = quick()
        app = Holdfast(url, [pipeline])
        for n in range(3):
            async with app:
                assert await (await app.submit(pipeline, n)).result(5) == n + 1

    run_story(story)


def test_events_of_an_app_reach_its_bus(url):
    async def story():
        pipeline, bus = quick(), InProcessBus()
        events = bus.subscribe(EVENTS_TOPIC, "test")
        async with Holdfast(url, [pipeline], bus=bus) as app:
            run = await app.submit(pipeline, 1)
            return run, [(await anext(events)).message.id for _ in range(4)]

    run, ids = run_story(story)
    assert ids == [f"events:{run.id}:{n}" for n in (1, 2, 3, 4)]


def test_an_app_without_pipelines_runs_its_projections(url):
    async def story():
        pipeline, bus = quick(), InProcessBus()
        audits = bus.subscribe("audit", "test")
        audit = MessageProjection(
            name="audit", function=lambda event: Outgoing("audit", event.type), history=False
        )
        async with (
            Holdfast(url, bus=bus, projections=[audit]) as outside,
            Holdfast(url, [pipeline], worker=False) as client,
        ):
            while await cursors.load(outside.runtime.records, "audit") is None:
                await outside.store.wait(0, 0.05)
            await client.submit(pipeline, 1)
            return (await asyncio.wait_for(anext(audits), 10)).message.body

    assert run_story(story) == b"run.queued"


def test_many_runs_of_two_workers_are_each_executed_once(url):
    async def story():
        pipeline, executed = Pipeline("p"), []

        @pipeline.step
        async def s(input) -> int:
            executed.append(input)
            await asyncio.sleep(0)
            return input

        async with Holdfast(url, [pipeline]) as first, Holdfast(url, [pipeline]) as second:
            runs = await asyncio.gather(
                *((first, second)[n % 2].submit(pipeline, n) for n in range(200))
            )
            assert await asyncio.gather(*(run.result(15) for run in runs)) == list(range(200))
        assert sorted(executed) == list(range(200))

    run_story(story)


def test_a_dead_workers_run_goes_on_in_another_app(url):
    times = LeaseTimes(ttl=1.0, renew=0.2, margin=0.2, sweep=0.2)

    async def story():
        gate = Gate()
        dead = Holdfast(url, [gate.pipeline], lease=times)
        run = await dead.submit(gate.pipeline)
        await gate.started.wait()
        await dead.runtime.keeper.stop()  # as good as dead: its leases are renewed no more
        gate.open.clear()
        gate.started.clear()
        async with Holdfast(url, [gate.pipeline], lease=times) as alive:
            await asyncio.wait_for(gate.started.wait(), 5)
            gate.open.set()
            await (await alive.run(run.id)).result(5)
            info = await run.info()
            await dead.close(grace=0)
        return info

    info = run_story(story)
    assert (info.state, info.attempts) == ("succeeded", 2)


def test_a_full_disk_accepts_nothing_and_recovers(url, monkeypatch):
    connections = []

    def small_disk(path, connect=database.connect):
        connection = connect(path)
        connection.execute("PRAGMA max_page_count = 60")
        connections.append(connection)
        return connection

    monkeypatch.setattr(database, "connect", small_disk)

    async def fill(app, pipeline):
        for _ in range(100):
            await app.submit(pipeline, "x" * 30_000)

    async def story():
        pipeline = quick()
        async with Holdfast(url, [pipeline], worker=False) as app:
            with pytest.raises(
                StoreUnavailable, match=r"is full; nothing was accepted\. Free some space"
            ):
                await fill(app, pipeline)
            before = (await app.store.count(RunFilter()))["queued"]
            for connection in connections:
                connection.execute("PRAGMA max_page_count = 100000")
            await app.submit(pipeline, "x" * 30_000)
            assert (await app.store.count(RunFilter()))["queued"] == before + 1

    run_story(story)


def test_a_database_that_is_only_in_memory_is_refused_or_works():
    async def story():
        pipeline = quick()
        try:
            app = Holdfast("sqlite:///:memory:", [pipeline], blobs="memory:")
            await app.open()
        except ConfigurationError:
            return 2
        try:
            return await (await app.submit(pipeline, 1)).result(5)
        finally:
            await app.close()

    assert run_story(story) == 2
