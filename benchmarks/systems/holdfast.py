"""holdfast on SQLite, through the API that its users have."""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sys
import time
from statistics import median
from typing import Any

from benchmarks.systems import common
from benchmarks.systems.common import answer, keep_in_flight, latency, one_at_a_time, read_task
from benchmarks.systems.growth import Model
from benchmarks.systems.pipelines import five_steps, mapper
from holdfast import Holdfast, Pipeline, WorkerOptions
from holdfast.ports.store import RunFilter

noop = Pipeline("noop")
five = five_steps()
stopwatch = Pipeline("stopwatch")


@noop.step
async def only(input: None) -> dict:
    return {"i": 1, "ok": True}


@stopwatch.step
async def seconds(input: float) -> float:
    """From the caller's clock reading to this line; the monotonic clock is the same in all
    processes."""
    return time.perf_counter() - input


PIPELINES = [noop, five, mapper, stopwatch]


def open_app(task: dict[str, Any], *, worker: bool = True, name: str = "holdfast") -> Holdfast:
    """With default settings, unless the task names how many runs at once."""
    concurrency = task.get("concurrency")
    return Holdfast(
        f"sqlite:///{task['folder']}/{name}.db",
        pipelines=PIPELINES,
        worker=worker and (WorkerOptions(concurrency=concurrency) if concurrency else True),
    )


async def complete(app: Holdfast, pipeline: Pipeline[Any], input: Any = None) -> Any:
    handle = await app.submit(pipeline, input)
    return await handle.result()


async def runs(app: Holdfast, pipeline: Pipeline[Any], task: dict[str, Any]) -> dict[str, Any]:
    await keep_in_flight(task["flight"], task["flight"], lambda: complete(app, pipeline))
    return {
        "value": await keep_in_flight(
            task["count"], task["flight"], lambda: complete(app, pipeline)
        )
    }


async def noop_runs(task: dict[str, Any]) -> dict[str, Any]:
    async with open_app(task) as app:
        return await runs(app, noop, task)


async def five_step_runs(task: dict[str, Any]) -> dict[str, Any]:
    async with open_app(task) as app:
        return await runs(app, five, task)


async def five_step_p50(task: dict[str, Any]) -> dict[str, Any]:
    async with open_app(task) as app:
        await one_at_a_time(20, lambda: complete(app, five))
        return latency(await one_at_a_time(task["count"], lambda: complete(app, five)))


async def map_items(task: dict[str, Any]) -> dict[str, Any]:
    async with open_app(task) as app:
        await complete(app, mapper, 100)
        start = time.perf_counter()
        await complete(app, mapper, task["count"])
        return {"value": task["count"] / (time.perf_counter() - start)}


async def submit(task: dict[str, Any]) -> dict[str, Any]:
    """No worker: only the acceptance. Concurrent submits share transactions by themselves."""
    async with open_app(task, worker=False) as app:
        await app.submit(noop)
        return {
            "value": await keep_in_flight(task["count"], task["flight"], lambda: app.submit(noop))
        }


async def pickup_p50(task: dict[str, Any]) -> dict[str, Any]:
    async with open_app(task) as app:
        return await _pickups(app, task["count"])


async def pickup_between_p50(task: dict[str, Any]) -> dict[str, Any]:
    """This process submits, another one executes."""
    async with open_app(task, worker=False) as app:
        await app.submit(noop)
        arguments = [
            sys.executable,
            "-m",
            "benchmarks.systems.holdfast",
            json.dumps({**task, "benchmark": "work"}),
        ]
        worker = await asyncio.create_subprocess_exec(*arguments)
        try:
            await complete(app, stopwatch, time.perf_counter())
            return await _pickups(app, task["count"])
        finally:
            worker.kill()
            await worker.wait()


async def _pickups(app: Holdfast, count: int) -> dict[str, Any]:
    latencies = []
    for _ in range(count):
        await asyncio.sleep(0.05)
        latencies.append(await complete(app, stopwatch, time.perf_counter()))
    return latency(latencies)


async def work(task: dict[str, Any]) -> dict[str, Any]:
    """The other process of `pickup_between_p50`: executes until it is killed."""
    async with open_app(task):
        await asyncio.sleep(600)
    return {}


HISTORY_PAIRS = 5
HISTORY_WARM_UP = 1_000
HISTORY_SAMPLE = 5_000


async def history_growth(task: dict[str, Any]) -> dict[str, Any]:
    """How many times as long a run takes on a store full of finished runs as on an empty one.

    The sides take turns in one warm process, each opened anew, warmed up, and measured for the same
    number of runs. An empty store is a new file each time; the full one is built once and only
    grows by what is measured."""
    await write_history(task)
    rates: dict[str, list[float]] = {"empty": [], "full": []}
    await _rate(task, "first")  # the process's own warm-up: imports, caches, allocator
    for pair in range(HISTORY_PAIRS):
        for side in ("empty", "full") if pair % 2 == 0 else ("full", "empty"):
            rates[side].append(await _rate(task, "full" if side == "full" else f"empty-{pair}"))
    ratios = [empty / full for empty, full in zip(rates["empty"], rates["full"], strict=True)]
    return {
        "value": median(ratios),
        "empty": median(rates["empty"]),
        "full": median(rates["full"]),
        "ratios": ratios,
    }


async def _rate(task: dict[str, Any], name: str) -> float:
    """No-op runs per second (submit, claim, settle, await) on one file, after a warm-up on the same
    file."""
    gc.collect()
    async with open_app(task, name=name) as app:
        await keep_in_flight(HISTORY_WARM_UP, task["flight"], lambda: complete(app, noop))
        return await keep_in_flight(HISTORY_SAMPLE, task["flight"], lambda: complete(app, noop))


async def write_history(task: dict[str, Any]) -> None:
    """Finished runs: each row is one that a worker would have written."""
    count = task["count"]
    model = await Model.made_on(f"sqlite:///{task['folder']}/full.db")
    async with open_app(task, name="full", worker=False) as app:
        await model.finish(app.store, count - 1)
        states = await app.store.count(RunFilter())
    if states != {"succeeded": count}:
        raise RuntimeError(f"the history should be {count} finished runs and is {states}")


PROGRAM = """
import asyncio, resource, time
from holdfast import Holdfast, Pipeline

noop = Pipeline("noop")

@noop.step
async def only(input: None) -> dict:
    return {"ok": True}

async def main():
    async with Holdfast("sqlite:///FOLDER/start.db", pipelines=[noop]) as app:
        await (await app.submit(noop)).result()
        print(time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)

asyncio.run(main())
"""


async def worker_start(task: dict[str, Any]) -> dict[str, Any]:
    """From the start of a fresh interpreter until its first run is done."""
    program = PROGRAM.replace("FOLDER", task["folder"])
    start = time.perf_counter()
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(child.communicate(), 60)
    if child.returncode:
        raise RuntimeError(f"the fresh interpreter ended with {child.returncode}")
    end, memory = map(float, output.split())
    return {"value": end - start, "rss": memory}


def main() -> None:
    task = read_task()
    figures = common.run(globals()[task["benchmark"]](task), fast=task.get("uvloop", False))
    answer(**figures, peak_rss=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()
