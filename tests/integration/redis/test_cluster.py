"""A store in a cluster: all of it in one slot, found on whichever node has that slot."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.integration.redis.helpers import a_checkpoint, a_claim, a_server, a_submit, opened
from tests.redis_server import RedisServer

from holdfast.adapters.redis.bus import RedisBus
from holdfast.adapters.redis.store import RedisStore
from holdfast.errors import ConfigurationError
from holdfast.model.commands import Settle
from holdfast.testing.contracts.bus import a_message, received
from holdfast.testing.invariants import check_store

CLUSTER = ("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no")
SLOTS = 16_384


def until_both_agree(*nodes: RedisServer) -> None:
    deadline = time.monotonic() + 15.0
    expected = {"cluster_state:ok", "cluster_slots_assigned:16384"}
    while not all(expected <= set(node.call("CLUSTER", "INFO").split()) for node in nodes):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def form(empty: RedisServer, full: RedisServer) -> None:
    """Give all slots to one of two nodes."""
    for start in range(0, SLOTS, 4096):
        full.call("CLUSTER", "ADDSLOTS", *map(str, range(start, start + 4096)))
    empty.call("CLUSTER", "MEET", "127.0.0.1", str(full.port))
    until_both_agree(empty, full)


def test_a_store_lives_on_the_node_that_has_its_slot() -> None:
    async def story(empty: RedisServer) -> None:
        with pytest.raises(ConfigurationError, match="hash tag"):
            await RedisStore(empty.url("shop:")).open()
        async with opened(RedisStore(empty.url("{shop}:"))) as store:
            version = await store.wait(0, 5.0)
            await store.apply([a_submit("r1", key="k1"), a_claim(), a_checkpoint("r1", 1)])
            await store.apply([Settle("r1", 1, "failed", error='{"name":"E","message":""}')])
            assert await store.wait(version, 5.0) > version
            assert await check_store(store) == []
            assert len(await store.dead_letters()) == 1

    async def carry(empty: RedisServer) -> None:
        bus = RedisBus(empty.url("{shop}:"))
        await bus.open()
        deliveries = bus.subscribe("orders", "g1")
        await deliveries.begun()
        await bus.publish("orders", a_message("m1"))
        assert await received(deliveries, 1) == ["m1"]
        await bus.close()

    with a_server(*CLUSTER) as empty, a_server(*CLUSTER) as full:
        form(empty, full)
        asyncio.run(story(empty))
        asyncio.run(carry(empty))
        slots = {
            full.call("CLUSTER", "KEYSLOT", key) for key in full.call("KEYS", "*").splitlines()
        }
        assert len(slots) == 1
