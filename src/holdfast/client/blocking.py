"""`Client`: the same for programs that block. An event loop in a thread of its own does the
work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from functools import cached_property, wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from holdfast.client.asynchronous import AsyncClient
from holdfast.client.dead_letters import RemoteDeadLetters
from holdfast.client.installation import (
    RemoteLanes,
    RemoteLocks,
    RemotePipelines,
    RemoteProjections,
)
from holdfast.client.runs import RemoteRuns
from holdfast.client.tenants import RemoteKeys, RemoteTenants
from holdfast.client.webhooks import RemoteWebhooks

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="holdfast-client", daemon=True
        )
        self._thread.start()

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        try:
            while True:
                try:
                    yield self.wait_for(_next(items))
                except StopAsyncIteration:
                    return
        finally:
            close = getattr(items, "aclose", None)
            if close is not None:
                self.wait_for(close())

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


class _Part(Generic[A]):
    """A part of the client, and what waits for it."""

    def __init__(self, part: A, loop: _Loop) -> None:
        self._part = part
        self._loop = loop


def blocking(
    method: Callable[Concatenate[A, P], Awaitable[T]],
) -> Callable[Concatenate[_Part[A], P], T]:
    """The same method, with the same arguments, that waits for its answer."""

    @wraps(method)
    def call(self: _Part[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        work: Any = method(self._part, *args, **kwargs)
        return self._loop.wait_for(work)

    return call


def iterating(
    method: Callable[Concatenate[A, P], AsyncIterator[T]],
) -> Callable[Concatenate[_Part[A], P], Iterator[T]]:
    @wraps(method)
    def call(self: _Part[A], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self._loop.iterate(method(self._part, *args, **kwargs))

    return call


class Runs(_Part[RemoteRuns]):
    submit = blocking(RemoteRuns.submit)
    submit_many = blocking(RemoteRuns.submit_many)
    list = blocking(RemoteRuns.list)
    find = blocking(RemoteRuns.find)
    show = blocking(RemoteRuns.show)
    wait = blocking(RemoteRuns.wait)
    watch = iterating(RemoteRuns.watch)
    follow = iterating(RemoteRuns.follow)
    result = blocking(RemoteRuns.result)
    state = blocking(RemoteRuns.state)
    artifacts = blocking(RemoteRuns.artifacts)
    artifact = blocking(RemoteRuns.artifact)
    events = blocking(RemoteRuns.events)
    logs = blocking(RemoteRuns.logs)
    explain = blocking(RemoteRuns.explain)
    cancel = blocking(RemoteRuns.cancel)
    pause = blocking(RemoteRuns.pause)
    resume = blocking(RemoteRuns.resume)
    rerun = blocking(RemoteRuns.rerun)


class DeadLetters(_Part[RemoteDeadLetters]):
    list = blocking(RemoteDeadLetters.list)
    show = blocking(RemoteDeadLetters.show)
    redrive = blocking(RemoteDeadLetters.redrive)
    discard = blocking(RemoteDeadLetters.discard)


class Lanes(_Part[RemoteLanes]):
    list = blocking(RemoteLanes.list)
    show = blocking(RemoteLanes.show)
    step_down = blocking(RemoteLanes.step_down)


class Locks(_Part[RemoteLocks]):
    list = blocking(RemoteLocks.list)
    release = blocking(RemoteLocks.release)


class Projections(_Part[RemoteProjections]):
    list = blocking(RemoteProjections.list)
    find = blocking(RemoteProjections.find)
    rebuild = blocking(RemoteProjections.rebuild)
    drop = blocking(RemoteProjections.drop)


class Pipelines(_Part[RemotePipelines]):
    list = blocking(RemotePipelines.list)
    show = blocking(RemotePipelines.show)
    schema = blocking(RemotePipelines.schema)


class Tenants(_Part[RemoteTenants]):
    create = blocking(RemoteTenants.create)
    list = blocking(RemoteTenants.list)
    show = blocking(RemoteTenants.show)
    set = blocking(RemoteTenants.set)
    delete = blocking(RemoteTenants.delete)


class Keys(_Part[RemoteKeys]):
    create = blocking(RemoteKeys.create)
    create_first = blocking(RemoteKeys.create_first)
    list = blocking(RemoteKeys.list)
    rotate = blocking(RemoteKeys.rotate)
    revoke = blocking(RemoteKeys.revoke)


class Webhooks(_Part[RemoteWebhooks]):
    add = blocking(RemoteWebhooks.add)
    list = blocking(RemoteWebhooks.list)
    remove = blocking(RemoteWebhooks.remove)
    rotate = blocking(RemoteWebhooks.rotate)
    enable = blocking(RemoteWebhooks.enable)
    deliveries = blocking(RemoteWebhooks.deliveries)
    replay = blocking(RemoteWebhooks.replay)
    test = blocking(RemoteWebhooks.test)


class Client(_Part[AsyncClient]):
    """The service of another process: see `AsyncClient`. It may be used by several threads."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        tenant: str | None = None,
    ) -> None:
        part = AsyncClient(url, api_key=api_key, timeout=timeout, tenant=tenant)
        super().__init__(part, _Loop())

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._loop.wait_for(self._part.close())
        self._loop.close()

    submit = blocking(AsyncClient.submit)
    wait = blocking(AsyncClient.wait)
    result = blocking(AsyncClient.result)
    watch = iterating(AsyncClient.watch)
    upload = blocking(AsyncClient.upload)
    download = blocking(AsyncClient.download)
    workers = blocking(AsyncClient.workers)
    audit = blocking(AsyncClient.audit)

    @cached_property
    def runs(self) -> Runs:
        return Runs(self._part.runs, self._loop)

    @cached_property
    def dead_letters(self) -> DeadLetters:
        return DeadLetters(self._part.dead_letters, self._loop)

    @cached_property
    def lanes(self) -> Lanes:
        return Lanes(self._part.lanes, self._loop)

    @cached_property
    def locks(self) -> Locks:
        return Locks(self._part.locks, self._loop)

    @cached_property
    def projections(self) -> Projections:
        return Projections(self._part.projections, self._loop)

    @cached_property
    def pipelines(self) -> Pipelines:
        return Pipelines(self._part.pipelines, self._loop)

    @cached_property
    def tenants(self) -> Tenants:
        return Tenants(self._part.tenants, self._loop)

    @cached_property
    def keys(self) -> Keys:
        return Keys(self._part.keys, self._loop)

    @cached_property
    def webhooks(self) -> Webhooks:
        return Webhooks(self._part.webhooks, self._loop)
