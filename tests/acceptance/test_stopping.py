"""A worker that is told to stop is gone within its grace and 3 s, and does not keep its runs: with
real processes, signals and servers."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
from tests import postgres_server
from tests.acceptance import stubborn_pipeline
from tests.acceptance.harness import Harness, WorkerProcess
from tests.postgres_server import PostgresServer
from tests.redis_server import RedisServer

from holdfast import Holdfast, RunHandle
from holdfast.cli.signals import EXIT_TIMEOUT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

CODE = Path(stubborn_pipeline.__file__)
GRACE = 0.2
NOTICE = 0.3
"""What a busy machine takes to tell us that a process has ended, in seconds."""


def redis_or_postgres(kind: str) -> tuple[RedisServer | PostgresServer, str]:
    """A server of its own, and the address of a store on it."""
    if kind == "redis":
        redis = RedisServer("--appendonly", "yes").start()
        return redis, redis.url()
    postgres = PostgresServer().create()
    return postgres, postgres.url(postgres_server.fresh_schema())


async def begin(harness: Harness, pipeline: str) -> tuple[WorkerProcess, RunHandle]:
    """A worker in the middle of a run that does not end by itself."""
    app = Holdfast(harness.app.store, stubborn_pipeline.PIPELINES, worker=False)
    run = await app.submit(pipeline, "x")
    worker = harness.start_worker(grace=f"{GRACE * 1000:.0f}ms")
    begun = harness.folder / stubborn_pipeline.BEGUN
    await harness.until(begun.exists, "its step has begun")
    return worker, run


async def stop(harness: Harness, worker: WorkerProcess) -> int | None:
    """Tell it to stop, and see to it that it is gone in time."""
    asked_at = time.monotonic()
    worker.send(signal.SIGTERM)
    code = await harness.exit_code(worker)
    took = time.monotonic() - asked_at
    assert took < GRACE + EXIT_TIMEOUT + NOTICE, f"it took {took:.1f} s\n{worker.log}"
    return code


async def is_handed_over(harness: Harness, run: RunHandle) -> None:
    info = await run.info()
    assert (info.state, info.attempts) == ("queued", 0)
    assert (await harness.story_of(run))[-1] == "run.handed_over"


@pytest.mark.parametrize("pipeline", ["obeys", "swallows", "blocks-thread", "blocks-loop"])
def test_a_step_that_does_not_end_keeps_neither_the_process_nor_the_lease(
    tmp_path: Path, pipeline: str
) -> None:
    async def story() -> None:
        async with Harness(tmp_path, code=CODE) as harness:
            worker, run = await begin(harness, pipeline)
            assert await stop(harness, worker) == 0, worker.log
            await is_handed_over(harness, run)

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_runs_are_handed_over_to_a_server_while_the_event_loop_is_blocked(
    tmp_path: Path, kind: str
) -> None:
    server, url = redis_or_postgres(kind)

    async def story() -> None:
        async with Harness(tmp_path, store=url, code=CODE) as harness:
            worker, run = await begin(harness, "blocks-loop")
            assert await stop(harness, worker) == 0, worker.log
            await is_handed_over(harness, run)

    try:
        asyncio.run(story())
    finally:
        server.end()


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_server_that_does_not_answer_does_not_keep_the_process(tmp_path: Path, kind: str) -> None:
    """Its run goes on elsewhere when the lease has ended."""
    server, url = redis_or_postgres(kind)

    async def story() -> None:
        async with Harness(tmp_path, store=url, code=CODE) as harness:
            worker, run = await begin(harness, "obeys")
            frozen = processes(server)
            for pid in frozen:
                os.kill(pid, signal.SIGSTOP)
            try:
                assert await stop(harness, worker) == 128 + signal.SIGTERM, worker.log
            finally:
                for pid in frozen:
                    os.kill(pid, signal.SIGCONT)
            assert "leases" in worker.log
            assert (await run.info()).state == "running"

    try:
        asyncio.run(story())
    finally:
        server.end()


def processes(server: RedisServer | PostgresServer) -> list[int]:
    from holdfast.testing.servers.postgres import children

    return [server.pid, *children(server.pid)]
