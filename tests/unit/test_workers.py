"""The registry of workers: who is alive, who is lost."""

import asyncio
import os
import socket
from importlib.metadata import version

import pytest

from holdfast import Pipeline, __version__
from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.records import StoreRecords
from holdfast.engine.keeper import LeaseKeeper
from holdfast.engine.registry import KEPT, Registration, WorkerInfo
from holdfast.errors import StoreUnavailable
from holdfast.model.lease import LeaseTimes
from holdfast.services.workers import list_workers
from holdfast.testing.clock import ManualClock
from holdfast.testing.world import at_once


def slow(seconds=1000):
    pipeline = Pipeline("slow")

    @pipeline.step
    async def s(input) -> int:
        await asyncio.sleep(seconds)
        return input

    return pipeline


def workers(engine):
    return at_once(list_workers(StoreRecords(engine.store)))


def test_a_worker_is_listed_with_what_it_does(lab):
    pipeline = slow()
    engine = lab(pipeline)
    for number in range(3):
        engine.submit(pipeline, number)
    engine.advance(25)
    [worker] = workers(engine)
    assert (worker.state, worker.active, worker.concurrency) == ("alive", 3, 64)
    assert (worker.host, worker.pid) == (socket.gethostname(), os.getpid())
    assert (worker.version, worker.pipelines) == (__version__, ["slow"])
    assert worker.silent < 10


def test_a_worker_is_listed_as_soon_as_it_has_started(lab):
    engine = lab(slow())
    engine.advance(1)
    assert [worker.active for worker in workers(engine)] == [0]


def test_a_worker_that_vanished_is_lost_with_its_leases_and_forgotten_after_an_hour(lab):
    engine = lab(slow())
    engine.advance(15)
    engine.kill()
    engine.world.run_for(24)
    [alive] = workers(engine)
    engine.world.run_for(2)
    [lost] = workers(engine)
    assert (alive.name, alive.state, lost.state) == (lost.name, "alive", "lost")
    engine.world.run_for(KEPT)
    assert workers(engine) == []


def test_a_worker_that_stops_is_not_listed_any_more(lab):
    engine = lab(slow())
    engine.advance(15)
    engine.join()
    engine.advance(15)
    assert len(workers(engine)) == 2
    engine.stop()
    [other] = workers(engine)
    assert other.state == "alive"


def test_many_workers_are_all_listed():
    async def harness():
        store = MemoryStore(ManualClock())
        await store.open()
        for number in range(230):
            await registration(StoreRecords(store), name=f"w{number:03}").begin()
        listed = await list_workers(StoreRecords(store))
        assert [worker.name for worker in listed] == [f"w{number:03}" for number in range(230)]

    asyncio.run(harness())


def registration(records, name="w"):
    keeper = LeaseKeeper(None, ManualClock(), LeaseTimes(), threaded=False)
    return Registration(
        records, keeper, lambda: WorkerInfo(name, "host", 1, "1.0", ["p"], 8, 0, 30.0)
    )


class Away:
    async def put(self, *_, **__):
        raise StoreUnavailable("the store is away")

    get = put


def test_a_store_that_is_away_keeps_no_worker_from_working_or_stopping(caplog):
    async def harness():
        first = registration(Away())
        await first.begin()
        await first.beat()
        await first.end()

    asyncio.run(harness())
    assert "could not be written: the store is away" in caplog.text
    assert "could not be removed: the store is away" in caplog.text


@pytest.mark.parametrize("expired", [False, True])
def test_a_record_that_somebody_else_changed_is_written_again(expired):
    async def harness():
        clock = ManualClock()
        store = MemoryStore(clock)
        await store.open()
        records = StoreRecords(store)
        first = registration(records)
        await first.begin()
        if expired:
            clock.advance(KEPT + 1)
        else:
            [record] = (await records.get("workers/w")).records
            await records.delete(record.key, expected=record.version)
        await first.beat()
        await first.beat()
        assert [worker.state for worker in await list_workers(records)] == ["alive"]

    asyncio.run(harness())


def test_the_version_is_that_of_the_package():
    assert __version__ == version("holdfast")
