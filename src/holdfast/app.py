"""`Holdfast`: the one object that users' programs hold."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from holdfast.adapters.records import StoreRecords
from holdfast.bootstrap import Options, Providers, language_model_providers, prune_answers
from holdfast.engine.handle import RunHandle
from holdfast.engine.intake import Intake
from holdfast.engine.lanes import define_lanes
from holdfast.engine.locks import LeaderElection, Lock
from holdfast.engine.receiver import Receiver
from holdfast.engine.relay import Relay
from holdfast.engine.runtime import make_runtime
from holdfast.engine.sweeper import Sweeper
from holdfast.engine.worker import Worker
from holdfast.errors import ConfigurationError, UnknownPipeline
from holdfast.model.clock import Clock
from holdfast.model.duration import Duration, seconds
from holdfast.model.lease import LeaseTimes
from holdfast.model.options import Retention, WorkerOptions
from holdfast.model.pipeline import Pipeline
from holdfast.ports.blobs import BlobStore
from holdfast.ports.bus import Bus
from holdfast.ports.store import Store
from holdfast.services.operations import Operations
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
        worker: bool | WorkerOptions = True,
        lease: LeaseTimes | None = None,
        retention: Retention | None = None,
        clock: Clock | None = None,
        threads: bool = True,
        llm: str | None = None,
        provide: Mapping[type[Any], Any] | None = None,
    ) -> None:
        given = {
            "worker": worker if isinstance(worker, WorkerOptions) else None,
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
                works=bool(worker),
                threads=threads,
                llm=llm,
                **{name: value for name, value in given.items() if value is not None},
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
        options = replace(code.with_settings(loaded or load()), works=worker)
        if pipelines is None:
            pipelines = like.pipelines.values() if like is not None else ()
        return cls.from_options(options, pipelines)

    def _wire(self, options: Options, pipelines: Iterable[Pipeline[Any]]) -> None:
        self.options = options
        self.pipelines = {pipeline.name: pipeline for pipeline in pipelines}
        self.name = f"{socket.gethostname()}-{os.getpid()}"
        self.store_url = options.store_url
        self.store = options.make_store()
        self.bus = options.make_bus()
        self._blobs = options.make_blobs()
        self._providers = Providers(
            options.provide,
            language_model_providers(
                options.llm, self._blobs, options.clock, options.retention.finished
            ),
        )
        self.runtime = make_runtime(
            self.store,
            StoreRecords(self.store),
            self._blobs,
            options.clock,
            options.lease,
            threaded=options.threads,
            provided=self._providers,
            on_execute=options.on_execute,
        )
        self._intake = Intake(self.runtime)
        self.worker: Worker | None = None
        self._open = False
        self._background: list[asyncio.Task[Any]] = []
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
        if self._is_open:
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
                if self.options.works and self.pipelines:
                    await self._start_worker()
            except (Exception, asyncio.CancelledError):
                await self.close(grace=0)
                raise

    @property
    def _is_open(self) -> bool:
        return self._open and not self._opening.locked()

    async def _start_worker(self) -> None:
        runtime = self.runtime
        self.worker = Worker(runtime, self.pipelines.values(), self.options.worker)
        await self.worker.start()
        keep = self.options.retention
        self._start_task(Sweeper(runtime, keep).run())
        if self._blobs is not None:
            self._start_task(
                prune_answers(self._blobs, self.options.clock, keep.finished, keep.every)
            )
        if self.bus is not None:
            self._start_task(Relay(runtime, self.bus, self.worker.name).run())

    def _start_task(self, coroutine: Any) -> None:
        self._background.append(asyncio.create_task(coroutine))

    async def close(self, grace: float | None = None) -> None:
        """Hand unfinished runs over, then let go of everything."""
        if not self._open:
            return
        self._open = False
        if self.worker is not None:
            await self.worker.stop(grace)
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self._background.clear()
        self.runtime.waiters.stop()
        await self.runtime.committer.drain()
        await self.runtime.keeper.stop()
        await self._providers.aclose()
        if self.bus is not None:
            await self.bus.close()
        await self.store.close()

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
    ) -> RunHandle:
        """Accept a run. It is durable when this returns. `run.created` tells a new run from an
        existing one."""
        declared = self.pipeline(pipeline) if isinstance(pipeline, str) else pipeline
        if not self._is_open:
            await self.open()
        return await self._intake.submit(
            declared, input, tenant=tenant, key=key, priority=priority, delay=seconds(delay)
        )

    async def submit_many(
        self,
        pipeline: Pipeline[In] | str,
        inputs: Iterable[In | Any],
        *,
        tenant: str = "default",
        keys: Sequence[str] | None = None,
        priority: int = 0,
        delay: Duration = 0,
    ) -> list[RunHandle]:
        """Accept a run for each input, in their order, in as few commits as possible. All are
        durable when this returns; if one input is not valid, none was accepted."""
        declared = self.pipeline(pipeline) if isinstance(pipeline, str) else pipeline
        await self.open()
        return await self._intake.submit_many(
            declared, inputs, tenant=tenant, keys=keys, priority=priority, delay=seconds(delay)
        )

    async def run(self, run_id: str) -> RunHandle:
        """The handle of a run that was submitted before."""
        await self.open()
        info = await RunHandle(self.runtime, run_id).info()
        return RunHandle(self.runtime, run_id, self.pipelines.get(info.pipeline))

    def use(self, port: type[T]) -> T:
        """What steps get with `ctx.use(port)`."""
        return self._providers[port]

    @property
    def operations(self) -> Operations:
        """Cancel, pause, resume, rerun, dead letters, locks: what people do to runs."""
        return Operations(self.runtime, self.pipelines, self.bus, stop_work=self._stop_work)

    def _stop_work(self, run_id: str) -> None:
        if self.worker is not None:
            self.worker.lose(run_id)

    def pipeline(self, name: str) -> Pipeline[Any]:
        if name not in self.pipelines:
            known = ", ".join(self.pipelines) or "none are registered"
            raise UnknownPipeline(f"pipeline {name!r} is not registered here (known: {known})")
        return self.pipelines[name]

    async def receive(
        self, topic: str, pipeline: Pipeline[Any], *, tenant: str = "default"
    ) -> None:
        """Turn the messages of a topic into runs, beside everything else, until the app is closed.
        What is published after this has returned is received."""
        if self.bus is None:
            raise ConfigurationError("no bus is configured: pass bus='memory:' or set HOLDFAST_BUS")
        await self.open()
        receiver = Receiver(self.runtime, self.bus, topic, pipeline, tenant=tenant)
        self._start_task(receiver.run(await receiver.subscribe()))

    def lock(self, name: str, *, wait: Duration | None = None) -> Lock:
        """A lock for your own code, once the app is open: `async with app.lock("import") as lock:
        …`."""
        return Lock(
            self.runtime, name, owner=self.name, wait=None if wait is None else seconds(wait)
        )

    def election(self, name: str) -> LeaderElection:
        """A leader election for your own code, once the app is open."""
        return LeaderElection(self.runtime, name, owner=self.name)
