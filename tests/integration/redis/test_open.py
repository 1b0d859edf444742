"""What `open` refuses, what it warns of, and that it never tells a password."""

from __future__ import annotations

import asyncio
import logging

import pytest
from tests.integration.redis.helpers import a_checkpoint, a_claim, a_server, a_submit, opened
from tests.redis_server import free_port, fresh_prefix, shared_server

from holdfast.adapters.redis import server
from holdfast.adapters.redis.address import Address, parse
from holdfast.adapters.redis.store import RedisStore
from holdfast.errors import ConfigurationError, HoldfastError, StoreUnavailable
from holdfast.model.commands import Prune, Settle, Sweep
from holdfast.ports.store import RunFilter

SOMEWHERE = Address((("localhost", 6379),))


def open_and_close(url: str) -> None:
    async def story() -> None:
        async with opened(RedisStore(url)):
            pass

    asyncio.run(story())


# --- refusals ---


def test_a_server_that_evicts_is_refused_with_reason_and_remedy() -> None:
    with a_server("--maxmemory-policy", "allkeys-lru") as redis:
        with pytest.raises(ConfigurationError, match=r"maxmemory-policy allkeys-lru.*noeviction"):
            open_and_close(redis.url())
        redis.call("CONFIG", "SET", "maxmemory-policy", "noeviction")
        open_and_close(redis.url())


def test_an_old_server_is_refused() -> None:
    for version in ("6.0.16", "5.0", "2.8.24"):
        with pytest.raises(ConfigurationError, match=r"6\.2 or newer"):
            server.refuse_old_version({"redis_version": version}, SOMEWHERE)
    for version in ("6.2.0", "7.0.15", "8.0.1"):
        server.refuse_old_version({"redis_version": version}, SOMEWHERE)


def test_a_server_that_still_reads_its_data_is_not_judged_yet() -> None:
    with pytest.raises(StoreUnavailable, match="still reading its data"):
        server.refuse_loading({"loading": "1", "aof_enabled": "0"}, SOMEWHERE)
    server.refuse_loading({"loading": "0"}, SOMEWHERE)


def test_a_cluster_needs_a_hash_tag_in_the_prefix() -> None:
    for prefix in ("", "shop:", "{}shop:", "{shop"):
        with pytest.raises(ConfigurationError, match=r"prefix=\{holdfast\}:"):
            server.refuse_scattered_keys(
                {"cluster_enabled": "1"}, parse(f"redis://h/?prefix={prefix}")
            )
    server.refuse_scattered_keys({"cluster_enabled": "1"}, parse("redis://h/?prefix={shop}:"))
    server.refuse_scattered_keys({"cluster_enabled": "0"}, SOMEWHERE)


def test_data_of_a_newer_program_are_refused() -> None:
    prefix = fresh_prefix()
    meta = f"{prefix}holdfast:meta"
    open_and_close(shared_server().url(prefix))
    shared_server().call("HSET", meta, "schema", "99", "oldest_usable_schema", "99")
    with pytest.raises(ConfigurationError, match="newer holdfast"):
        open_and_close(shared_server().url(prefix))
    shared_server().call("HSET", meta, "oldest_usable_schema", "1")
    open_and_close(shared_server().url(prefix))


def test_an_older_schema_is_brought_up_to_date() -> None:
    """The scripts come with the program; what is stored says which programs may use it."""
    prefix = fresh_prefix()
    open_and_close(shared_server().url(prefix))
    shared_server().call("HSET", f"{prefix}holdfast:meta", "schema", "0")
    open_and_close(shared_server().url(prefix))
    stored = shared_server().call("HGET", f"{prefix}holdfast:meta", "schema")
    assert int(stored) == server.SCHEMA


def test_data_of_a_pre_release_are_refused_and_left_as_they_are() -> None:
    prefix = fresh_prefix()
    meta = f"{prefix}holdfast:meta"
    shared_server().call("HSET", meta, "schema", "1", "oldest_usable_schema", "1", "replid", "x")
    with pytest.raises(ConfigurationError, match="was written by a pre-release of holdfast"):
        open_and_close(shared_server().url(prefix))
    remaining = shared_server().call("HGETALL", meta)
    assert remaining.split() == ["schema", "1", "oldest_usable_schema", "1", "replid", "x"]


def test_a_server_that_is_not_there_is_no_mistake_of_the_user() -> None:
    with pytest.raises(StoreUnavailable, match="can't be reached"):
        open_and_close(f"redis://127.0.0.1:{free_port()}/0")


def test_a_replica_is_no_place_to_write() -> None:
    with (
        a_server() as redis,
        a_server("--replicaof", "127.0.0.1", str(redis.port)) as replica,
        pytest.raises(StoreUnavailable, match="is a replica"),
    ):
        open_and_close(replica.url())


# --- passwords ---


def test_a_password_is_used_and_never_told(caplog: pytest.LogCaptureFixture) -> None:
    secret = "s3cret%21"
    with a_server("--requirepass", "s3cret!") as redis:
        address = f"127.0.0.1:{redis.port}/0"
        with caplog.at_level(logging.DEBUG):
            open_and_close(f"redis://:{secret}@{address}")
            open_and_close(f"redis://default:{secret}@{address}")
            for who in ("", ":wrong-s3cret@", "nobody:wrong-s3cret@"):
                with pytest.raises(ConfigurationError, match="check user, password") as refused:
                    open_and_close(f"redis://{who}{address}")
                assert "s3cret" not in str(refused.value)
                assert "s3cret" not in repr(RedisStore(f"redis://{who}{address}").address)
        assert "s3cret" not in caplog.text


def test_a_user_needs_few_rights() -> None:
    """Those that the how-to names: its own keys and channels, and nothing dangerous but INFO."""

    async def story(url: str) -> None:
        async with opened(RedisStore(url)) as store:
            await store.apply([a_submit("r1"), a_claim(), a_checkpoint("r1", 1)])
            await store.apply(
                [Settle("r1", 1, "failed", error='{"name":"N","message":""}'), Sweep()]
            )
            assert len(await store.runs(RunFilter())) == 1
            [pruned] = await store.apply([Prune(keep=0.0, keep_failed=0.0)])
            assert pruned == [("r1", "acme")]

    with a_server() as redis:
        rights = ("~shop:*", "resetchannels", "&shop:*", "+@all", "-@dangerous", "+info")
        redis.call("ACL", "SETUSER", "holdfast", "on", ">s3cret", *rights)
        address = f"holdfast:s3cret@127.0.0.1:{redis.port}/0"
        asyncio.run(story(f"redis://{address}?prefix=shop:"))
        with pytest.raises(ConfigurationError, match="rights"):
            open_and_close(f"redis://{address}?prefix=other:")


# --- warnings ---


@pytest.fixture(autouse=True)
def _say_it_again() -> None:
    server._say.cache_clear()


def test_a_server_without_a_log_of_changes_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    async def durable() -> bool:
        async with opened(RedisStore(shared_server().url(fresh_prefix()))) as store:
            return store.features.durable

    assert asyncio.run(durable()) is False
    assert "appendonly yes" in caplog.text


def test_what_the_fsync_policy_means_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with a_server("--appendonly", "yes", "--appendfsync", "everysec") as redis:
        with caplog.at_level(logging.INFO):
            open_and_close(redis.url())
        assert "about a second" in caplog.text
        caplog.clear()
        redis.call("CONFIG", "SET", "appendfsync", "always")
        open_and_close(redis.url())
        assert caplog.text == ""


# --- addresses ---


def test_every_part_of_an_address_is_understood() -> None:
    address = parse("rediss://u:p%40@one:1,two/3?prefix=x:&pool=4&timeout=1.5&ca=/ca.pem")
    assert address.hosts == (("one", 1), ("two", 6379))
    assert (address.user, address.password, address.database, address.tls) == ("u", "p@", 3, True)
    assert (address.prefix, address.pool, address.timeout, address.ca) == ("x:", 4, 1.5, "/ca.pem")
    assert str(address) == "rediss://one:1,two:6379/3"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis://h/x", "'x' is not a number"),
        ("redis://h:port/0", "'h:port' is not host:port"),
        ("redis://:6379/0", "names no host"),
        ("redis://h/0?pools=3", "'pools' is not known; there are prefix, pool"),
        ("redis://h/0?pool=0", "from 1 to 1000"),
        ("redis://h/0?timeout=soon", "timeout='soon'"),
        ("redis://h/0?connect=0", "from 100ms to 1h"),
        ("rediss://h/0?ca=/nowhere.pem", "/nowhere.pem can't be read"),
    ],
)
def test_what_is_wrong_with_an_address_is_named(url: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        parse(url).tls_context()


def test_connecting_may_take_another_time() -> None:
    assert parse("redis://h/0?timeout=3s").connect_timeout == 3.0
    address = parse("redis://h/0?timeout=3s&connect=500ms")
    assert (address.timeout, address.connect_timeout) == (3.0, 0.5)


@pytest.mark.parametrize(
    "url",
    [
        "redis://ann:s3c/ret@h/0",
        "redis://ann:s3c?ret@h/0",
        "redis://ann:s3c#ret@h/0",
        "redis://ann:s3c#ret",
    ],
)
def test_a_password_that_should_have_been_encoded_is_not_shown_either(url: str) -> None:
    with pytest.raises(ConfigurationError, match="percent-encoded") as refused:
        parse(url)
    assert "s3c" not in str(refused.value)


def test_prefixes_keep_stores_apart() -> None:
    async def story() -> None:
        first, second = (RedisStore(shared_server().url(fresh_prefix())) for _ in range(2))
        async with opened(first), opened(second):
            await first.apply([a_submit("r1")])
            assert await second.run("r1") is None

    asyncio.run(story())


def test_a_closed_store_says_so() -> None:
    async def story() -> None:
        async with opened(RedisStore(shared_server().url(fresh_prefix()))) as store:
            pass
        with pytest.raises(StoreUnavailable, match="is closed"):
            await store.apply([a_submit("r1")])
        with pytest.raises(HoldfastError, match="is closed"):
            await store.run("r1")

    asyncio.run(story())
