"""What an app is made of, as one value.

Three layers, the later ones over the earlier: what the code gives, what the settings say, what the
command line says. Settings and command line arrive together, as `Loaded`, which knows what somebody
has set; whatever nobody has set stays as the code gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from holdfast.bootstrap.factories import (
    default_blobs,
    make_blobs,
    make_bus,
    make_store,
    with_server_settings,
)
from holdfast.model.clock import Clock, SystemClock
from holdfast.model.lease import LeaseTimes
from holdfast.model.options import Retention, WorkerOptions
from holdfast.ports.blobs import BlobStore
from holdfast.ports.bus import Bus
from holdfast.ports.store import Store
from holdfast.settings import DEFAULT_STORE, Loaded, Settings

ADAPTERS = ("store", "blobs", "bus", "llm")
WORKER = ("concurrency", "max_bytes", "grace")


@dataclass(frozen=True)
class Options:
    """Everything that `Holdfast` can be told but its pipelines."""

    store: str | Store = DEFAULT_STORE
    blobs: str | BlobStore | None = None
    """None: beside the store, if that is a file or memory."""
    bus: str | Bus | None = None
    worker: WorkerOptions = field(default_factory=WorkerOptions)
    works: bool = True
    """Whether opening the app starts a worker."""
    define_lanes: bool = True
    """Whether opening the app makes the lanes of its pipelines known to the store."""
    lease: LeaseTimes = field(default_factory=LeaseTimes)
    retention: Retention = field(default_factory=Retention)
    clock: Clock = field(default_factory=SystemClock)
    threads: bool = True
    """Whether leases are renewed from a thread of their own; simulations own time and have none."""
    llm: str | None = None
    """The address of the language model that steps get without naming one; None: as the settings
    say."""
    provide: Mapping[type[Any], Any] = field(default_factory=dict)
    """What steps get by `ctx.use`."""
    on_execute: Callable[[str, str, str], None] | None = None
    """Called with (run, step, key) whenever a step or item is really executed: for tests that
    count."""

    def with_settings(self, loaded: Loaded) -> Options:
        """These options, with what somebody has set laid over them."""
        given = loaded.given()
        options = replace(
            self,
            worker=structs.replace(self.worker, **_only(given, WORKER)),
            lease=structs.replace(self.lease, **loaded.given("lease")),
            retention=structs.replace(self.retention, **loaded.given("retention")),
            **_only(given, ADAPTERS),
        )
        return replace(
            options,
            store=_for_server(options.store, loaded.settings),
            bus=_for_server(options.bus, loaded.settings),
        )

    @property
    def store_url(self) -> str | None:
        """None when code has made the store itself."""
        return self.store if isinstance(self.store, str) else None

    @property
    def blobs_url(self) -> str | None:
        """None when there is no blob store, or code has made it itself."""
        if self.blobs is None and self.store_url is not None:
            return default_blobs(self.store_url)
        return self.blobs if isinstance(self.blobs, str) else None

    @property
    def bus_url(self) -> str | None:
        """None when there is no bus, or code has made it itself."""
        return self.bus if isinstance(self.bus, str) else None

    def make_store(self) -> Store:
        return make_store(self.store, self.clock) if isinstance(self.store, str) else self.store

    def make_blobs(self) -> BlobStore | None:
        if self.blobs_url is not None:
            return make_blobs(self.blobs_url)
        return None if isinstance(self.blobs, str) else self.blobs

    def make_bus(self) -> Bus | None:
        return make_bus(self.bus) if isinstance(self.bus, str) else self.bus


def _only(given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def _for_server(adapter: Any, settings: Settings) -> Any:
    return with_server_settings(adapter, settings) if isinstance(adapter, str) else adapter
