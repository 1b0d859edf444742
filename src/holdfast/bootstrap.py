"""Settings in, wired objects out: the only place that knows which adapter a URL means."""

from __future__ import annotations

import os
from collections.abc import Callable
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from holdfast.errors import ConfigurationError
from holdfast.model.clock import Clock, SystemClock
from holdfast.ports.analyst import Analyst
from holdfast.ports.blobs import BlobStore
from holdfast.ports.bus import Bus
from holdfast.ports.health import Findings, found
from holdfast.ports.mover import Mover
from holdfast.ports.store import Store
from holdfast.settings.secrecy import redacted
from holdfast.settings.values import Settings

T = TypeVar("T")

SERVERS = ("postgresql://", "postgres://", "redis://", "rediss://")
"""Adapters that are reached over the network, and take parameters after `?`."""


def with_options(url: str, settings: Settings) -> str:
    """The URL of a server with the settings for servers in it; what the URL says itself wins."""
    if not url.startswith(SERVERS):
        return url
    said = {part.partition("=")[0] for part in url.partition("?")[2].split("&")}
    wanted = {"pool": settings.pool.size, "connect": settings.timeout.connect, "timeout": settings.timeout.command}
    more = [f"{name}={value:g}" for name, value in wanted.items() if value is not None and name not in said]
    return url + ("&" if "?" in url else "?") + "&".join(more) if more else url


def make_store(url: str, clock: Clock) -> Store:
    """`memory:`, `sqlite:///file`, `postgresql://host/database`, `redis://host` or `rediss://host`."""
    known: dict[str, Callable[[], Store]] = {
        "memory": lambda: _memory_store(clock),
        "sqlite": lambda: _sqlite(url, clock),
        "postgresql": lambda: _postgres_store(url, clock),
        "postgres": lambda: _postgres_store(url, clock),
        "redis": lambda: _redis_store(url),
        "rediss": lambda: _redis_store(url),
    }
    return _choose(url, "store", known)


def make_mover(url: str, clock: Clock) -> Mover:
    """What reads and fills the store of a URL, past everybody else."""
    if url.startswith("memory:"):
        raise ConfigurationError("memory: lives in one process and ends with it: there is nothing to move")
    known: dict[str, Callable[[], Mover]] = {
        "sqlite": lambda: _sqlite_mover(url, clock),
        "postgresql": lambda: _postgres_mover(url, clock),
        "postgres": lambda: _postgres_mover(url, clock),
        "redis": lambda: _redis_mover(url),
        "rediss": lambda: _redis_mover(url),
    }
    return _choose(url, "store", known)


def make_blobs(url: str) -> BlobStore:
    """`memory:` or `file:./folder`."""
    return _choose(url, "blobs", {"memory": _memory_blobs, "file": lambda: _files(url)})


def make_bus(url: str) -> Bus | None:
    """`none`, `memory:`, `redis://host` or `rediss://host`."""
    if url in ("none", ""):
        return None
    known: dict[str, Callable[[], Bus]] = {
        "memory": _in_process,
        "redis": lambda: _redis_bus(url),
        "rediss": lambda: _redis_bus(url),
    }
    return _choose(url, "bus", known)


class ShippedAnalysts:
    """The analysts that come with holdfast, each made when it is first asked for."""

    def __init__(self, blobs: BlobStore | None) -> None:
        self._blobs = blobs
        self._made: dict[str, Analyst] = {}

    def named(self, name: str) -> Analyst:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Analyst:
        if name in LOCAL:
            return _local_analyst()
        return _llm_analyst(name, self._blobs)

    async def aclose(self) -> None:
        for analyst in self._made.values():
            if (close := getattr(analyst, "aclose", None)) is not None:
                await close()
        self._made.clear()


def check_analyst(name: str) -> None:
    """Raise what is wrong with the name of an analyst, or with its key, before any work is accepted."""
    if name not in LOCAL:
        from holdfast.adapters.llm.address import parse
        from holdfast.adapters.llm.secret import read_key

        read_key(parse(name), os.environ)


LOCAL = ("", "local", "local:")


def default_blobs(store_url: str) -> str | None:
    """Blobs live beside the store unless somebody says otherwise; a server has no place beside it that all its users
    share, so there it has to be said."""
    if store_url.startswith("memory:"):
        return "memory:"
    if store_url.startswith(SERVERS):
        return None
    path = Path(_sqlite_path(store_url))
    return f"file:{path.with_name(path.stem + '-files')}"


# --- health -----------------------------------------------------------------------------------------------------------


def store_health(url: str) -> Findings:
    """What a store's adapter can say about it before it is opened."""
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        from holdfast.adapters.sqlite import health as sqlite

        return sqlite.findings(_sqlite_path(url))
    if scheme in ("postgresql", "postgres"):
        _postgres_store(url, SystemClock())  # says which package is missing
        from holdfast.adapters.postgres import health as postgres

        return postgres.findings(url)
    if scheme in ("redis", "rediss"):
        _redis_store(url)
        from holdfast.adapters.redis import health as redis

        return redis.findings(url)
    make_store(url, SystemClock())
    return _fleeting("sqlite:///holdfast.db")


async def _fleeting(instead: str) -> Findings:
    yield found(
        "permanence",
        "in the memory of one process",
        warn=True,
        why="nothing survives that process, and no other process sees it",
        fix=f"use {instead} for anything but tests",
    )


def blobs_health(url: str | None, store_url: str) -> Findings:
    if url is None:
        return _no_blobs()
    blobs = make_blobs(url)
    if not url.startswith("file:"):
        return _fleeting("file:./folder")
    from holdfast.adapters.files import health as files
    from holdfast.adapters.files.blobs import FileBlobs

    assert isinstance(blobs, FileBlobs)
    return files.findings(blobs.root, many_hosts=store_url.startswith(SERVERS))


async def _no_blobs() -> Findings:
    yield found(
        "place",
        "none: the store is a server, and blobs is not set",
        warn=True,
        why="values above 32 KiB and artifacts have nowhere to go: their runs fail",
        fix="set HOLDFAST_BLOBS=file:/a/folder/that/all/workers/mount",
    )


def bus_health(url: str, store_url: str | None) -> Findings:
    bus = make_bus(url)
    if bus is None or url.startswith("memory:"):
        return _said("bus", "none: events stay in the store" if bus is None else "in this process only")
    from holdfast.adapters.redis import health as redis

    return redis.bus_findings(url, store_url)


def analyst_health(name: str) -> Findings:
    if name in LOCAL:
        return _local_health()
    try:
        from holdfast.adapters.llm import health as llm
    except ModuleNotFoundError as error:
        raise _missing_extra(error, "llm", f"llm = {redacted(name)!r}") from error
    return llm.findings(name)


async def _local_health() -> Findings:
    missing = [name for name in LOCAL_NEEDS if find_spec(name) is None]
    yield found(
        "analyst",
        f"local:, which lacks {', '.join(missing)}" if missing else "local: works offline, without a key",
        warn=bool(missing),
        why="reports can't be made; other pipelines do not need it",
        fix="pip install 'holdfast[report]'",
    )


LOCAL_NEEDS = ("numpy", "scipy", "safetensors", "tokenizers", "wordllama")


async def _said(check: str, seen: str) -> Findings:
    yield found(check, seen)


async def repair_store(url: str) -> list[str]:
    """Set what a server can be told while it runs, then create or migrate the store. What was done."""
    done: list[str] = []
    if url.startswith(("redis://", "rediss://")):
        _redis_store(url)
        from holdfast.adapters.redis import health as redis

        done += await redis.repair(url)
    store = make_store(url, SystemClock())
    await store.open()
    await store.close()
    return done


# --- the choice -------------------------------------------------------------------------------------------------------


def _choose(url: str, setting: str, known: dict[str, Callable[[], T]]) -> T:
    scheme = url.split(":", 1)[0]
    if ":" not in url or scheme not in known:
        close = get_close_matches(scheme, known, n=1)
        hint = f"; did you mean {close[0]}:?" if close else ""
        raise ConfigurationError(
            f"{setting} = {redacted(url)!r} is not understood: known are {', '.join(f'{k}:' for k in known)}{hint}"
        )
    if "?" in url and not url.startswith(SERVERS):
        raise ConfigurationError(f"{setting} = {redacted(url)!r}: this adapter takes no parameters after '?'")
    return known[scheme]()


def missing_file(store_url: str) -> Path | None:
    """The file of a store that nobody has created yet: for those who only want to look."""
    if not store_url.startswith("sqlite:"):
        return None
    path = Path(_sqlite_path(store_url))
    return None if path.exists() else path


def _sqlite_path(url: str) -> str:
    if not url.startswith("sqlite:///") or len(url) == len("sqlite:///"):
        raise ConfigurationError(
            f"store = {redacted(url)!r}: write sqlite:///file.db, or sqlite:////absolute/path/file.db"
        )
    if url == "sqlite:///:memory:":
        raise ConfigurationError(f"store = {url!r}: use memory: for a store that is not kept")
    return unquote(url[len("sqlite:///") :])


def _sqlite(url: str, clock: Clock) -> Store:
    from holdfast.adapters.sqlite.store import SqliteStore

    return SqliteStore(_sqlite_path(url), clock)


def _postgres_store(url: str, clock: Clock) -> Store:
    try:
        from holdfast.adapters.postgres.store import PostgresStore
    except ImportError as error:
        raise _not_installed(url, "postgres") from error
    return PostgresStore(url, clock)


def _redis_store(url: str) -> Store:
    """Its time is the server's."""
    try:
        from holdfast.adapters.redis.store import RedisStore
    except ImportError as error:
        raise _not_installed(url, "redis") from error
    return RedisStore(url)


def _sqlite_mover(url: str, clock: Clock) -> Mover:
    from holdfast.adapters.sqlite.mover import SqliteMover

    return SqliteMover(_sqlite_path(url), clock)


def _postgres_mover(url: str, clock: Clock) -> Mover:
    try:
        from holdfast.adapters.postgres.mover import PostgresMover
    except ImportError as error:
        raise _not_installed(url, "postgres") from error
    return PostgresMover(url, clock)


def _redis_mover(url: str) -> Mover:
    try:
        from holdfast.adapters.redis.mover import RedisMover
    except ImportError as error:
        raise _not_installed(url, "redis") from error
    return RedisMover(url)


def _redis_bus(url: str) -> Bus:
    try:
        from holdfast.adapters.redis.bus import RedisBus
    except ImportError as error:
        raise _not_installed(url, "redis") from error
    return RedisBus(url)


def _not_installed(url: str, extra: str) -> ConfigurationError:
    return ConfigurationError(f"{redacted(url)!r} needs the package that comes with `pip install holdfast[{extra}]`")


def _memory_store(clock: Clock) -> Store:
    from holdfast.adapters.memory.store import MemoryStore

    return MemoryStore(clock)


def _memory_blobs() -> BlobStore:
    from holdfast.adapters.memory.blobs import MemoryBlobs

    return MemoryBlobs()


def _files(url: str) -> BlobStore:
    from holdfast.adapters.files.blobs import FileBlobs

    path = url[len("file:") :]
    if path.startswith("//"):
        path = path[2:]
    if not path:
        raise ConfigurationError(f"blobs = {url!r}: write file:./folder")
    return FileBlobs(Path(unquote(path)))


def _local_analyst() -> Analyst:
    try:
        from holdfast.adapters.local.analyst import LocalAnalyst
    except ModuleNotFoundError as error:
        raise _missing_extra(error, "report", "llm = 'local:'") from error
    return LocalAnalyst()


def _llm_analyst(name: str, blobs: BlobStore | None) -> Analyst:
    if blobs is None:
        raise ConfigurationError("asking a model needs a blob store for its answers: set HOLDFAST_BLOBS=file:./folder")
    try:
        from holdfast.adapters.llm.address import parse
        from holdfast.adapters.llm.analysis.analyst import LLMAnalyst
        from holdfast.adapters.llm.answers import Answers
        from holdfast.adapters.llm.model import Model
    except ModuleNotFoundError as error:
        raise _missing_extra(error, "llm", f"llm = {redacted(name)!r}") from error
    return LLMAnalyst(Model(parse(name)), Answers(blobs))


def _missing_extra(error: ModuleNotFoundError, extra: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"{what} needs {error.name}, which is not installed: pip install 'holdfast[{extra}]'")


def _in_process() -> Bus:
    from holdfast.adapters.inprocess.bus import InProcessBus

    return InProcessBus()
