"""Two tenants on one service: one submits 10,000 runs, then the other 10. How long does each of
them wait?"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from benchmarks.http.load import Connection
from benchmarks.http.processes import PIPELINES, ROOT

BATCH = 500
WORKER = 4
SAMPLE = 100
"""Runs of the large tenant that are asked for."""


def _holdfast(store: str, *words: str) -> str:
    """The output of a command on the store itself."""
    command = [sys.executable, "-m", "holdfast", "--store", store, *words]
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, env=variables, check=True, capture_output=True, text=True).stdout


def make_tenants(store: str) -> dict[str, str]:
    """A key for each, with more room than they need."""
    keys: dict[str, str] = {}
    for tenant in ("large", "small"):
        _holdfast(store, "tenants", "create", tenant, "--running", "none", "--per-minute", "none")
        _holdfast(store, "tenants", "set", tenant, "--queued", "none")
        keys[tenant] = _holdfast(store, "tenants", "keys", "create", tenant).strip()
    return keys


@contextmanager
def worker(store: str) -> Iterator[None]:
    """One worker process that executes four runs at once, each of which takes 20 ms."""
    arguments = [
        "--store",
        store,
        "--app",
        f"{PIPELINES}:nap",
        "worker",
        "--concurrency",
        str(WORKER),
    ]
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src"), "HOLDFAST_LOG_LEVEL": "warning"}
    process = subprocess.Popen([sys.executable, "-m", "holdfast", *arguments], env=variables)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


async def submit(url: str, key: str, count: int) -> list[str]:
    ids: list[str] = []
    async with Connection(url, key) as connection:
        for start in range(0, count, BATCH):
            body = {"inputs": list(range(start, min(start + BATCH, count)))}
            status, answer = await connection.ask("POST", "/v1/pipelines/nap/runs/batch", body)
            assert status == 202, answer
            ids += [item["run"]["id"] for item in json.loads(answer)["items"]]
    return ids


async def waits(url: str, key: str, ids: list[str]) -> list[float]:
    """Seconds between acceptance and start of each run, once all have ended."""
    seconds: list[float] = []
    async with Connection(url, key) as connection:
        for id in ids:
            while True:
                _, answer = await connection.ask("GET", f"/v1/runs/{id}")
                run = json.loads(answer)["run"]
                if run["state"] == "succeeded":
                    break
                await asyncio.sleep(0.05)
            seconds.append(run["wait"])
    return seconds


def measure_tenants(url: str, store: str, keys: dict[str, str], many: int) -> dict[str, Any]:
    """`large` has submitted `many` runs before `small` submits 10; then a worker starts."""
    large = asyncio.run(submit(url, keys["large"], many))
    small = asyncio.run(submit(url, keys["small"], 10))
    with worker(store):
        waited = asyncio.run(waits(url, keys["small"], small))
        sample = [large[-1], *large[:: max(1, many // SAMPLE)]]  # the last one ends last
        others = asyncio.run(waits(url, keys["large"], sample))
    return {
        "small_p50_s": median(waited),
        "small_max_s": max(waited),
        "large_p50_s": median(others),
        "large_max_s": max(others),
    }
