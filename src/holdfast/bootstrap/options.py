"""What an app is made of, as one value.

Three layers, the later ones over the earlier: what the code gives, what the settings say, what the
command line says. Settings and command line arrive together, as `Loaded`, which knows what somebody
has set; whatever nobody has set stays as the code gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from holdfast.bootstrap.factories import (
    default_blobs,
    make_blobs,
    make_bus,
    make_documents,
    make_store,
    with_server_settings,
)
from holdfast.bootstrap.pubsub import bus_url
from holdfast.engine.metering import Meter, TenantLabels
from holdfast.errors import ConfigurationError
from holdfast.model.clock import Clock, SystemClock
from holdfast.model.event import EVENTS_TOPIC
from holdfast.model.lease import LeaseTimes
from holdfast.model.options import PipelineOptions, Retention, WorkerOptions
from holdfast.model.projection import Projection
from holdfast.model.receive import Receive
from holdfast.ports.blobs import BlobStore
from holdfast.ports.bus import Bus
from holdfast.ports.documents import Documents
from holdfast.ports.metrics import Metrics
from holdfast.ports.store import Store
from holdfast.ports.tracing import Tracer
from holdfast.ports.web import Web
from holdfast.services.cluster_metrics import ClusterSettings
from holdfast.settings import DEFAULT_STORE, Loaded, Settings
from holdfast.settings.values import Webhooks

ADAPTERS = ("store", "blobs", "bus", "documents", "llm")
WORKER = ("concurrency", "max_bytes", "grace")


@dataclass(frozen=True)
class Options:
    """Everything that `Holdfast` can be told but its pipelines."""

    store: str | Store = DEFAULT_STORE
    blobs: str | BlobStore | None = None
    """None: beside the store, if that is a file or memory."""
    bus: str | Bus | None = None
    documents: str | Documents | None = None
    """Where documents for other systems are written. None: to the store, if that is Redis."""
    projections: Sequence[Projection | str] = ()
    """What leaves besides what the pipelines declare; a text names a projection of an app."""
    events_topic: str = EVENTS_TOPIC
    """The topic that all events are published to."""
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
    pipeline: PipelineOptions = field(default_factory=PipelineOptions)
    """What settings change about all pipelines."""
    pipelines: Mapping[str, PipelineOptions] = field(default_factory=dict)
    """The same for one pipeline, by its name."""
    receive: Sequence[Receive] = ()
    """What a worker receives: dead letters of these topics may be published."""
    webhooks: Webhooks = field(default_factory=Webhooks)
    """How webhooks are signed, and where they may lead; without a key none is delivered."""
    metrics: Metrics | None = None
    """Where counts and durations go; None: nothing is counted."""
    tenant_label: bool = True
    """Whether metrics say whose runs they are about."""
    alerts: ClusterSettings = field(default_factory=ClusterSettings)
    """Figures that alerts compare with."""
    tracer: Tracer | None = None
    """Who records spans; None: nobody does."""
    parent_from_message: bool = False
    """Whether the span of a message is below that of its producer, rather than linked to it."""
    on_execute: Callable[[str, str, str], None] | None = None
    """Called with (run, step, key) whenever a step or item is really executed: for tests that
    count."""

    def __post_init__(self) -> None:
        kinds = {"worker": WorkerOptions, "lease": LeaseTimes, "retention": Retention}
        for name, kind in kinds.items():
            if not isinstance(value := getattr(self, name), kind):
                raise ConfigurationError(f"{name}={value!r:.100}: give {kind.__name__}(…)")
        if not isinstance(self.store, str) and not hasattr(self.store, "features"):
            raise ConfigurationError(f"store={self.store!r:.100}: give a URL, or a Store")
        if not isinstance(self.provide, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                f"provide={self.provide!r:.100}: give a mapping from types to objects"
            )

    def make_meter(self) -> Meter | None:
        if self.metrics is None:
            return None
        return Meter(self.metrics, TenantLabels(self.tenant_label))

    def of_pipeline(self, name: str) -> PipelineOptions:
        """What the settings change about a pipeline."""
        return self.pipelines.get(name, PipelineOptions()).over(self.pipeline)

    def with_settings(self, loaded: Loaded) -> Options:
        """These options, with what somebody has set laid over them."""
        settings = loaded.given()
        if "bus" in settings:
            settings["bus"] = bus_url(loaded)
        events, metrics = loaded.given("events"), loaded.given("metrics")
        options = replace(
            self,
            worker=structs.replace(
                self.worker,
                leader=structs.replace(self.worker.leader, **loaded.given("leader")),
                **_subset(settings, WORKER),
            ),
            projections=(*self.projections, *settings.get("projections", ())),
            events_topic=events.get("topic", self.events_topic),
            tenant_label=metrics.get("tenant_label", self.tenant_label),
            alerts=_alerts(self.alerts, loaded),
            parent_from_message=loaded.given("traces").get(
                "parent_from_message", self.parent_from_message
            ),
            lease=structs.replace(self.lease, **loaded.given("lease")),
            retention=structs.replace(self.retention, **loaded.given("retention")),
            pipeline=structs.replace(self.pipeline, **loaded.given("pipeline")),
            pipelines={**self.pipelines, **settings.get("pipelines", {})},
            receive=(*self.receive, *settings.get("receive", ())),
            webhooks=structs.replace(self.webhooks, **loaded.given("webhooks")),
            **_subset(settings, ADAPTERS),
        )
        if options.bus is None and (url := bus_url(loaded)) != "none":
            options = replace(options, bus=url)
        return replace(
            options,
            store=_for_server(options.store, loaded.settings),
            bus=_for_server(options.bus, loaded.settings),
            documents=_for_server(options.documents, loaded.settings),
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

    @property
    def bus_system(self) -> str:
        """What traces call the bus."""
        scheme = (self.bus_url or "").partition(":")[0]
        return {"pubsub": "gcp_pubsub", "rediss": "redis"}.get(scheme, scheme)

    @property
    def documents_url(self) -> str | None:
        """None when there are no documents, or code has made the adapter itself."""
        if self.documents is None and is_redis(self.store_url):
            return self.store_url
        return self.documents if isinstance(self.documents, str) else None

    def make_store(self) -> Store:
        return make_store(self.store, self.clock) if isinstance(self.store, str) else self.store

    def make_blobs(self) -> BlobStore | None:
        if self.blobs_url is not None:
            return make_blobs(self.blobs_url)
        return None if isinstance(self.blobs, str) else self.blobs

    def make_web(self) -> Web:
        """Calls to addresses that other people have given us."""
        from holdfast.adapters.web.client import GuardedWeb

        return GuardedWeb(self.webhooks.allow)

    def make_bus(self) -> Bus | None:
        return make_bus(self.bus) if isinstance(self.bus, str) else self.bus

    def make_documents(self) -> Documents | None:
        if self.documents_url is not None:
            return make_documents(self.documents_url, self.clock)
        return None if isinstance(self.documents, str) else self.documents


def is_redis(url: str | None) -> bool:
    return url is not None and url.startswith(("redis:", "rediss:"))


def _alerts(alerts: ClusterSettings, loaded: Loaded) -> ClusterSettings:
    settings = {**loaded.given("locks"), **loaded.given("metrics")}
    return structs.replace(alerts, **_subset(settings, ("alert_threshold", "llm_budget")))


def _subset(values: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


def _for_server(adapter: Any, settings: Settings) -> Any:
    return with_server_settings(adapter, settings) if isinstance(adapter, str) else adapter
