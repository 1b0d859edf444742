"""What the adapters can say about themselves, and what can be repaired while they run."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.bootstrap.analysts import LOCAL
from holdfast.bootstrap.blobs import make_blobs
from holdfast.bootstrap.buses import make_bus
from holdfast.bootstrap.stores import make_store
from holdfast.bootstrap.urls import SERVERS, missing_extra, sqlite_path
from holdfast.model.clock import SystemClock
from holdfast.ports.health import Findings, found
from holdfast.settings.secrecy import redacted

LOCAL_NEEDS = ("numpy", "scipy", "safetensors", "tokenizers", "wordllama")


def store_health(url: str) -> Findings:
    """What a store's adapter can say about it before it is opened."""
    make_store(url, SystemClock())  # says what is wrong with the URL, or which package is missing
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        from holdfast.adapters.sqlite import health as sqlite

        return sqlite.findings(sqlite_path(url))
    if scheme in ("postgresql", "postgres"):
        from holdfast.adapters.postgres import health as postgres

        return postgres.findings(url)
    if scheme in ("redis", "rediss"):
        from holdfast.adapters.redis import health as redis

        return redis.findings(url)
    return _fleeting("sqlite:///holdfast.db")


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


def bus_health(url: str, store_url: str | None) -> Findings:
    bus = make_bus(url)
    if bus is None or url.startswith("memory:"):
        return _said(
            "bus", "none: events stay in the store" if bus is None else "in this process only"
        )
    from holdfast.adapters.redis import health as redis

    return redis.bus_findings(url, store_url)


def analyst_health(name: str) -> Findings:
    if name in LOCAL:
        return _local_health()
    try:
        from holdfast.adapters.llm import health as llm
    except ModuleNotFoundError as error:
        raise missing_extra(error, "llm", f"llm = {redacted(name)!r}") from error
    return llm.findings(name)


async def repair_store(url: str) -> list[str]:
    """Set what a server can be told while it runs, then create or migrate the store. What was
    done."""
    store, done = make_store(url, SystemClock()), []
    if url.startswith(("redis://", "rediss://")):
        from holdfast.adapters.redis import health as redis

        done += await redis.repair(url)
    await store.open()
    await store.close()
    return done


async def _fleeting(instead: str) -> Findings:
    yield found(
        "permanence",
        "in the memory of one process",
        warn=True,
        why="nothing survives that process, and no other process sees it",
        fix=f"use {instead} for anything but tests",
    )


async def _no_blobs() -> Findings:
    yield found(
        "place",
        "none: the store is a server, and blobs is not set",
        warn=True,
        why="values above 32 KiB and artifacts have nowhere to go: their runs fail",
        fix="set HOLDFAST_BLOBS=file:/a/folder/that/all/workers/mount",
    )


async def _local_health() -> Findings:
    missing = [name for name in LOCAL_NEEDS if find_spec(name) is None]
    yield found(
        "analyst",
        f"local:, which lacks {', '.join(missing)}"
        if missing
        else "local: works offline, without a key",
        warn=bool(missing),
        why="reports can't be made; other pipelines do not need it",
        fix="pip install 'holdfast[report]'",
    )


async def _said(check: str, seen: str) -> Findings:
    yield found(check, seen)
