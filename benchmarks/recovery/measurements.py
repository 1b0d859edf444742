"""The measurements: each returns seconds by their names in the table."""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from pathlib import Path

from benchmarks.recovery.pipelines import line, results, stubborn, ticking, told
from benchmarks.recovery.processes import Start, Workers, stop, until
from holdfast import Holdfast
from holdfast.adapters.records import StoreRecords
from holdfast.engine import cursors
from holdfast.testing.servers.postgres import PostgresServer
from holdfast.testing.servers.redis import RedisServer

ENDLESS = 1_000_000
RUNS = 8
"""Of the killed worker: each is a figure."""
MESSAGES = 200
AWAY = 3.0
"""How long servers are away, in seconds."""

Figures = dict[str, list[float]]


async def kills(workers: Workers, rounds: int) -> Figures:
    """Kill the worker that has the runs, while another stands by."""
    figures: Figures = defaultdict(list)
    async with Holdfast(workers.store, [ticking, line], worker=False) as app:
        for _ in range(RUNS):
            await app.submit(ticking, ENDLESS)
        await app.submit(line, ENDLESS)
        worker = await workers.start()
        await until(lambda: len(at_work(workers, worker.pid)) == RUNS + 1, "all runs are under way")
        for _ in range(rounds):
            standby = await workers.start()
            await asyncio.sleep(random.uniform(0, 10))  # anywhere between two renewals
            worker.kill()
            killed = time.time()
            worker.wait()
            pid = standby.pid
            await until(lambda pid=pid: len(at_work(workers, pid)) == RUNS + 1, "all are resumed")
            for start in at_work(workers, pid).values():
                is_line = start.pipeline == line.name
                name = "worker killed → next leader's run goes on" if is_line else KILLED
                figures[name].append(start.at - killed)
            worker = standby
    return figures


KILLED = "worker killed → its run goes on"


def at_work(workers: Workers, pid: int) -> dict[str, Start]:
    """What a worker started first, by run."""
    first: dict[str, Start] = {}
    for start in workers.starts():
        if start.pid == pid:
            first.setdefault(start.run, start)
    return first


async def stops(workers: Workers, rounds: int) -> Figures:
    """Tell workers to stop: idle, in the middle of short items, in a step that does not end."""
    figures: Figures = defaultdict(list)
    async with Holdfast(workers.store, [ticking, stubborn], worker=False) as app:
        for _ in range(rounds):
            figures["SIGTERM → gone, idle"].append(await stop(await workers.start()))
        for pipeline, name in ((ticking, "items of 0.2 s"), (stubborn, "a step that never ends")):
            run = await app.submit(pipeline, ENDLESS)
            for _ in range(rounds):
                worker = await workers.start()
                await until(lambda pid=worker.pid: at_work(workers, pid), "it is at work")
                figures[f"SIGTERM → gone, {name}"].append(await stop(worker))
            await app.operations.cancel(run.id)
    return figures


async def outages(workers: Workers, server: PostgresServer | RedisServer, rounds: int) -> Figures:
    """Kill the server under a worker, and start it again."""
    figures: Figures = defaultdict(list)
    async with Holdfast(workers.store, [ticking], worker=False) as app:
        for _ in range(RUNS):
            await app.submit(ticking, ENDLESS)
        worker = await workers.start()
        await until(lambda: len(at_work(workers, worker.pid)) == RUNS, "all runs are under way")
        for _ in range(rounds):
            server.kill()
            await asyncio.sleep(AWAY)
            await asyncio.to_thread(server.start)
            up = time.time()
            # An item starts when the one before it is committed.
            await until(lambda up=up: any(s.at > up for s in workers.starts()), "a commit")
            first = min(start.at for start in workers.starts() if start.at > up)
            figures["server up → first commit"].append(first - up)
            await asyncio.sleep(2)
    return figures


async def bus_outages(folder: Path, rounds: int) -> Figures:
    """Kill the bus, let runs end meanwhile, and start it again."""
    figures: Figures = defaultdict(list)
    bus = RedisServer("--appendonly", "yes", "--appendfsync", "always").start()
    try:
        async with Holdfast(f"sqlite:///{folder}/told.db", [told], bus=bus.url()) as app:
            await (await app.submit(told, 1)).result(60)
            for _ in range(rounds):
                bus.kill()
                runs = await app.submit_many(told, range(MESSAGES))
                await asyncio.gather(*(run.result(60) for run in runs))
                await asyncio.sleep(AWAY)
                await asyncio.to_thread(bus.start)
                up = time.monotonic()
                await drained(app)
                name = f"bus up → outbox drained ({MESSAGES} messages)"
                figures[name].append(time.monotonic() - up)
    finally:
        bus.end()
    return figures


async def drained(app: Holdfast) -> None:
    """Wait until the projection has sent everything."""
    records, behind = StoreRecords(app.store), True
    while behind:
        cursor = await cursors.load(records, f"told.{results.__name__}")
        assert cursor is not None, "it was registered with the first message"
        behind = bool(await app.store.outbox(cursor.state.position, limit=1))
        await asyncio.sleep(0.01)
