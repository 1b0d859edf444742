"""What a step may ask of the engine while it runs."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, TypeVar, overload

from msgspec import Struct

from holdfast.model.run import ErrorInfo, StepRecord
from holdfast.model.usage import Usage

T = TypeVar("T")
R = TypeVar("R")


class Failure(Struct, frozen=True):
    """An item that failed for good, in the place of its result (`on_error="collect"`)."""

    key: str
    error: ErrorInfo


class Log(Protocol):
    """The run's log: kept with the run (`holdfast runs logs`) and passed on to the logger
    `holdfast.run`."""

    def debug(self, message: str, **fields: Any) -> None: ...
    def info(self, message: str, **fields: Any) -> None: ...
    def warning(self, message: str, **fields: Any) -> None: ...
    def error(self, message: str, **fields: Any) -> None: ...


class _Common(Protocol):
    run_id: str
    tenant: str
    pipeline: str
    step_name: str
    key: str
    """The key of the item; empty in the step itself."""
    attempt: int
    """Which try at the run this is, counted from 1 and from the claim, crashes included."""
    epoch: int
    """The fencing number of the lease. Hand it to other systems that can refuse an older one."""

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this step or item in this run: give it to the APIs you
        call."""
        ...

    @property
    def cancelled(self) -> bool:
        """Whether the work should end: cancelled, timed out, lease lost. Long loops in threads look
        at it."""
        ...

    @property
    def log(self) -> Log: ...

    def progress(self, done: int, total: int | None = None) -> None:
        """Say how far the step is. `ctx.map` does it by itself."""
        ...

    def usage(
        self,
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cost: float | None = None,
        calls: int = 1,
    ) -> None:
        """Count one call's tokens and cost. `cost=None`: its price is unknown (not zero).

        One call made for several items is counted with one of them; the others count their share
        with `calls=0`."""
        ...

    @property
    def steps(self) -> Mapping[str, StepRecord]:
        """What the steps of this run have taken and cost so far, earlier attempts included, this
        step as well."""
        ...

    @property
    def spent(self) -> Usage:
        """Tokens and money that this run has consumed so far, in all its attempts."""
        ...

    def use(self, port: type[T]) -> T:
        """What the app provides under a type: `Holdfast(…, provide={Analysts: …})`. Steps then know
        no vendor."""
        ...


class Context(_Common, Protocol):
    """The context of an `async def` step or item."""

    @overload
    async def map(
        self,
        fn: Callable[..., Awaitable[R]],
        items: Iterable[T] | AsyncIterable[T],
        *,
        key: Callable[[T], object] | None = ...,
        concurrency: int = ...,
        on_error: Literal["fail"] = ...,
        max_attempts: int | None = ...,
    ) -> list[R]: ...

    @overload
    async def map(
        self,
        fn: Callable[..., R],
        items: Iterable[T] | AsyncIterable[T],
        *,
        key: Callable[[T], object] | None = ...,
        concurrency: int = ...,
        on_error: Literal["fail"] = ...,
        max_attempts: int | None = ...,
    ) -> list[R]: ...

    @overload
    async def map(
        self,
        fn: Callable[..., Any],
        items: Iterable[T] | AsyncIterable[T],
        *,
        key: Callable[[T], object] | None = ...,
        concurrency: int = ...,
        on_error: Literal["collect"],
        max_failures: int | None = ...,
        max_attempts: int | None = ...,
    ) -> list[Any]: ...

    async def map(self, fn: Any, items: Any, **options: Any) -> Any:
        """Apply `fn` to every item, each result a checkpoint of its own, and return them in order.

        `fn(item)` or `fn(item, ctx)`, `def` or `async def`. `key` names an item; without it the
        item itself must be a string or number. A crash repeats at most the items in flight. With
        `on_error="collect"` an item that failed for good becomes a `Failure` in the list, and only
        more than `max_failures` of them fail the step. Failures are not stored: after a crash those
        items are tried again."""
        ...

    async def step(self, name: str, fn: Callable[..., Any], *args: Any, key: object = None) -> Any:
        """Run `fn(*args)` once: its result is a checkpoint of its own inside this step, found again
        by name and key."""
        ...

    async def artifact(self, name: str, data: bytes) -> str:
        """Store bytes for good and return where they are. The same bytes again change nothing."""
        ...

    async def read(self, where: str) -> bytes:
        """The bytes of an artifact, or of anything else that was stored for this run's tenant."""
        ...

    async def secret(self, *names: str, configured: str | None = None) -> str | None:
        """A secret that came with the run's message, by the name of its field, in any spelling;
        otherwise what is `configured` here. If the message brought one that only another process
        knows, and none is configured, this raises `Pause`."""
        ...


class BlockingContext(_Common, Protocol):
    """The context of a `def` step or item: the same words, and they block."""

    def map(
        self,
        fn: Callable[..., Any],
        items: Iterable[T],
        *,
        key: Callable[[T], object] | None = None,
        concurrency: int = 16,
        on_error: Literal["fail", "collect"] = "fail",
        max_failures: int | None = None,
        max_attempts: int | None = None,
    ) -> list[Any]: ...

    def step(self, name: str, fn: Callable[..., Any], *args: Any, key: object = None) -> Any: ...

    def artifact(self, name: str, data: bytes) -> str: ...

    def read(self, where: str) -> bytes: ...

    def secret(self, *names: str, configured: str | None = None) -> str | None: ...
