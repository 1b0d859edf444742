"""Lists longer than what one call looks at, and indexes that shrink with what they point at."""

from __future__ import annotations

import asyncio
import re

import pytest
from tests.integration.redis.helpers import a_store, a_submit

from holdfast.adapters.redis.lists import PAGE
from holdfast.adapters.redis.store import RedisStore
from holdfast.adapters.redis.wire import ask
from holdfast.model.commands import Bury, Cancel, Claim, PauseRun, Prune, Settle
from holdfast.ports.store import RunFilter

MANY = 1200
"""More than twice what one call examines."""


async def fill(store: RedisStore) -> None:
    """Runs of three tenants and two pipelines; every tenth is rare."""
    for start in range(0, MANY, 7):  # groups of different sizes
        await store.apply([a_run(number) for number in range(start, min(start + 7, MANY))])


def a_run(number: int) -> object:
    pipeline = "rare" if number % 100 == 0 else "p"
    return a_submit(
        f"r{number:04}",
        tenant=f"t{number % 3}",
        pipeline=pipeline,
        lane="fast" if number % 2 else "slow",
    )


async def pages(store: RedisStore, where: RunFilter, limit: int) -> list[str]:
    ids: list[str] = []
    before: int | None = None
    while page := await store.runs(where, limit=limit, before=before):
        assert len(page) <= limit
        ids += [run.id for run in page]
        before = page[-1].seq
    return ids


def test_every_list_is_complete_and_in_order() -> None:
    async def story() -> None:
        async with a_store() as store:
            await fill(store)
            await store.apply([Cancel(f"r{number:04}", "ann") for number in range(0, MANY, 50)])
            await store.apply([PauseRun(f"r{number:04}", "ann") for number in range(1, MANY, 50)])
            [claimed] = await store.apply([Claim("w", "fast", ["p"], 100, 30.0)])
            await store.apply([Settle(run.run, run.epoch, "succeeded") for run in claimed[:50]])
            everything = sorted(
                await store.runs(RunFilter(), limit=10_000), key=lambda run: -run.seq
            )
            assert len(everything) == MANY
            for where in (
                RunFilter(),
                RunFilter(tenant="t1"),
                RunFilter(pipeline="rare"),
                RunFilter(pipeline="rare", tenant="t1"),
                RunFilter(state="queued"),
                RunFilter(state="queued", lane="slow"),
                RunFilter(state="running"),
                RunFilter(state="paused", tenant="t2"),
                RunFilter(state="cancelled"),
                RunFilter(state="succeeded"),
                RunFilter(id_prefix="r00"),
                RunFilter(id_prefix="r0042"),
            ):
                expected = [run for run in everything if matches(run, where)]
                assert await pages(store, where, 37) == [run.id for run in expected], where
                assert sum((await store.count(where)).values()) == len(expected), where

    def matches(run: object, where: RunFilter) -> bool:
        criteria = {name: getattr(where, name) for name in ("tenant", "pipeline", "state", "lane")}
        return run.id.startswith(where.id_prefix or "") and all(  # type: ignore[attr-defined]
            value in (None, getattr(run, name)) for name, value in criteria.items()
        )

    asyncio.run(story())


def test_a_page_of_queued_runs_loads_no_more_of_those_that_are_delayed() -> None:
    async def story() -> None:
        async with a_store() as store:
            await store.apply([a_submit(f"r{n:04}", delay=60.0 + MANY - n) for n in range(MANY)])
            wire = await store._link().read_wire()
            await ask(wire, "CONFIG", "RESETSTAT")
            page = await store.runs(RunFilter(state="queued"), limit=50)
            assert [run.id for run in page] == [f"r{MANY - n:04}" for n in range(1, 51)]
            stats = (await ask(wire, "INFO", "commandstats")).decode()
            [loads] = re.findall(r"^cmdstat_hmget:calls=(\d+)", stats, re.MULTILINE)
            assert int(loads) <= 50 + PAGE

    asyncio.run(story())


@pytest.mark.parametrize(
    "where",
    [
        RunFilter(id_prefix="s"),
        RunFilter("t1", id_prefix="r9"),
        RunFilter(pipeline="none"),
        RunFilter("t1", lane="none"),
        RunFilter(state="succeeded", lane="slow"),
        RunFilter(pipeline="rare", lane="fast"),
    ],
    ids=str,
)
def test_what_is_not_there_is_not_looked_for_among_all_runs(where: RunFilter) -> None:
    async def play() -> None:
        async with a_store() as store:
            await fill(store)
            [claimed] = await store.apply([Claim("w", "fast", ["p"], 1, 30.0)])
            await store.apply([Settle(run.run, run.epoch, "succeeded") for run in claimed])
            wire = await store._link().read_wire()
            await ask(wire, "CONFIG", "RESETSTAT")
            assert await store.runs(where) == []
            stats = (await ask(wire, "INFO", "commandstats")).decode()
            assert "cmdstat_hmget" not in stats

    asyncio.run(play())


def test_nothing_is_left_of_runs_that_were_pruned() -> None:
    async def story() -> None:
        async with a_store() as store:
            runs = [a_submit(f"r{number}", labels={"n": str(number)}) for number in range(10)]
            await store.apply(runs)
            [claimed] = await store.apply([Claim("w", "default", ["p"], 10, 30.0)])
            await store.apply([Settle(run.run, run.epoch, "succeeded") for run in claimed[:9]])
            pruned = []
            while some := (await store.apply([Prune(0.0, 0.0, limit=4)]))[0]:
                pruned += some
            assert len(pruned) == 9
            assert [run.id for run in await store.runs(RunFilter())] == ["r9"]
            assert [event.id for event in await store.outbox(0)] == ["r9:1", "r9:2"]
            await store.apply([Settle("r9", 1, "succeeded"), Prune(0.0, 0.0)])
            await store.apply([Claim("w", "default", ["p"], 1, 30.0)])  # which finds an empty queue
            assert await keys(store) == ["meta", "tenants"]

    asyncio.run(story())


async def keys(store: RedisStore) -> list[str]:
    """All keys of a store, without its prefix."""
    wire = await store._link().read_wire()
    keys = await ask(wire, "KEYS", store._key("*"))
    return sorted(key.decode().removeprefix(store._key("")) for key in keys)


def test_dead_letters_are_listed_by_tenant_without_looking_at_the_others() -> None:
    async def story() -> None:
        async with a_store() as store:
            await store.apply(
                [
                    Bury(f"m{number:03}", "bus", "bad", b"x", {}, f"t{number % 2}")
                    for number in range(300)
                ]
            )
            letters = await store.dead_letters(tenant="t1", limit=5)
            assert [letter.id for letter in letters] == ["m299", "m297", "m295", "m293", "m291"]
            assert len(await store.dead_letters(limit=1000)) == 300

    asyncio.run(story())
