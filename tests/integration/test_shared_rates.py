"""The rate limit of a vendor, kept by two worker processes together."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acceptance.seeds.stores import url_of
from tests.integration.asking_pipeline import asking

from holdfast import Holdfast
from holdfast.services.workers import list_workers
from holdfast.testing.fakellm import FakeLLM, Fixed

PIPELINE = Path(__file__).with_name("asking_pipeline.py")
CALLS = 30
PER_MINUTE = 600


class Timed(FakeLLM):
    """A fake that notes when it was asked."""

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.times: list[float] = []

    async def respond(self, *args):
        self.times.append(asyncio.get_running_loop().time())
        return await super().respond(*args)


def start_worker(store: str, fake: FakeLLM, folder: Path) -> subprocess.Popen[bytes]:
    words = ["--store", store, "--app", f"{PIPELINE}:asking", "worker", "--concurrency", "20"]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")},
        **fake.environment,
        "HOLDFAST_LLM": fake.address(rpm=PER_MINUTE),
        "HOLDFAST_BLOBS": f"file:{folder / 'blobs'}",
    }
    return subprocess.Popen([sys.executable, "-m", "holdfast", *words], env=environment, cwd=folder)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_worker_processes_keep_the_limit_of_a_vendor_together(kind, tmp_path):
    store = url_of(kind, tmp_path)

    async def story() -> None:
        async with (
            Timed(Fixed(answer={"mood": "glad"}), latency=0.05) as fake,
            Holdfast(store, [asking], worker=False) as app,
        ):
            workers = [start_worker(store, fake, tmp_path) for _ in range(2)]
            try:
                async with asyncio.timeout(30):
                    await both_alive(app)
                    runs = await app.submit_many(asking, [f"letter {n}" for n in range(CALLS)])
                    assert {await run.result() for run in runs} == {"glad"}
                busy = {(await app.store.run(run.id)).worker for run in runs}
                check(fake, busy)
            finally:
                for worker in workers:
                    worker.terminate()
                for worker in workers:
                    worker.wait(20)

    asyncio.run(story())


async def both_alive(app: Holdfast) -> None:
    for _ in range(400):
        if len(await list_workers(app.runtime.records)) == 2:
            return
        await asyncio.sleep(0.05)
    raise TimeoutError


def check(fake: Timed, busy: set[str | None]) -> None:
    assert len(busy) == 2  # both of them worked
    assert len(fake.times) == CALLS
    assert not fake.refused
    a_second = PER_MINUTE / 60
    # The first calls are late, because connections are made: they meet the ones behind them. Each
    # for itself, the two would need 1.5 seconds.
    assert fake.times[-1] - fake.times[0] >= (CALLS - 8) / a_second
