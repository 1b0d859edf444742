"""taskiq on Redis: as a list (at most once) or a stream (acknowledged), orjson, uvloop, 100 tasks
at once."""

from __future__ import annotations

from taskiq.serializers import ORJSONSerializer
from taskiq_redis import ListQueueBroker, RedisStreamBroker

from benchmarks.systems import jobs

made = (
    ListQueueBroker(jobs.STORE)
    if jobs.WAY == "list"
    else RedisStreamBroker(jobs.STORE, consumer_id="0")
)
broker = made.with_serializer(ORJSONSerializer())


@broker.task(task_name="noop")
async def noop(submitted: float | None = None) -> None:
    jobs.done(submitted)


async def submit(count: int, flight: int = 50) -> dict[str, float]:
    await broker.startup()
    return await jobs.in_lanes(count, flight, lambda _: noop.kiq())


async def pickup(count: int) -> dict[str, float]:
    await broker.startup()
    return await jobs.pickups(count, noop.kiq)


def work(_: int) -> None:
    options = [
        "--max-async-tasks",
        "100",
        "--max-prefetch",
        "0",
        "--no-parse",
        "--log-level",
        "ERROR",
    ]
    jobs.become("taskiq", "worker", "benchmarks.systems.taskiq:broker", "-w", "1", *options)


if __name__ == "__main__":
    jobs.serve(
        submit=submit, single=lambda count: submit(count, flight=1), work=work, pickup=pickup
    )
