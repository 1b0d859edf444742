"""A worker whose SQLite file is damaged under it ends with a code and a line; once the file is
restored another one goes on."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from tests.acceptance.gated_pipeline import gated
from tests.acceptance.harness import SHORT_LEASE, Harness

from holdfast import Holdfast

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

FILES = ("holdfast.db", "holdfast.db-wal")


def test_a_worker_ends_when_its_file_is_damaged_and_another_goes_on_when_it_is_restored(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with Harness(tmp_path) as harness:
            worker = harness.start_worker(lease=SHORT_LEASE)
            run = await harness.run_in_slow_step(worker, "patient")
            await harness.app.submit(gated, "later", delay="1h")
            keep(tmp_path)
            damage(tmp_path)
            # Written from what this process has in its cache: the worker has to read anew.
            await harness.app.submit(gated, "later", delay="1h")
            code = await harness.exit_code(worker)
            assert code == 2, worker.log
            last = worker.log.strip().splitlines()[-1]
            assert "holdfast.db is not a usable SQLite database" in last
            assert "Restore it from a backup" in last

            await harness.app.close()
            restore(tmp_path)
            successor = harness.start_worker(lease=SHORT_LEASE)
            successor.open_gate()
            app = Holdfast(harness.deployment.store, worker=False)
            async with app:
                await harness.until(lambda: over(app, run.id), "the run goes on")

    asyncio.run(story())


async def over(app: Holdfast, run: str) -> bool:
    return bool(await app.store.over([run]))


def keep(folder: Path) -> None:
    (folder / "kept").mkdir()
    for name in FILES:
        shutil.copy(folder / name, folder / "kept" / name)


def damage(folder: Path) -> None:
    """In place, as a bad disk or a careless program does."""
    for name in FILES:
        size = (folder / name).stat().st_size
        with open(folder / name, "r+b") as file:
            file.write(os.urandom(size))


def restore(folder: Path) -> None:
    (folder / "holdfast.db-shm").unlink(missing_ok=True)
    for name in FILES:
        shutil.copy(folder / "kept" / name, folder / name)
