"""The server: what it must be, what its settings mean, and its errors in words that say what to
do."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from holdfast.adapters.compatibility import refuse_newer_schema, refuse_other_format
from holdfast.adapters.redis.address import Address
from holdfast.adapters.redis.wire import ReplyError, Wire, ask
from holdfast.errors import ConfigurationError, HoldfastError, StoreUnavailable

log = logging.getLogger("holdfast.redis")

OLDEST = (6, 2)
SCHEMA = 1
OLDEST_USABLE_SCHEMA = 1
"""Programs from this schema on can use what this one writes."""


def parse_info(text: bytes) -> dict[str, str]:
    """The answer of INFO as names and values."""
    lines = (
        line.partition(":")
        for line in text.decode().splitlines()
        if line and not line.startswith("#")
    )
    return {name: value for name, _, value in lines}


async def examine(wire: Wire, address: Address) -> bool:
    """Refuse a server that would lose or forget what it is given. Whether what it answers survives
    a crash of it."""
    info = parse_info(await ask(wire, "INFO"))
    refuse_loading(info, address)
    refuse_old_version(info, address)
    refuse_eviction(info, address)
    refuse_scattered_keys(info, address)
    return await _persistence(wire, info, address)


def refuse_loading(info: dict[str, str], address: Address) -> None:
    """Until it has read its data it takes no commands, and does not even say how it keeps them."""
    if info.get("loading") == "1":
        raise StoreUnavailable(f"{address} {MEANINGS['LOADING']}")


def refuse_old_version(info: dict[str, str], address: Address) -> None:
    version = info.get("redis_version", "0")
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise ConfigurationError(
            f"{address} is Redis {version}: holdfast needs 6.2 or newer, or any Valkey"
        )


def refuse_eviction(info: dict[str, str], address: Address) -> None:
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise ConfigurationError(
            f"{address} has maxmemory-policy {policy}: when its memory is full it would throw away "
            "runs, leases and "
            "checkpoints without a word. Set it to noeviction (CONFIG SET maxmemory-policy "
            "noeviction, and in its "
            "configuration), or use a server of its own"
        )


_HASH_TAG = re.compile(r"[^{]*\{[^}]+\}")


def refuse_scattered_keys(info: dict[str, str], address: Address) -> None:
    if info.get("cluster_enabled") == "1" and not _HASH_TAG.match(address.prefix):
        raise ConfigurationError(
            f"{address} is a cluster: all keys of a store have to be in one slot, so its prefix "
            "needs a hash tag. "
            "Add for example ?prefix={holdfast}: to the URL"
        )


async def _persistence(wire: Wire, info: dict[str, str], address: Address) -> bool:
    if info.get("aof_enabled") != "1":
        _say(
            logging.WARNING,
            f"{address} keeps no append-only file: whatever was accepted since its last snapshot "
            "is lost when it "
            "stops. Set appendonly yes; appendfsync always if not even a power cut may lose "
            "anything",
        )
        return False
    policy = await setting(wire, "appendfsync")
    if policy != "always":
        lost = "a second" if policy == "everysec" else "30 seconds"
        _say(
            logging.INFO,
            f"{address} has appendfsync {policy}: a crash of the server process loses nothing "
            "while its disk keeps up "
            f"with it, a power cut up to about {lost} of what was accepted. Set appendfsync always "
            "where that matters",
        )
    return True


@cache
def _say(level: int, text: str) -> None:
    """Once per process is enough."""
    log.log(level, text)


async def setting(wire: Wire, name: str) -> str:
    try:
        pair = await ask(wire, "CONFIG", "GET", name)
    except ReplyError:  # hosted servers do not always tell
        return "unknown"
    return pair[1].decode() if pair else "unknown"


def refuse_other_schema(stored: list[Any], address: Address) -> None:
    """`stored` are schema, oldest usable schema and format."""
    schema, oldest, its_format = stored
    refuse_other_format(its_format, str(address))
    refuse_newer_schema(int(schema), oldest, SCHEMA, str(address))


# --- errors ---

UNUSABLE = ("NOAUTH", "WRONGPASS", "NOPERM", "ERR AUTH", "ERR invalid password", "ERR DB index")

_MOVED_ON = re.compile(r"\b(READONLY|MOVED|ASK|LOADING|MASTERDOWN|CLUSTERDOWN)\b")


def has_moved(error: ReplyError) -> bool:
    """Whether the connection is to be given up: the store has to be looked for again."""
    return _MOVED_ON.search(str(error)) is not None


def explain(error: Exception, address: Address, *, opening: bool = False) -> HoldfastError:
    """Our error for one of the server's, of the network's, or of the connection's."""
    if isinstance(error, HoldfastError):
        return error
    text = str(error) or type(error).__name__
    if not isinstance(error, ReplyError):
        return StoreUnavailable(
            f"{address} can't be reached: {text}. Nothing is accepted or executed until it answers "
            "again"
        )
    if text.startswith(UNUSABLE):
        kind = ConfigurationError if opening else StoreUnavailable
        return kind(
            f"{address} refused us ({text.split(' ')[0]}): check user, password, rights and "
            "database in the URL"
        )
    if text.startswith(HELD):
        return StoreUnavailable(f"{address} {text.removeprefix(HELD)}; nothing was accepted")
    for word, meaning in MEANINGS.items():
        if word in text:
            return StoreUnavailable(f"{address} {meaning}")
    return StoreUnavailable(f"{address} failed: {text}")


@contextmanager
def explained(address: Address, *, opening: bool = False) -> Iterator[None]:
    """Raise what goes wrong meanwhile as our errors."""
    try:
        yield
    except (OSError, ReplyError) as error:
        raise explain(error, address, opening=opening) from error


def is_of_server(text: str) -> bool:
    """Whether an error is about the server, not about what it was given."""
    return any(word in text for word in MEANINGS)


HELD = "HELD "
"""How the answer of a store begins that takes part in a move."""

MEANINGS = {
    "OOM ": "has no memory left (maxmemory); nothing was accepted. Give it more, or shorten "
    "retention",
    "MISCONF": "can't write to its disk and refuses changes; nothing was accepted. Look at its "
    "log and its disk",
    "READONLY": "is a replica now; nothing was accepted. holdfast looks for the master again",
    "LOADING": "is still reading its data; nothing was accepted. It will answer soon",
    "NOREPLICAS": "has fewer replicas than min-replicas-to-write asks for; nothing was accepted",
    "CLUSTERDOWN": "is a cluster that is down; nothing was accepted",
    "BUSY ": "is busy with somebody's script; nothing was accepted",
}
