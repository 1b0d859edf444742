"""How a Redis or Valkey server is, as a store and as a bus: what breaks them in practice."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, closing

from holdfast.adapters.compatibility import FORMAT_NAME, OLDEST_NAME
from holdfast.adapters.redis import codec, server
from holdfast.adapters.redis.address import Address, parse
from holdfast.adapters.redis.bus import RedisBus
from holdfast.adapters.redis.link import find_master, meta_key
from holdfast.adapters.redis.wire import ReplyError, Wire, ask
from holdfast.errors import ConfigurationError
from holdfast.model.ids import new_token
from holdfast.ports.bus import Message
from holdfast.ports.health import (
    SCHEMA,
    Finding,
    Findings,
    abandoned,
    bytes_of,
    clock_difference,
    is_remote,
    make_finding,
    milliseconds,
    open_air,
    round_trip,
)

FULL, ALMOST_FULL = 0.95, 0.75
MESSAGE_TIMEOUT = 5.0
"""How long to wait for our own message, in seconds."""
RECOMMENDED = {"maxmemory-policy": "noeviction", "appendonly": "yes"}
"""What `repair` sets."""

Info = dict[str, str]


async def findings(url: str) -> Findings:
    """Of a store."""
    address = parse(url)
    async with aclosing(_server(address, is_store=True)) as looking:
        async for finding in looking:
            yield finding


async def bus_findings(url: str, store_url: str | None) -> Findings:
    """Of a bus; what was said about the same server as a store is not said again."""
    address = parse(url)
    if (
        store_url is None
        or not store_url.startswith("redis")
        or parse(store_url).hosts != address.hosts
    ):
        async with aclosing(_server(address, is_store=False)) as looking:
            async for finding in looking:
                yield finding
    yield await _message(url, address)


async def repair(url: str) -> list[str]:
    """Set what can be set while the server runs, and keep it in its configuration. What was
    done."""
    address = parse(url)
    with server.explained(address, opening=True), closing(await find_master(address)) as wire:
        done = [await _set(wire, name, value) for name, value in RECOMMENDED.items()]
    return [text for text in done if text]


async def _set(wire: Wire, name: str, value: str) -> str:
    if await server.setting(wire, name) in (value, "unknown"):
        return ""
    await ask(wire, "CONFIG", "SET", name, value)
    is_saved = not isinstance(await wire.send("CONFIG", "REWRITE"), ReplyError)
    return f"set {name} {value}" + (
        "" if is_saved else ", until it is started again: it can't write its configuration"
    )


# --- the server -----------------------------------------------------------------------------------


async def _server(address: Address, *, is_store: bool) -> Findings:
    began = time.perf_counter()
    try:
        wire = await find_master(address)
    except (OSError, ReplyError) as error:
        if "is a replica" not in str(error):
            raise server.explain(error, address, opening=True) from error
        yield _replica(error)
        return
    took = time.perf_counter() - began
    usable = True
    with closing(wire), server.explained(address):
        async with aclosing(_looked_at(wire, address, took)) as looking:
            async for finding in looking:
                usable &= finding.status != "fail"
                yield finding
        if is_store and usable:
            yield await _schema(wire, address)
            yield await _leases(wire, address)


async def _looked_at(wire: Wire, address: Address, connected: float) -> Findings:
    yield await _reachable(wire, connected)
    info = server.parse_info(await ask(wire, "INFO"))
    server.refuse_loading(info, address)
    yield _version(info, address)
    yield make_finding("role", f"master with {info.get('connected_slaves', '0')} replicas")
    yield open_air(any(is_remote(host) for host, _ in address.hosts), address.tls)
    yield clock_difference(await _ahead(wire))
    yield _eviction(info)
    yield _persistence(info, await server.setting(wire, "appendfsync"))
    yield _disk(info)
    yield _memory(info)
    yield _cluster(info, address)


def _replica(error: Exception) -> Finding:
    return make_finding(
        "role",
        str(error),
        fail=True,
        why="a replica takes no writes, and what it has may be old",
        fix="name the master; with several hosts in the URL (redis://one,two) holdfast finds it",
    )


async def _reachable(wire: Wire, connected: float) -> Finding:
    times: list[float] = []
    for _ in range(5):
        began = time.perf_counter()
        await ask(wire, "PING")
        times.append(time.perf_counter() - began)
    return round_trip(times, connected)


def _version(info: Info, address: Address) -> Finding:
    """Raises what `open` would."""
    server.refuse_old_version(info, address)
    name = "Valkey" if "valkey_version" in info else "Redis"
    return make_finding("server", f"{name} {info.get('valkey_version', info['redis_version'])}")


async def _ahead(wire: Wire) -> float:
    before = time.time()
    seconds, micros = await ask(wire, "TIME")
    return int(seconds) + int(micros) / 1e6 - (before + time.time()) / 2


def _eviction(info: Info) -> Finding:
    policy = info.get("maxmemory_policy", "noeviction")
    return make_finding(
        "eviction",
        f"maxmemory-policy {policy}",
        fail=policy != "noeviction",
        why="when memory is full the server would throw away leases, checkpoints and runs without "
        "a word, so holdfast refuses to start",
        fix="CONFIG SET maxmemory-policy noeviction (`holdfast doctor --fix` does it), and in its "
        "configuration; or a server of its own beside the cache",
    )


MEANING = {
    "always": "not even a power cut loses what was answered",
    "everysec": "a crash of the server loses nothing while its disk keeps up, a power cut up to "
    "about a second",
    "no": "a crash of the server loses nothing, a power cut up to about 30 seconds",
    "unknown": "the server does not tell how often it is written to disk",
}


def _persistence(info: Info, policy: str) -> Finding:
    if info.get("aof_enabled") != "1":
        return make_finding(
            "persistence",
            "appendonly no: only snapshots, if at all",
            warn=True,
            why="whatever was accepted since the last snapshot is gone when the server stops, and "
            "is not done",
            fix="CONFIG SET appendonly yes (`holdfast doctor --fix` does it), and in its "
            "configuration; appendfsync always where not even a power cut may lose anything",
        )
    return make_finding(
        "persistence",
        f"appendonly yes, appendfsync {policy}: {MEANING.get(policy, '')}",
        warn=policy == "no",
        why="a power cut takes back what was accepted and finished",
        fix="CONFIG SET appendfsync always, or everysec, and in its configuration",
    )


def _disk(info: Info) -> Finding:
    names = ("aof_last_write_status", "rdb_last_bgsave_status", "aof_last_bgrewrite_status")
    broken = [name for name in names if info.get(name, "ok") != "ok"]
    return make_finding(
        "disk",
        ", ".join(f"{name} {info[name]}" for name in broken) or "its last writes succeeded",
        fail=bool(broken),
        why="a server that can't write to its disk soon refuses all changes (MISCONF)",
        fix="look at its log: the disk is full, or the folder is not writable",
    )


def _memory(info: Info) -> Finding:
    used, limit = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    most = limit or int(info.get("total_system_memory", 0))
    share = used / most if most else 0.0
    of = (
        f"maxmemory {bytes_of(limit)}"
        if limit
        else f"the host's {bytes_of(most)}; no maxmemory is set"
    )
    return make_finding(
        "memory",
        f"{bytes_of(used)} used, {share:.0%} of {of}",
        fail=share > FULL,
        warn=share > ALMOST_FULL,
        why="when memory is full nothing is accepted; without maxmemory the kernel may kill the "
        "server first",
        fix="give it more memory, or shorten retention.finished and retention.failed",
    )


def _cluster(info: Info, address: Address) -> Finding:
    try:
        server.refuse_scattered_keys(info, address)
    except ConfigurationError as error:
        return make_finding(
            "cluster",
            str(error),
            fail=True,
            why="a claim touches a lane, a run and a key together; a cluster allows that within "
            "one slot only",
            fix="add ?prefix={holdfast}: to the URL",
        )
    return make_finding(
        "cluster", "yes, all keys in one slot" if info.get("cluster_enabled") == "1" else "no"
    )


# --- the store ------------------------------------------------------------------------------------


async def _schema(wire: Wire, address: Address) -> Finding:
    stored = await ask(wire, "HMGET", meta_key(address), "schema", OLDEST_NAME, FORMAT_NAME)
    if stored[0] is None:
        return make_finding(
            SCHEMA,
            f"nothing is there yet{f' below {address.prefix}' if address.prefix else ''}",
            warn=True,
            why="a mistyped database or prefix looks just like this",
            fix="`holdfast run`, `holdfast worker` or `holdfast doctor --fix` makes it; --store "
            "if it is elsewhere",
        )
    server.refuse_other_schema(stored, address)
    return make_finding(SCHEMA, f"version {int(stored[0])}")


async def _leases(wire: Wire, address: Address) -> Finding:
    """Time has stood still for leases since the last command, if nobody sends any: see
    clock.lua."""
    wall, mono = [
        float(value or 0) for value in await ask(wire, "HMGET", meta_key(address), "wall", "mono")
    ]
    seconds, microseconds = await ask(wire, "TIME")
    long_ago = mono + int(seconds) + int(microseconds) / 1e6 - wall - 60
    leases = f"{address.prefix}holdfast:leases"
    ended = await ask(wire, "ZCOUNT", leases, "-inf", f"({codec.score(long_ago)}")
    return abandoned(ended)


# --- the bus --------------------------------------------------------------------------------------


async def _message(url: str, address: Address) -> Finding:
    """Send a message to ourselves on a topic of its own, and remove every trace of it."""
    topic = f"doctor-{new_token()[:12]}"
    bus = RedisBus(url)
    await bus.open()
    try:
        began = time.perf_counter()
        arrived = await _arrives(bus, topic)
        took = time.perf_counter() - began
    finally:
        await bus.close()
        await _delete_topic(address, topic)
    return make_finding(
        "message",
        f"published, received and acknowledged in {milliseconds(took)}"
        if arrived
        else f"none within {MESSAGE_TIMEOUT:g} s",
        fail=not arrived,
        why="messages from and to other systems travel this way",
        fix="look at the server's log and the rights of the user: it needs streams, scripts and "
        "pub/sub",
    )


async def _arrives(bus: RedisBus, topic: str) -> bool:
    subscription = bus.subscribe(topic, "doctor")
    try:
        async with asyncio.timeout(MESSAGE_TIMEOUT):
            await subscription.begun()
            await bus.publish(topic, Message(topic, b"are you there?"))
            delivery = await anext(subscription)
            await delivery.ack()
            return delivery.message.id == topic
    except TimeoutError:
        return False
    finally:
        await subscription.aclose()


async def _delete_topic(address: Address, topic: str) -> None:
    stream = f"{address.prefix}holdfast:topic:{topic}"
    with closing(await find_master(address)) as wire:
        tails = ("", ":filters", ":later:doctor", ":dropped:doctor", ":dead")
        await ask(wire, "DEL", *[stream + tail for tail in tails])
