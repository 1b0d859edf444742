"""That a lock was given back is the one write that Redis' log does not get: what that saves, and
what it costs."""

from __future__ import annotations

import asyncio

from tests.integration.redis.scene import a_server, opened
from tests.integration.redis.test_failover import offset_of, until, when_it_is_back
from tests.redis_server import RedisServer

from holdfast.adapters.redis.store import RedisStore
from holdfast.model.commands import Acquire, Acquired, ForceRelease, Held, ReleaseLock, Sweep
from holdfast.testing.clock import ManualClock

TTL = 30.0
LOGGED = ("--appendonly", "yes", "--appendfsync", "always")


def take(token: str, name: str = "lock") -> Acquire:
    return Acquire(name, token, f"owner of {token}", TTL)


def logged(redis: RedisServer) -> int:
    lines = redis.call("INFO", "persistence").splitlines()
    return next(
        int(line.partition(":")[2]) for line in lines if line.startswith("aof_current_size")
    )


def test_nobody_waits_for_the_disk_to_give_a_lock_back() -> None:
    async def play(redis: RedisServer) -> None:
        async with opened(RedisStore(redis.url(), test_clock=ManualClock())) as store:
            await store.apply([take("a", "one"), take("a", "two")])
            before = logged(redis)
            assert await store.apply([ReleaseLock("one", "a")]) == [True]
            assert logged(redis) == before
            assert await store.apply([take("b", "one")]) == [Acquired(2)]
            assert await store.apply([ForceRelease("two", "ann", "stuck")]) == [True]
            assert logged(redis) > before

    with a_server(*LOGGED) as redis:
        asyncio.run(play(redis))


def test_a_restarted_server_takes_it_for_held_until_its_lease_ends() -> None:
    async def play(redis: RedisServer) -> None:
        clock = ManualClock()
        async with opened(RedisStore(redis.url(), test_clock=clock)) as store:
            await store.apply([take("a")])
            assert await store.apply([ReleaseLock("lock", "a")]) == [True]
            clock.advance(10.0)
            assert await store.apply([Sweep(10)]) == [[]]
            redis.kill()
            redis.start()
            assert await when_it_is_back(store, take("b")) == [Held("owner of a", TTL - 10.0, 1)]
            assert [lock.name for lock in await store.locks()] == ["lock"]
            clock.advance(TTL - 10.0)
            [taken] = await store.apply([take("b")])
            assert taken.epoch > 1

    with a_server(*LOGGED) as redis:
        asyncio.run(play(redis))


def test_one_that_was_taken_in_the_same_batch_leaves_its_epoch_in_the_log() -> None:
    async def play(redis: RedisServer) -> None:
        async with opened(RedisStore(redis.url(), test_clock=ManualClock())) as store:
            assert await store.apply([take("a"), ReleaseLock("lock", "a")]) == [Acquired(1), True]
            again = [take("b"), ReleaseLock("lock", "b"), take("c")]
            assert await store.apply(again) == [Acquired(2), True, Acquired(3)]
            redis.kill()
            redis.start()
            assert await when_it_is_back(store, take("d")) == [Held("owner of c", TTL, 3)]

    with a_server(*LOGGED) as redis:
        asyncio.run(play(redis))


def test_a_promoted_replica_takes_it_for_held_until_its_lease_ends() -> None:
    async def play(master: RedisServer, replica: RedisServer) -> None:
        clock = ManualClock()
        url = f"redis://127.0.0.1:{master.port},127.0.0.1:{replica.port}/0?timeout=1"
        async with opened(RedisStore(url, test_clock=clock)) as store:
            await store.apply([take("a", "free"), take("a", "held")])
            await store.apply([ReleaseLock("free", "a")])
            until(lambda: offset_of(replica) == offset_of(master))
            replica.call("REPLICAOF", "NO", "ONE")
            master.kill()
            replies = await when_it_is_back(store, take("b", "free"), take("a", "held"))
            assert replies == [Held("owner of a", TTL, 1), Acquired(1)]
            clock.advance(TTL)
            [taken] = await store.apply([take("b", "free")])
            assert taken.epoch > 1

    with a_server() as master, a_server("--replicaof", "127.0.0.1", str(master.port)) as replica:
        until(lambda: "master_link_status:up" in replica.call("INFO", "replication"))
        asyncio.run(play(master, replica))
