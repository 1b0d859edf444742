"""What the adapters can say about themselves, and what can be repaired while they run."""

from __future__ import annotations

from holdfast.bootstrap.blobs import make_blobs
from holdfast.bootstrap.buses import make_bus
from holdfast.bootstrap.language_models import NONE, check_extra
from holdfast.bootstrap.stores import make_store
from holdfast.bootstrap.urls import SERVERS, sqlite_path
from holdfast.model.clock import SystemClock
from holdfast.ports.health import Findings, found


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


async def language_model_health(address: str) -> Findings:
    """Nothing, where no language model is configured."""
    if address not in NONE:
        check_extra(address)
        from holdfast.adapters.llm import health as llm

        async for finding in llm.findings(address):
            yield finding


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


async def _said(check: str, seen: str) -> Findings:
    yield found(check, seen)
