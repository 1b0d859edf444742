"""`Holdfast`: the one object that users' programs hold."""

from __future__ import annotations

import asyncio
import math
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

from holdfast.bootstrap import (
    Options,
    make_providers,
    make_runtime,
    projections_of,
    prune_answers,
    state_document,
    targets_of,
)
from holdfast.bootstrap.apps import find_pipeline
from holdfast.engine.document_writing import Refresher
from holdfast.engine.handle import RunHandle
from holdfast.engine.intake import Intake
from holdfast.engine.lanes import define_lanes
from holdfast.engine.locks import LeaderElection, Lock
from holdfast.engine.receiving import Receiving
from holdfast.engine.relay import Relay
from holdfast.engine.submission import SubmitOptions
from holdfast.engine.supervision import Loop, end
from holdfast.engine.sweeper import Sweeper
from holdfast.engine.webhooks import Webhooks
from holdfast.engine.worker import Worker
from holdfast.errors import ConfigurationError, DefinitionError, UnknownPipeline
from holdfast.model.clock import Clock
from holdfast.model.dead_letter_copies import copies_name
from holdfast.model.duration import Duration, seconds
from holdfast.model.lease import LeaseTimes
from holdfast.model.options import Retention, WorkerOptions
from holdfast.model.pipeline import Pipeline
from holdfast.model.projection import Projection
from holdfast.model.receive import Receive
from holdfast.ports.blobs import BlobStore
from holdfast.ports.bus import Bus
from holdfast.ports.documents import Documents
from holdfast.ports.metrics import Metrics
from holdfast.ports.store import Store
from holdfast.ports.tracing import Tracer
from holdfast.services.api_keys import ApiKeys
from holdfast.services.authentication import Authenticator
from holdfast.services.explanation import Explanation, explain
from holdfast.services.health import Health
from holdfast.services.local import LocalService, ServiceContext
from holdfast.services.lookup import find_run
from holdfast.services.metrics_export import MetricsExport
from holdfast.services.operations import Operations
from holdfast.services.page_sessions import PageSessions
from holdfast.services.tenants import Tenants
from holdfast.services.webhooks import WebhookOptions
from holdfast.settings import DEFAULT_STORE, Loaded, load

In = TypeVar("In")
T = TypeVar("T")


class Holdfast:
    """Pipelines on a store.

        async with Holdfast("sqlite:///holdfast.db", pipelines=[report]) as app:
            run = await app.submit(report, request, tenant="acme", key="r-123")
            print(await run.result())

    Entering starts a worker in this process; `worker=False` makes it a client whose runs other
    processes execute."""

    def __init__(
        self,
        store: str | Store = DEFAULT_STORE,
        pipelines: Iterable[Pipeline[Any]] = (),
        *,
        blobs: str | BlobStore | None = None,
        bus: str | Bus | None = None,
        documents: str | Documents | None = None,
        projections: Iterable[Projection | str] = (),
        worker: bool | WorkerOptions = True,
        lease: LeaseTimes | None = None,
        retention: Retention | None = None,
        clock: Clock | None = None,
        threads: bool = True,
        llm: str | None = None,
        provide: Mapping[type[Any], Any] | None = None,
        metrics: Metrics | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        options = {
            "worker": None if isinstance(worker, bool) else worker,
            "lease": lease,
            "retention": retention,
            "clock": clock,
            "provide": provide,
        }
        self._wire(
            Options(
                store,
                blobs,
                bus,
                documents,
                (projections,) if isinstance(projections, str) else tuple(projections),
                works=bool(worker),
                threads=threads,
                llm=llm,
                metrics=metrics,
                tracer=tracer,
                **{name: value for name, value in options.items() if value is not None},
            ),
            pipelines,
        )

    @classmethod
    def from_options(cls, options: Options, pipelines: Iterable[Pipeline[Any]] = ()) -> Holdfast:
        """An app as one value describes it."""
        app = cls.__new__(cls)
        app._wire(options, pipelines)
        return app

    @classmethod
    def from_settings(
        cls,
        loaded: Loaded | None = None,
        pipelines: Iterable[Pipeline[Any]] | None = None,
        *,
        like: Holdfast | None = None,
        worker: bool = True,
    ) -> Holdfast:
        """An app as the settings say (read from all their places by default).

        `like` is an app declared in code: it gives what the settings leave open, and its pipelines
        unless others are named."""
        code = like.options if like is not None else Options()
        loaded = loaded or load()
        loaded.log_useless()
        options = replace(code.with_settings(loaded), works=worker)
        if pipelines is None:
            pipelines = like.pipelines.values() if like is not None else ()
        return cls.from_options(options, pipelines)

    def _wire(self, options: Options, pipelines: Iterable[Pipeline[Any]]) -> None:
        self.options = options
        by_name = _by_name(pipelines)
        self.pipelines = {n: p.with_options(options.of_pipeline(n)) for n, p in by_name.items()}
        self.name = f"{socket.gethostname()}-{os.getpid()}"
        self.store_url = options.store_url
        self.store = options.make_store()
        self.bus = options.make_bus()
        self._blobs = options.make_blobs()
        meter = options.make_meter()
        self._providers = make_providers(options, self.store, self._blobs, meter)
        self.runtime = runtime = make_runtime(
            options, self.store, self._blobs, meter, self._providers
        )
        self.projections = projections_of(options, self.pipelines.values())
        self._targets = targets_of(self.projections, options, runtime, self.pipelines, self.bus)
        self._intake = Intake(runtime)
        self.authenticator = Authenticator(runtime.records, runtime.tenants, runtime.clock)
        self.keys = ApiKeys(runtime.records, self.authenticator.forget)
        self.page_sessions = PageSessions(runtime.records, self.authenticator, runtime.clock)
        self.tenants = Tenants(runtime, self.keys)
        self.metrics_export = MetricsExport(runtime, meter, options.alerts) if meter else None
        """What Prometheus is told, if anything is counted."""
        self.worker: Worker | None = None
        self.health = Health(
            runtime,
            lambda: self.is_open,
            lambda: self.worker.active if self.worker is not None else 0,
        )
        """What probes ask."""
        self._open = False
        self._background: list[asyncio.Task[Any]] = []
        self._receiving: Receiving | None = None
        self._opening = asyncio.Lock()

    # --- opening and closing ----------------------------------------------------------------------

    async def __aenter__(self) -> Holdfast:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Open the store, define the pipelines' lanes, start the worker. Everything else does it by
        itself when needed."""
        if self.is_open:
            return
        async with self._opening:
            if self._open:
                return
            await self.store.open()
            if self.bus is not None:
                await self.bus.open()
            self._open = True
            try:
                if self.options.define_lanes:
                    await define_lanes(self.runtime.committer, self.pipelines.values())
                if self.options.works and (self.pipelines or self.options.projections):
                    await self._start_worker()
            except (Exception, asyncio.CancelledError):
                await self.close(grace=0)
                raise

    @property
    def is_open(self) -> bool:
        """Whether the store is open and the worker, if there is one, has started."""
        return self._open and not self._opening.locked()

    async def _start_worker(self) -> None:
        runtime = self.runtime
        runtime.supervisor.failure = None  # this may not be the first time that it is opened
        self._refresher = Refresher(self._targets.documents, runtime)
        self.worker = Worker(runtime, self.pipelines.values(), self.options.worker, self._refresher)
        await self.worker.start()
        keep = self.options.retention
        self._start_loop("the sweeper", Sweeper(runtime, keep).run)
        if (blobs := self._blobs) is not None:
            clock = self.options.clock
            self._start_loop(
                "pruning answers", lambda: prune_answers(blobs, clock, keep.finished, keep.every)
            )
        self._targets.warn_of_nowhere()
        for name, target in self._targets.by_name.items():
            relay = Relay(runtime, target, self.worker.name)
            self._start_loop(f"the relay of {name}", relay.run)

        if key := self.options.webhooks.key:
            webhooks = Webhooks(runtime, self.worker.name, key, self.options.make_web)
            self._start_loop("webhooks", webhooks.run)

    def _start_loop(self, name: str, loop: Loop) -> None:
        self._background.append(self.runtime.supervisor.start(name, loop))

    async def failed(self) -> NoReturn:
        """Wait until this process can't work any more, and raise why: a loop of its worker failed
        for good. Its runs were handed over."""
        await self.runtime.supervisor.failed()

    async def close(self, grace: float | None = None) -> None:
        """Hand unfinished runs over, then let go of everything."""
        if not self._open:
            return
        self._open = False
        async with AsyncExitStack() as last:  # the last is closed first; one may raise
            last.push_async_callback(self.store.close)
            if self.bus is not None:
                last.push_async_callback(self.bus.close)
            last.push_async_callback(self._targets.close)
            last.push_async_callback(self._providers.aclose)
            await self._stop_working(grace)

    async def _stop_working(self, grace: float | None) -> None:
        if self._receiving is not None:
            await self._receiving.stop()  # no new work while the old is handed over
        if self.worker is not None:
            await self.worker.stop(grace)
        await end(self._background)
        self._background.clear()
        self.runtime.waiters.stop()
        await self.runtime.committer.drain()
        await self.runtime.keeper.stop()

    # --- work -------------------------------------------------------------------------------------

    async def submit(
        self,
        pipeline: Pipeline[In] | str,
        input: In | Any = None,
        *,
        tenant: str = "default",
        key: str | None = None,
        priority: int = 0,
        delay: Duration = 0,
        labels: Mapping[str, str] | None = None,
    ) -> RunHandle:
        """Accept a run. It is durable when this returns. `run.created` tells a new run from an
        existing one. `labels` are what it can be found by: up to 16 small texts."""
        declared = self._declared(pipeline)
        if not self.is_open:
            await self.open()
        options = SubmitOptions(
            tenant=tenant, priority=priority, delay=seconds(delay), labels=labels
        )
        return await self._intake.submit(declared, input, options, key=key)

    async def submit_many(
        self,
        pipeline: Pipeline[In] | str,
        inputs: Iterable[In | Any],
        *,
        tenant: str = "default",
        keys: Sequence[str] | None = None,
        priority: int = 0,
        delay: Duration = 0,
        labels: Mapping[str, str] | None = None,
    ) -> list[RunHandle]:
        """Accept a run for each input, in their order, in as few commits as possible. All are
        durable when this returns; if one input is not valid, none was accepted."""
        declared = self._declared(pipeline)
        await self.open()
        options = SubmitOptions(
            tenant=tenant, priority=priority, delay=seconds(delay), labels=labels
        )
        return await self._intake.submit_many(declared, inputs, options, keys=keys)

    async def run(self, name: str, *, tenant: str | None = None) -> RunHandle:
        """The handle of a run that was submitted before: by its id, its idempotency key, or the
        start of its id. `tenant` looks among the runs of one tenant only."""
        await self.open()
        run = await find_run(self.store, name, tenant=tenant)
        return RunHandle(self.runtime, run.id, self.pipelines.get(run.pipeline))

    async def explain(self, run: RunHandle | str, *, tenant: str | None = None) -> Explanation:
        """Why a run is not running, or why it failed. `tenant` looks among the runs of one tenant
        only, and names no run of another."""
        await self.open()
        name = run if isinstance(run, str) else run.id
        stored = await find_run(self.store, name, tenant=tenant)
        return await explain(self.store, stored, tenant=tenant)

    def use(self, port: type[T]) -> T:
        """What steps get with `ctx.use(port)`."""
        return self._providers[port]

    @property
    def operations(self) -> Operations:
        """Cancel, pause, resume, rerun, dead letters, locks: what people do to runs."""
        return Operations(
            self.runtime,
            self.pipelines,
            self.bus,
            stop_work=self._stop_work,
            targets=self._targets.by_name,
        )

    def service(
        self,
        *,
        tenant: str | None = None,
        actor: str = "api",
        submits_for: str = "default",
        origins: Mapping[str, str] | None = None,
    ) -> LocalService:
        """What the command line and the HTTP API do, once the app is open. `tenant` is whose runs
        it sees (None: everybody's), `actor` who makes changes."""
        return LocalService(
            ServiceContext(
                self.runtime,
                self.pipelines,
                self.operations,
                self.tenants,
                self.keys,
                tenant,
                actor,
                submits_for,
                self.options.worker.leader,
                origins or {},
                find_pipeline,
                state_document,
                WebhookOptions(
                    self.options.webhooks.key, self.options.webhooks.allow, self.options.make_web
                ),
            )
        )

    def _stop_work(self, run_id: str) -> None:
        if self.worker is not None:
            self.worker.lose(run_id)

    def _declared(self, pipeline: Pipeline[Any] | str) -> Pipeline[Any]:
        """A pipeline as the settings have it; one that is not registered here is used as it is."""
        if isinstance(pipeline, str):
            return self.pipeline(pipeline)
        if not isinstance(pipeline, Pipeline):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UnknownPipeline(f"{pipeline!r:.100} is not a pipeline: give one, or its name")
        return self.pipelines.get(pipeline.name, pipeline)

    def pipeline(self, name: str) -> Pipeline[Any]:
        if name not in self.pipelines:
            known = ", ".join(self.pipelines) or "none are registered"
            raise UnknownPipeline(f"pipeline {name!r} is not registered here (known: {known})")
        return self.pipelines[name]

    async def receive(
        self,
        topic: str | Receive,
        pipeline: Pipeline[Any] | str | None = None,
        *,
        tenant: str = "default",
        **options: Any,
    ) -> None:
        """Turn the messages of a topic into runs, beside everything else, until the app is closed.
        What is published after this has returned is received.

        `options` are those of `Receive`: `subscription`, `filter`, `tenant_from`, `labels`, …; or
        give a `Receive` in place of the topic."""
        receiving = await self._to_receive()
        if isinstance(topic, Receive):
            receive, declared = topic, self.pipeline(topic.pipeline)
        else:
            declared = pipeline if isinstance(pipeline, Pipeline) else self.pipeline(pipeline or "")
            receive = Receive(topic, declared.name, **options)
        if receive.dead_letter_topic and copies_name(receive) not in self.projections:
            raise ConfigurationError(
                f"copies of {receive.topic}'s dead letters are a projection, which has to be "
                "declared: write this [[receive]] into the settings, or give "
                "Holdfast(projections=[dead_letter_copies(receive)])"
            )
        await receiving.start(receive, declared, tenant)

    async def received_elsewhere(self, receive: Receive) -> None:
        """Make known what another process receives of a topic: those of its messages that only the
        other one wants are not buried here."""
        await (await self._to_receive()).know(receive)

    async def _to_receive(self) -> Receiving:
        if self.bus is None:
            raise ConfigurationError("no bus is configured: pass bus='memory:' or set HOLDFAST_BUS")
        await self.open()
        if self._receiving is None:
            self._receiving = Receiving(self.runtime, self.bus)
        return self._receiving

    @property
    def quiet_for(self) -> float:
        """Seconds since a message was received; endless if nothing is received."""
        return math.inf if self._receiving is None else self._receiving.quiet_for

    def lock(self, name: str, *, wait: Duration | None = None) -> Lock:
        """A lock for your own code, once the app is open: `async with app.lock("import") as lock:
        …`."""
        return Lock(
            self.runtime, name, owner=self.name, wait=None if wait is None else seconds(wait)
        )

    def election(self, name: str) -> LeaderElection:
        """A leader election for your own code, once the app is open."""
        return LeaderElection(self.runtime, name, owner=self.name)


def _by_name(pipelines: Iterable[Pipeline[Any]]) -> dict[str, Pipeline[Any]]:
    if isinstance(pipelines, Pipeline):
        raise DefinitionError(f"pipelines is a Pipeline: give a list, [{pipelines.name}]")
    named: dict[str, Pipeline[Any]] = {}
    for pipeline in pipelines:
        if not isinstance(pipeline, Pipeline):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DefinitionError(f"pipelines holds {pipeline!r:.100}, which is not a Pipeline")
        if named.setdefault(pipeline.name, pipeline) is not pipeline:
            raise DefinitionError(f"two pipelines are called {pipeline.name!r}: rename one of them")
    return named
