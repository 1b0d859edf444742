"""What the adapters can say about themselves, and what can be repaired while they run."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.bootstrap.adapters import adapter_for, is_server
from holdfast.bootstrap.analysts import LOCAL
from holdfast.bootstrap.factories import make_bus, make_store
from holdfast.bootstrap.urls import missing_extra
from holdfast.model.clock import SystemClock
from holdfast.ports.health import Findings, found
from holdfast.settings.secrecy import redacted

LOCAL_NEEDS = ("numpy", "scipy", "safetensors", "tokenizers", "wordllama")


def store_health(url: str) -> Findings:
    """What a store's adapter can say about it before it is opened."""
    make_store(url, SystemClock())  # says what is wrong with the URL, or which package is missing
    adapter = adapter_for(url, "store", "store")
    if adapter.health is None:
        return _fleeting("sqlite:///holdfast.db")
    return adapter.make(adapter.health, url)


def blobs_health(url: str | None, store_url: str) -> Findings:
    if url is None:
        return _no_blobs()
    adapter = adapter_for(url, "blobs", "blobs")
    if adapter.health is None:
        return _fleeting("file:./folder")
    return adapter.make(adapter.health, url, many_hosts=is_server(store_url))


def bus_health(url: str, store_url: str | None) -> Findings:
    if make_bus(url) is None:
        return _single("bus", "none: events stay in the store")
    adapter = adapter_for(url, "bus", "bus")
    if adapter.bus_health is None:
        return _single("bus", "in this process only")
    return adapter.make(adapter.bus_health, url, store_url=store_url)


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
    store, adapter = make_store(url, SystemClock()), adapter_for(url, "store", "store")
    done = await adapter.make(adapter.repair, url) if adapter.repair is not None else []
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


async def _single(check: str, seen: str) -> Findings:
    yield found(check, seen)
