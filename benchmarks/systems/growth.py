"""What a long history or a long queue costs holdfast: the store's commands on full and on empty
stores, in turns."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

import psycopg

from benchmarks.systems import jobs
from holdfast import Holdfast, Pipeline
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.commands import Claim, Claimed, SaveCheckpoint, Settle, Submit
from holdfast.model.ids import new_id
from holdfast.model.run import Run
from holdfast.ports.store import RunFilter, Store

FILL = 500
"""Runs per round trip while a store is filled."""
BATCH = 128
"""Runs per round trip while it is measured: what a worker claims at once."""
TURNS = 40
"""Round trips of each kind per store; the median counts."""
WARM_UP = 5
COMMANDS = ("submit", "claim", "list")

Times = dict[str, list[float]]

sample = Pipeline("noop")


@sample.step
async def only(input: None) -> dict:
    return {"i": 1, "ok": True}


class Model:
    """A finished run that all others are like."""

    def __init__(self, run: Run, checkpoint: Checkpoint) -> None:
        self.run = run
        self._checkpoint = checkpoint

    @classmethod
    async def made_on(cls, url: str) -> Model:
        async with Holdfast(url, pipelines=[sample]) as app:
            handle = await app.submit(sample)
            await handle.result()
            [checkpoint] = await app.store.checkpoints(handle.id)
            return cls(await handle.info(), checkpoint)

    def submits(self, count: int) -> list[Submit]:
        run, digest = self.run, "0" * 32
        ids = (new_id(time.time()) for _ in range(count))
        return [
            Submit(
                id=id,
                tenant=run.tenant,
                pipeline=run.pipeline,
                lane=run.lane,
                input=run.input,
                fingerprint=digest,
            )
            for id in ids
        ]

    def claim(self, count: int) -> Claim:
        return Claim(
            worker="growth",
            lane=self.run.lane,
            pipelines=[self.run.pipeline],
            limit=count,
            ttl=30.0,
        )

    def settles(self, claimed: list[Claimed]) -> list[Settle]:
        return [
            Settle(
                claim.run,
                claim.epoch,
                "succeeded",
                result=self.run.result,
                last=self._save(claim),
            )
            for claim in claimed
        ]

    def _save(self, claim: Claimed) -> SaveCheckpoint:
        like = self._checkpoint
        return SaveCheckpoint(
            run=claim.run,
            epoch=claim.epoch,
            step=like.step,
            key=like.key,
            value=like.value,
            checksum=like.checksum,
            schema=like.schema,
            fingerprint=like.fingerprint,
            record=like.record,
        )

    async def queue(self, store: Store, count: int) -> None:
        for start in range(0, count, FILL):
            await store.apply(self.submits(min(FILL, count - start)))

    async def finish(self, store: Store, count: int) -> None:
        """Finished runs, written by the store's own commands: each row is one that a worker would
        have written."""
        for start in range(0, count, FILL):
            batch = min(FILL, count - start)
            await store.apply(self.submits(batch))
            [claimed] = await store.apply([self.claim(batch)])
            await store.apply(self.settles(claimed))


Fill = Callable[[Model, Store, int], Awaitable[None]]


async def compare(server: str, sizes: list[int], fill: Fill) -> list[dict[str, float]]:
    """Milliseconds per command on stores of these sizes, side by side on one server, which take
    turns."""
    urls = side_by_side(server, [f"s{size}" for size in sizes])
    model = await Model.made_on(urls[0])
    apps = [Holdfast(url, worker=False) for url in urls]
    times: list[Times] = [{name: [] for name in COMMANDS} for _ in apps]
    for app, size in zip(apps, sizes, strict=True):
        await app.open()
        await fill(model, app.store, size)
    await _vacuum(server)
    for turn in range(WARM_UP + TURNS):
        order = list(zip(apps, times, strict=True))
        for app, app_times in order if turn % 2 == 0 else reversed(order):
            await _turn(model, app.store, app_times)
    for app in apps:
        await app.close()
    return [
        {name: median(seconds[WARM_UP:]) * 1e3 for name, seconds in app_times.items()}
        for app_times in times
    ]


async def _vacuum(server: str) -> None:
    """As autovacuum does within minutes: a history was not drained a moment ago."""
    if server.startswith("postgres"):
        async with await psycopg.AsyncConnection.connect(server, autocommit=True) as connection:
            await connection.execute("VACUUM (ANALYZE)")


async def _turn(model: Model, store: Store, times: Times) -> None:
    """What comes in goes out, so that the store keeps its size."""
    await _timed(times["submit"], store.apply(model.submits(BATCH)))
    [claimed] = await _timed(times["claim"], store.apply([model.claim(BATCH)]))
    if len(claimed) != BATCH:
        raise RuntimeError(f"{len(claimed)} runs were claimed instead of {BATCH}")
    await store.apply(model.settles(claimed))
    await _timed(times["list"], store.runs(RunFilter(), limit=50))


async def _timed(seconds: list[float], call: Awaitable[Any]) -> Any:
    start = time.perf_counter()
    answer = await call
    seconds.append(time.perf_counter() - start)
    return answer


def side_by_side(url: str, names: list[str]) -> list[str]:
    """Several stores on one server."""
    parameter = "schema" if url.startswith("postgres") else "prefix"
    return [f"{url}{'&' if '?' in url else '?'}{parameter}={name}" for name in names]


async def _growth(count: int, fill: Fill) -> dict[str, float]:
    """How many times as long the slowest grown command takes with 10 and 100 times as many runs."""
    sizes = [count // 100, count // 10, count]
    small, ten, hundred = await compare(jobs.STORE, sizes, fill)
    ratios = {name: hundred[name] / small[name] for name in COMMANDS}
    return {
        "value": max(ratios.values()),
        "x10": max(ten[name] / small[name] for name in COMMANDS),
        **ratios,
    }


if __name__ == "__main__":
    jobs.serve(
        history=lambda count: _growth(count, Model.finish),
        backlog=lambda count: _growth(count, Model.queue),
    )
