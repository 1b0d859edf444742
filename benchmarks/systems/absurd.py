"""absurd on PostgreSQL: 16 clients with a connection each in one worker process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from absurd_sdk import Absurd, AsyncAbsurd

from benchmarks.systems import jobs
from benchmarks.systems.common import latency, one_at_a_time

CLIENTS = 16
SUBMITTERS = 8


def client() -> AsyncAbsurd:
    app = AsyncAbsurd(jobs.STORE)

    @app.register_task(name="noop")
    async def noop(params: dict[str, Any], context: Any) -> None:
        jobs.done(params.get("submitted"))

    @app.register_task(name="five")
    async def five(params: dict[str, Any], context: Any) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for number in range(5):

            async def step(number: int = number) -> dict[str, Any]:
                return {"i": number, "ok": True}

            result = await context.step(f"step {number}", step)
        jobs.done()
        return result

    return app


def prepare(_: int) -> None:
    program = Path(sys.executable).with_name("absurdctl")
    subprocess.run([program, "init", "-d", jobs.STORE], check=True, capture_output=True)
    Absurd(jobs.STORE).create_queue("default")


async def submit(count: int, name: str = "noop", clients: int = SUBMITTERS) -> dict[str, float]:
    apps = [client() for _ in range(clients)]
    return await jobs.in_lanes(count, clients, lambda lane: apps[lane].spawn(name, {}))


async def five_p50(count: int) -> dict[str, float]:
    """Spawned and executed by one process without a poll in between."""
    app = client()

    async def execute() -> None:
        await app.spawn("five", {})
        await app.work_batch()

    await one_at_a_time(10, execute)
    return latency(await one_at_a_time(count, execute))


async def pickup(count: int) -> dict[str, float]:
    app = client()
    return await jobs.pickups(count, lambda submitted: app.spawn("noop", {"submitted": submitted}))


async def work(_: int) -> None:
    def worker(number: int) -> Any:
        name = f"{os.getpid()}-{number}"
        return client().start_worker(
            concurrency=1, batch_size=20, worker_id=name, poll_interval=0.01
        )

    await asyncio.gather(*(worker(number) for number in range(CLIENTS)))


if __name__ == "__main__":
    jobs.serve(
        prepare=prepare,
        submit=submit,
        single=lambda count: submit(count, clients=1),
        submit_five=lambda count: submit(count, "five"),
        work=work,
        pickup=pickup,
        five_p50=five_p50,
    )
