"""A server killed and started again, and a replica promoted: what survived is consistent, and no
epoch comes twice."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable

import pytest
from tests.integration.redis.helpers import a_checkpoint, a_claim, a_server, a_submit, opened
from tests.redis_server import RedisServer

from holdfast.adapters.redis.store import RedisStore
from holdfast.errors import StoreUnavailable
from holdfast.model.commands import (
    STALE,
    Acquire,
    Acquired,
    Claim,
    Renew,
    SaveProgress,
    Settle,
    Submitted,
)
from holdfast.testing.invariants import check_store

TIMEOUT = 10.0
A_LOT = 1_000_000_000
SUBMITTED = Submitted("r2", True, "queued")


async def when_it_is_back(store: RedisStore, *commands: object) -> list:
    """Repeat until the store answers."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            return await store.apply(commands)  # type: ignore[arg-type]
        except StoreUnavailable:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_everything_acknowledged_survives_a_killed_server_with_a_log() -> None:
    async def story(redis: RedisServer) -> None:
        async with opened(RedisStore(redis.url())) as store:
            await store.apply([a_submit(f"r{number}", key=f"k{number}") for number in range(20)])
            [claimed] = await store.apply([a_claim(10)])
            await store.apply([a_checkpoint(run.run, run.epoch) for run in claimed])
            await store.apply(
                [Settle(run.run, run.epoch, "succeeded", result="1") for run in claimed[:5]]
            )
            redis.kill()
            redis.start()
            leases = [(run.run, run.epoch) for run in claimed[5:]]
            assert await when_it_is_back(store, Renew(leases, 30.0)) == [[]]
            again = await store.apply([a_submit("new", key="k1")])
            assert again == [Submitted("r1", False, "succeeded")]
            assert len(await store.checkpoints("r9")) == 1
            assert await store.apply([Settle(*leases[0], "succeeded", result="1")]) == [None]
            assert await check_store(store) == []

    with a_server("--appendonly", "yes", "--appendfsync", "always") as redis:
        asyncio.run(story(redis))


def test_what_lies_in_the_inbox_survives_a_killed_server_with_a_log() -> None:
    async def story(redis: RedisServer) -> None:
        async with opened(RedisStore(redis.url())) as store:
            for number in range(20):
                await store.apply([a_submit(f"r{number}")])
            redis.kill()
            redis.start()
            [claimed] = await when_it_is_back(store, a_claim(30))
            assert [run.run for run in claimed] == [f"r{number}" for number in range(20)]
            assert await check_store(store) == []

    with a_server("--appendonly", "yes", "--appendfsync", "always") as redis:
        asyncio.run(story(redis))


def test_epochs_after_a_restart_are_above_all_that_came_before() -> None:
    """The server may have lost claims: what it gives out next must not be what they were given."""

    async def story(redis: RedisServer) -> None:
        async with opened(RedisStore(redis.url())) as store:
            await store.apply([a_submit("r1"), a_claim(), Acquire("lock", "a", "me", 30.0)])
            redis.kill()
            redis.start()
            [empty, lock] = await when_it_is_back(
                store, a_claim(), Acquire("lock", "a", "me", 30.0)
            )
            assert (empty, lock) == ([], Acquired(1))  # what survived is as it was
            assert await store.apply([Settle("r1", 1, "handover"), a_submit("r2")]) == [
                None,
                SUBMITTED,
            ]
            _, [claimed] = await store.apply([Acquire("other", "a", "me", 30.0), a_claim()])
            assert claimed.epoch > A_LOT

    with a_server("--appendonly", "yes", "--appendfsync", "always") as redis:
        asyncio.run(story(redis))


def test_a_claim_under_one_epoch_tells_new_runs_from_those_that_others_have_begun() -> None:
    """After a restart both have the same epoch and attempt; taken for new, a run would do its steps
    again."""

    async def story(redis: RedisServer) -> None:
        async with opened(RedisStore(redis.url())) as store:
            await store.apply([a_submit("new"), a_submit("begun", pipeline="q")])
            [[begun]] = await store.apply([Claim("w1", "default", ["q"], 1, 30.0)])
            await store.apply(
                [a_checkpoint("begun", begun.epoch), Settle("begun", begun.epoch, "handover")]
            )
            redis.kill()
            redis.start()
            [claimed] = await when_it_is_back(store, Claim("w2", "default", ["p", "q"], 2, 30.0))
            assert [(run.run, run.resumed) for run in claimed] == [
                ("new", False),
                ("begun", True),
            ]
            assert len({(run.epoch, run.attempt) for run in claimed}) == 1

    with a_server("--appendonly", "yes", "--appendfsync", "always") as redis:
        asyncio.run(story(redis))


def test_epochs_are_above_all_that_came_before_even_if_the_server_has_lost_everything() -> None:
    """Whoever held a lock under it has told others its epoch: a new holder's must be above it."""

    async def story(redis: RedisServer) -> None:
        async with opened(RedisStore(redis.url())) as store:
            assert await store.apply([Acquire("lock", "a", "me", 30.0)]) == [Acquired(1)]
            redis.kill()
            redis.start()
            async with opened(
                RedisStore(redis.url())
            ) as other:  # it has never met the one that was killed
                assert await other.apply([Acquire("new", "a", "me", 30.0)]) == [Acquired(1)]
                [lock] = await when_it_is_back(store, Acquire("lock", "b", "you", 30.0))
                assert lock.epoch > A_LOT
                [lock] = await other.apply([Acquire("newer", "a", "me", 30.0)])
                assert lock.epoch > A_LOT

    with a_server("--appendonly", "no") as redis:
        asyncio.run(story(redis))


def test_epochs_of_a_life_of_the_server_that_left_no_trace_do_not_come_again() -> None:
    """Two restarts, and the disk has nothing of what was between them: neither the claims nor that
    there was a life."""

    async def claim_in_a_new_life(redis: RedisServer) -> int:
        redis.start()
        async with opened(RedisStore(redis.url())) as store:
            [[claimed]] = await store.apply([a_claim()])
        redis.kill()
        return claimed.epoch

    async def story(redis: RedisServer) -> None:
        async with opened(RedisStore(redis.url())) as store:
            await store.apply([a_submit("r1")])
        redis.kill()
        copy = redis.folder.with_name(f"{redis.folder.name}-kept")
        shutil.copytree(redis.folder, copy)
        try:
            lost = await claim_in_a_new_life(redis)
            shutil.rmtree(redis.folder)
            shutil.copytree(copy, redis.folder)
            assert await claim_in_a_new_life(redis) > lost > A_LOT
        finally:
            shutil.rmtree(copy)

    with a_server("--appendonly", "yes", "--appendfsync", "always") as redis:
        asyncio.run(story(redis))


def test_a_claim_lost_in_a_failover_can_write_nothing() -> None:
    """The master gives a run to a worker; the replica that is promoted has never heard of that."""

    async def story(master: RedisServer, replica: RedisServer) -> None:
        hosts = f"127.0.0.1:{master.port},127.0.0.1:{replica.port}"
        async with opened(RedisStore(f"redis://{hosts}/0?timeout=1")) as store:
            await store.apply([a_submit("r1"), a_submit("r2")])
            [[survives]] = await store.apply([a_claim()])
            until(lambda: offset_of(replica) == offset_of(master))
            replica.call("REPLICAOF", "NO", "ONE")  # from here on nothing reaches it
            [[lost]] = await store.apply([a_claim()])
            assert await store.apply([a_checkpoint("r2", lost.epoch)]) == [None]
            master.kill()
            assert await when_it_is_back(store, a_checkpoint("r2", lost.epoch)) == [STALE]
            [[again]] = await store.apply([a_claim()])
            assert (again.run, again.epoch > lost.epoch) == ("r2", True)
            assert await store.apply([a_checkpoint("r2", lost.epoch)]) == [STALE]
            assert await store.apply([a_checkpoint("r2", again.epoch)]) == [None]
            assert await store.apply([a_checkpoint("r1", survives.epoch)]) == [None]
            assert await check_store(store) == []

    with a_server() as master, a_server("--replicaof", "127.0.0.1", str(master.port)) as replica:
        until(lambda: "master_link_status:up" in replica.call("INFO", "replication"))
        asyncio.run(story(master, replica))


def offset_of(server: RedisServer) -> str:
    """How much of the master's history a server has."""
    lines = server.call("INFO", "replication").splitlines()
    info = dict(line.strip().split(":", 1) for line in lines if ":" in line)
    return info.get("slave_repl_offset") or info["master_repl_offset"]


NOBODY = "1"
"""A port that nobody listens at: a replica of it never learns anything new."""


def test_a_master_that_becomes_a_replica_is_left() -> None:
    """Also by those who read: it goes on answering them, with what it knows."""

    async def story(redis_server: RedisServer, second: RedisServer) -> None:
        hosts = f"127.0.0.1:{redis_server.port},127.0.0.1:{second.port}"
        async with opened(RedisStore(f"redis://{hosts}/0?timeout=1")) as store:
            await store.apply([a_submit("r1")])
            everywhere = range(store.address.pool)
            assert all([await store.run("r1") is not None for _ in everywhere])
            until(lambda: offset_of(second) == offset_of(redis_server))
            second.call("REPLICAOF", "NO", "ONE")
            redis_server.call("REPLICAOF", "127.0.0.1", NOBODY)
            replies = await when_it_is_back(store, a_submit("r2"))
            assert replies == [Submitted("r2", True, "queued")]
            assert all([await store.run("r2") is not None for _ in everywhere])
            assert await store.run("r1") is not None
            assert second.call("EXISTS", "holdfast:run:r2") == "1"

    with a_server() as first, a_server("--replicaof", "127.0.0.1", str(first.port)) as second:
        until(lambda: "master_link_status:up" in second.call("INFO", "replication"))
        asyncio.run(story(first, second))


def test_a_replica_is_left_as_soon_as_it_refuses_a_command() -> None:
    """The script goes on when one command of it fails: it is seen all the same why it did."""

    async def story(first: RedisServer, second: RedisServer) -> None:
        hosts = f"127.0.0.1:{first.port},127.0.0.1:{second.port}"
        progress = SaveProgress("r1", 1, '{"done":1}')
        async with opened(RedisStore(f"redis://{hosts}/0?timeout=1")) as store:
            await store.apply([a_submit("r1"), a_claim()])
            until(lambda: offset_of(second) == offset_of(first))
            second.call("REPLICAOF", "NO", "ONE")
            first.call("REPLICAOF", "127.0.0.1", NOBODY)
            with pytest.raises(StoreUnavailable, match="is a replica now"):
                await store.apply([progress])
            assert await store.apply([progress]) == [None]
            assert second.call("HGET", "holdfast:run:r1", "p") == '{"done":1}'

    with a_server() as first, a_server("--replicaof", "127.0.0.1", str(first.port)) as second:
        until(lambda: "master_link_status:up" in second.call("INFO", "replication"))
        asyncio.run(story(first, second))
