"""Version N−1 and version N share a store under load: whichever worker is killed, the other goes on
from its checkpoints, and the older one restarts beside the newer."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.ports.store import RunFilter
from tests import postgres_server
from tests.redis_server import fresh_prefix, shared_server

from .previous import ROOT, Version, unpack_previous

sys.path.insert(0, str(ROOT / "examples"))

import kill_workers_pipeline
from kill_workers_check import check, read_traces
from kill_workers_pipeline import STEPS, TRACES, soak

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

LEASE = {"TTL": "2s", "RENEW": "500ms", "MARGIN": "500ms", "SWEEP": "300ms"}
ENVIRONMENT = {f"HOLDFAST_LEASE_{name}": text for name, text in LEASE.items()}
CODE = Path(kill_workers_pipeline.__file__)
TIMEOUT = 40.0
WAITING = 20
"""Runs that are kept waiting, so that no worker is ever idle."""


def store_of(kind: str, folder: Path) -> str:
    if kind == "redis":
        return shared_server().url(fresh_prefix())
    if kind == "postgres":
        return postgres_server.shared_server().url(postgres_server.fresh_schema())
    return f"sqlite:///{folder}/holdfast.db"


class Fleet:
    """Workers of both versions on one store."""

    def __init__(self, folder: Path, store: str) -> None:
        self.folder, self.store = folder, store
        self.previous = Version(unpack_previous(folder / "previous"), ENVIRONMENT)
        self.current = Version(ROOT / "src", ENVIRONMENT)
        self._workers: list[subprocess.Popen[bytes]] = []

    async def start(self, version: Version) -> subprocess.Popen[bytes]:
        """A worker that is up."""
        words = ["--store", self.store, "--app", str(CODE), "worker"]
        log = self.folder / f"worker-{len(self._workers)}.log"
        worker = version.start(*words, folder=self.folder, log=log)
        self._workers.append(worker)
        await self.until(lambda: " serves " in log.read_text(), "it is up", worker)
        return worker

    async def until_at_work(self, worker: subprocess.Popen[bytes]) -> None:
        path = self.folder / TRACES
        await self.until(
            lambda: path.exists() and any(t.pid == worker.pid for t in read_traces(path)),
            "it executes something",
            worker,
        )

    async def until(self, ask, description: str, worker: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + TIMEOUT
        while not ask():
            is_alive = worker.poll() is None
            assert is_alive, f"worker {worker.pid} has ended: {description}\n{self._logs()}"
            assert time.monotonic() < deadline, f"waited {TIMEOUT} s: {description}\n{self._logs()}"
            await asyncio.sleep(0.03)

    def _logs(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("worker-*.log")))

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        worker.kill()
        worker.wait()
        self._workers.remove(worker)

    async def stop(self) -> list[int]:
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        return [await asyncio.to_thread(worker.wait, TIMEOUT) for worker in self._workers]

    def kill_all(self) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()


async def keep_busy(app: Holdfast) -> None:
    """Submit runs for as long as it is not cancelled."""
    number = 0
    while True:
        counts = await app.store.count(RunFilter())
        for _ in range(WAITING - counts.get("queued", 0)):
            await app.submit(soak, number, key=f"soak-{number}")
            number += 1
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
def test_the_version_before_works_beside_this_one(tmp_path: Path, kind: str) -> None:
    async def story(fleet: Fleet) -> None:
        old = await fleet.start(fleet.previous)  # it has made the store
        async with Holdfast(fleet.store, [soak], worker=False) as app:  # and this migrates it
            busy = asyncio.create_task(keep_busy(app))
            await fleet.until_at_work(old)
            new = await fleet.start(fleet.current)
            await fleet.until_at_work(new)
            fleet.kill(old)
            again = await fleet.start(fleet.previous)
            await fleet.until_at_work(again)
            fleet.kill(new)
            await fleet.until_at_work(await fleet.start(fleet.current))
            busy.cancel()
            await asyncio.wait([busy])
            await drained(app)
            words = ("holdfast", "--store", fleet.store, "runs", "list", "--limit", "1000")
            output = fleet.previous.call(*words, folder=fleet.folder)
            assert await fleet.stop() == [0, 0]
            total = (await app.store.count(RunFilter()))["succeeded"]
            figures, problems = await check(
                app.store, read_traces(fleet.folder / TRACES), total, STEPS
            )
            assert problems == []
            assert figures.takeovers >= 2
            assert output.count("succeeded") == min(total, 1000)

    fleet = Fleet(tmp_path, store_of(kind, tmp_path))
    assert fleet.previous.is_what_is_run(tmp_path)
    assert fleet.current.is_what_is_run(tmp_path)
    try:
        asyncio.run(story(fleet))
    finally:
        fleet.kill_all()


async def drained(app: Holdfast) -> None:
    """Wait until all runs are over."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        counts = await app.store.count(RunFilter())
        if not counts.get("queued") and not counts.get("running"):
            return
        assert time.monotonic() < deadline, counts
        await asyncio.sleep(0.05)
