"""What the adapters can say about themselves, and what can be repaired while they run."""

from __future__ import annotations

from holdfast.bootstrap.adapters import adapter_for, has_port, is_server
from holdfast.bootstrap.factories import make_bus, make_store
from holdfast.bootstrap.language_models import NONE, check_extra
from holdfast.model.clock import SystemClock
from holdfast.model.topology import Topology
from holdfast.ports.health import Findings, make_finding
from holdfast.settings.secrecy import redacted

NOTHING = Topology((), ())


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


def bus_health(url: str, store_url: str | None, topology: Topology = NOTHING) -> Findings:
    if make_bus(url) is None:
        return _single("bus", "none: events stay in the store")
    adapter = adapter_for(url, "bus", "bus")
    if adapter.bus_health is None:
        return _single("bus", "in this process only")
    return adapter.make(adapter.bus_health, url, store_url=store_url, topology=topology)


def documents_health(url: str) -> Findings:
    """Of documents, and of records that are on their own."""
    if url in ("none", ""):
        return _single("documents", "none")
    port = "documents" if has_port(url, "documents") else "records"
    adapter = adapter_for(url, port, "documents")
    if adapter.documents_health is None:
        return _single("address", redacted(url))
    return adapter.make(adapter.documents_health, url)


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
    store, adapter = make_store(url, SystemClock()), adapter_for(url, "store", "store")
    done = await adapter.make(adapter.repair, url) if adapter.repair is not None else []
    await store.open()
    await store.close()
    return done


async def _fleeting(instead: str) -> Findings:
    yield make_finding(
        "permanence",
        "in the memory of one process",
        warn=True,
        why="nothing survives that process, and no other process sees it",
        fix=f"use {instead} for anything but tests",
    )


async def _no_blobs() -> Findings:
    yield make_finding(
        "place",
        "none: the store is a server, and blobs is not set",
        warn=True,
        why="values above 32 KiB and artifacts have nowhere to go: their runs fail",
        fix="set HOLDFAST_BLOBS=file:/a/folder/that/all/workers/mount",
    )


async def _single(check: str, finding: str) -> Findings:
    yield make_finding(check, finding)
