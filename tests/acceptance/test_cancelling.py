"""Cancel and pause from another process: how soon nothing further starts, on each store that
processes can share."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from tests import postgres_server
from tests.acceptance import ticking_pipeline
from tests.acceptance.harness import Harness
from tests.redis_server import fresh_prefix, shared_server

from holdfast import Holdfast

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

CODE = Path(ticking_pipeline.__file__)
PROMISED = 0.2
"""After the acknowledgement nothing further starts later than this, in seconds."""
RENEWAL = 10.0
"""Without notifications it would take up to that."""
LONG_ENOUGH = 0.8


def store_of(kind: str, folder: Path) -> str:
    if kind == "redis":
        return shared_server().url(fresh_prefix())
    if kind == "postgres":
        return postgres_server.shared_server().url(postgres_server.fresh_schema())
    return f"sqlite:///{folder}/holdfast.db"


@pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])
def test_nothing_further_starts_after_a_cancel_or_a_pause(tmp_path: Path, kind: str) -> None:
    async def story() -> list[float]:
        async with Harness(tmp_path, store=store_of(kind, tmp_path), code=CODE) as harness:
            app = Holdfast(harness.app.store, [ticking_pipeline.ticking], worker=False)
            worker = harness.start_worker()
            await harness.until(lambda: worker.is_up, "the worker is up")
            operations = app.operations
            changes = [operations.cancel, operations.pause]
            return [
                await stop_a_run(harness, app, change, work)
                for change in changes
                for work in ("items", "inner steps")
            ]

    delays = asyncio.run(story())
    # One of four may meet a machine that is busy with something else; a renewal takes far longer.
    assert sorted(delays)[-2] <= PROMISED, delays
    assert max(delays) <= RENEWAL / 10, delays


async def stop_a_run(harness: Harness, app: Holdfast, change, work: str) -> float:
    """How long after the acknowledgement the last item started; 0 if none did."""
    path = harness.folder / ticking_pipeline.STARTS
    path.unlink(missing_ok=True)
    run = await app.submit("ticking", work)
    await harness.until(lambda: len(starts(path)) > 10, "the run is under way")
    await change(run.id)
    acknowledged = time.time()
    history = await app.store.history(run.id)
    items = await app.store.checkpoints(run.id)
    await asyncio.sleep(LONG_ENOUGH)
    assert await app.store.history(run.id) == history, "nothing commits after it"
    assert await app.store.checkpoints(run.id) == items
    return max(0.0, max(starts(path)) - acknowledged)


def starts(path: Path) -> list[float]:
    return [float(line) for line in path.read_text().split()] if path.exists() else []
