"""C code that holds the interpreter lock for longer than a lease: nothing can renew it, the run is
given up in the end, and its error says why."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.acceptance import blocking_pipeline
from tests.acceptance.harness import SHORT_LEASE, Harness

from holdfast import Holdfast

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

CODE = Path(blocking_pipeline.__file__)


@pytest.mark.parametrize(("pipeline", "step"), [("in-loop", "count"), ("in-thread", "count_aside")])
def test_the_error_of_the_run_names_the_cause_and_the_remedy(
    tmp_path: Path, pipeline: str, step: str
) -> None:
    async def story() -> None:
        async with Harness(tmp_path, code=CODE) as harness:
            app = Holdfast(harness.app.store, blocking_pipeline.PIPELINES, worker=False)
            run = await app.submit(pipeline, "x")
            workers = [harness.start_worker(lease=SHORT_LEASE) for _ in range(2)]
            await harness.until(lambda: harness.is_over(run), "the run is given up")
            error = (await run.info()).error
            assert error is not None
            logs = "\n".join(worker.log for worker in workers)
            assert error.name == "InterpreterBlocked", logs
            assert "the interpreter was blocked for" in error.message
            assert f"in step {step}" in error.message
            assert "process of its own" in error.message
            assert f"run {run.id} of {pipeline}: lease lost because the interpreter was" in logs

    asyncio.run(story())
