"""Real servers with real troubles give the right finding, with why and fix."""

from __future__ import annotations

import asyncio

import pytest
from tests.findings import gathered, look, troubles
from tests.integration.redis.helpers import a_claim, a_server, a_submit, opened
from tests.redis_server import free_port, fresh_prefix, shared_server

from holdfast import bootstrap
from holdfast.adapters.compatibility import FORMAT
from holdfast.adapters.redis import health
from holdfast.adapters.redis.store import RedisStore
from holdfast.services import doctor

DURABLE = ("--appendonly", "yes", "--appendfsync", "always")
SHARED = {"persistence": "warn"}
"""What is wrong with the tests' own server: it keeps nothing."""


def use(url: str, *commands: object) -> None:
    async def story() -> None:
        async with opened(RedisStore(url)) as store:
            await store.apply(commands)  # type: ignore[arg-type]

    asyncio.run(story())


# --- the server -----------------------------------------------------------------------------------


def test_a_healthy_server_has_no_troubles() -> None:
    with a_server(*DURABLE) as redis:
        use(redis.url())
        findings = look(health.findings(redis.url()))
    assert troubles(findings) == {}
    assert "not even a power cut" in findings["persistence"].seen


def test_an_empty_server_is_a_warning_and_stays_empty() -> None:
    with a_server(*DURABLE) as redis:
        assert troubles(look(health.findings(redis.url()))) == {"schema": "warn"}
        assert redis.call("DBSIZE") == "0"


def test_a_server_that_evicts_is_a_failure_until_it_is_repaired() -> None:
    with a_server("--maxmemory-policy", "allkeys-lru") as redis:
        findings = look(health.findings(redis.url()))
        assert troubles(findings) == {"eviction": "fail", "persistence": "warn"}
        repaired = asyncio.run(bootstrap.repair_store(redis.url()))
        assert [line.partition(",")[0] for line in repaired] == [
            "set maxmemory-policy noeviction",
            "set appendonly yes",
        ]
        assert "until it is started again" in repaired[0]
        assert troubles(look(health.findings(redis.url()))) == {}


@pytest.mark.parametrize(("policy", "status"), [("everysec", "ok"), ("no", "warn")])
def test_what_the_fsync_policy_means_is_said(policy: str, status: str) -> None:
    with a_server("--appendonly", "yes", "--appendfsync", policy) as redis:
        findings = look(health.findings(redis.url()))["persistence"]
    assert findings.status == status
    assert "a power cut up to about" in findings.seen


def test_a_replica_is_a_failure() -> None:
    with a_server() as redis, a_server("--replicaof", "127.0.0.1", str(redis.port)) as replica:
        findings = look(health.findings(replica.url()))
    assert troubles(findings) == {"role": "fail"}
    assert "is a replica" in findings["role"].seen


def test_a_server_that_is_down_is_a_failure() -> None:
    assert troubles(look(health.findings(f"redis://127.0.0.1:{free_port()}/0"))) == {
        "reachable": "fail"
    }


def test_a_wrong_password_is_a_failure_and_no_password_is_shown() -> None:
    with a_server("--requirepass", "s3cret") as redis:
        for who in ("", ":wrong-s3cret@"):
            findings = look(health.findings(redis.url().replace("//", f"//{who}")))
            assert troubles(findings) == {"usable": "fail"}
            assert "s3cret" not in str(findings)


def test_a_database_that_does_not_exist_is_a_failure() -> None:
    with a_server() as redis:
        assert troubles(look(health.findings(redis.url().replace("/0", "/99")))) == {
            "usable": "fail"
        }


def test_memory_that_is_almost_used_up_is_noticed() -> None:
    with a_server(*DURABLE, "--maxmemory", "100mb") as redis:
        use(redis.url())
        assert "of maxmemory 100.0 MiB" in look(health.findings(redis.url()))["memory"].seen
        bytes_used = int(redis.call("INFO", "memory").partition("used_memory:")[2].split()[0])
        redis.call("CONFIG", "SET", "maxmemory", str(int(bytes_used / 0.85)))
        assert troubles(look(health.findings(redis.url()))) == {"memory": "warn"}
        redis.call("CONFIG", "SET", "maxmemory", str(bytes_used))
        assert look(health.findings(redis.url()))["memory"].status == "fail"


def test_a_cluster_needs_a_hash_tag() -> None:
    with a_server(*DURABLE, "--cluster-enabled", "yes") as redis:
        assert troubles(look(health.findings(redis.url()))) == {"cluster": "fail"}


def test_a_disk_that_refuses_writes_is_a_failure() -> None:
    assert health._disk({"aof_last_write_status": "ok"}).status == "ok"
    broken = health._disk({"aof_last_write_status": "err", "rdb_last_bgsave_status": "ok"})
    assert (broken.status, broken.seen) == ("fail", "aof_last_write_status err")


# --- the store ------------------------------------------------------------------------------------


def test_data_of_a_newer_program_are_a_failure() -> None:
    prefix = fresh_prefix()
    meta = {"schema": 99, "oldest_usable_schema": 99, "format": FORMAT}
    for name, value in meta.items():
        shared_server().call("HSET", f"{prefix}holdfast:meta", name, str(value))
    findings = look(health.findings(shared_server().url(prefix)))
    assert troubles(findings) == SHARED | {"usable": "fail"}
    assert "upgrade holdfast" in findings["usable"].seen


def test_a_run_that_was_left_behind_is_a_warning() -> None:
    prefix = fresh_prefix()
    url = shared_server().url(prefix)
    use(url, a_submit("r1"), a_claim(ttl=30.0))
    for silence, troubled in ((80, {}), (20, {"leases": "warn"})):
        shared_server().call("HINCRBYFLOAT", f"{prefix}holdfast:meta", "wall", str(-silence))
        assert troubles(look(health.findings(url))) == SHARED | troubled


def test_a_user_who_may_not_hear_or_notify_is_noticed_by_the_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "LATE", 0.2)
    with a_server(*DURABLE) as redis:
        url = redis.url().replace("//", "//ann:s3cret@")
        redis.call("ACL", "SETUSER", "ann", "on", ">s3cret", "~*", "&*", "+@all", "-subscribe")
        assert troubles(look(doctor.trial(lambda: RedisStore(url)))) == {"wake-up": "warn"}
        redis.call("ACL", "SETUSER", "ann", "+subscribe", "resetchannels")
        assert troubles(look(doctor.trial(lambda: RedisStore(url)))) == {"wake-up": "warn"}


# --- the bus --------------------------------------------------------------------------------------


def test_a_message_is_sent_and_every_trace_of_it_removed() -> None:
    with a_server(*DURABLE) as redis:
        findings = look(bootstrap.bus_health(redis.url(), None))
        assert troubles(findings) == {}
        assert "published, received and acknowledged" in findings["message"].seen
        assert redis.call("DBSIZE") == "0"


def test_the_same_server_is_not_described_twice() -> None:
    url = shared_server().url(fresh_prefix())
    assert set(look(bootstrap.bus_health(url, url))) == {"message"}
    assert "eviction" in look(bootstrap.bus_health(url, "sqlite:///x.db"))


def test_a_bus_on_a_server_that_evicts_is_a_failure() -> None:
    with a_server("--maxmemory-policy", "allkeys-lru") as redis:
        findings = look(bootstrap.bus_health(redis.url(), None))
    assert findings["eviction"].status == findings["usable"].status == "fail"


def test_no_bus_is_no_trouble() -> None:
    async def story() -> None:
        assert "none" in (await gathered(bootstrap.bus_health("none", None)))["bus"].seen
        assert "this process" in (await gathered(bootstrap.bus_health("memory:", None)))["bus"].seen

    asyncio.run(story())
