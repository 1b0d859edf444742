"""`ctx.map` and `ctx.step`: many small durable results inside one step."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, Callable, Iterable, Sized
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import msgspec

from holdfast.engine import threads
from holdfast.engine.blocking import BlockingStepContext
from holdfast.engine.results import describe, recorded_usage
from holdfast.engine.retrying import WAIT_IN_PLACE, TryLater
from holdfast.errors import (
    CheckpointsCorrupt,
    Fix,
    InvalidInput,
    ItemsFailed,
    Permanent,
    Stop,
    StoreUnavailable,
)
from holdfast.model.checkpoint import (
    SEPARATOR,
    Checkpoint,
    checksum,
    inner_key,
    is_item,
    is_outdated,
    what_is_broken,
)
from holdfast.model.codec import codec_for, plain_json
from holdfast.model.commands import SaveCheckpoint
from holdfast.model.pipeline import Step
from holdfast.model.retry import is_retryable
from holdfast.model.run import ErrorInfo, StepRecord, StepStatus
from holdfast.ports.context import Failure

if TYPE_CHECKING:
    from holdfast.engine.context import StepContext

_encode = msgspec.json.Encoder().encode
_MISSING = object()


class Mapping:
    """Applies a function to items, each result a checkpoint of its own, written before it counts as
    done."""

    def __init__(
        self,
        context: StepContext,
        step: Step,
        record: StepRecord,
        fn: Callable[..., Any],
        *,
        key: Callable[[Any], object] | None = None,
        concurrency: int = 16,
        on_error: Literal["fail", "collect"] = "fail",
        max_failures: int | None = None,
        max_attempts: int | None = None,
    ) -> None:
        if on_error not in ("fail", "collect"):
            raise Fix(f"on_error={on_error!r} is unknown: use 'fail' or 'collect'")
        if concurrency < 1:
            raise Fix("concurrency must be at least 1")
        self._context = context
        self._execution = context.execution
        self._step = step
        self._record = record
        self._fn = fn
        self._key = key or _own_key
        self._concurrency = concurrency
        self._collect = on_error == "collect"
        self._max_failures = max_failures
        self._max_attempts = max_attempts or step.max_attempts
        self._is_async = inspect.iscoroutinefunction(fn)
        self._takes_context = _takes_context(fn)
        self._codec = codec_for(_return_type(fn))
        self._feed = self._execution.feeds.get(step.name)
        self._results: list[Any] = []
        self._failures = 0
        self._done = 0
        self._total: int | None = None

    async def run(self, items: Iterable[Any] | AsyncIterable[Any]) -> list[Any]:
        """Results in the order of the items."""
        self._total = len(items) if isinstance(items, Sized) else None
        source = _Source(items)
        workers = (
            min(self._concurrency, self._total) if self._total is not None else self._concurrency
        )
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(self._work(source))
        except BaseExceptionGroup as group:
            raise first_cause(group) from None
        self._context.progress(self._done, self._total or self._done)
        return self._results

    async def one(self, key: str, args: tuple[Any, ...]) -> Any:
        """One result under a name of its own (`ctx.step`)."""
        self._context.claim_key(key)
        return await self._item(key, args)

    async def _work(self, source: _Source) -> None:
        while (numbered := await source.next()) is not None:
            index, item = numbered
            key = self._key_of(item)
            while len(self._results) <= index:
                self._results.append(None)
            self._results[index] = await self._item_or_failure(key, item)
            self._done += 1
            self._context.progress(self._done, self._total)

    def _key_of(self, item: Any) -> str:
        key = str(self._key(item))
        if not key or key.startswith("@") or SEPARATOR in key:
            raise Fix(
                f"step {self._step.name!r}: an item's key is {key!r}; it must not be empty or "
                "begin with '@'"
            )
        self._context.claim_key(key)
        return inner_key(self._context.key, key)

    async def _item_or_failure(self, key: str, item: Any) -> Any:
        try:
            return await self._item(key, (item,))
        except (Stop, Fix, StoreUnavailable, CheckpointsCorrupt, TryLater):
            raise
        except Exception as error:
            info = ErrorInfo(type(error).__name__, describe(error), self._step.name, key)
            if not self._collect:
                raise ItemsFailed(f"item {key!r} failed: {info.name}: {info.message}") from error
            self._count_failure(info)
            return Failure(key, info)

    def _count_failure(self, info: ErrorInfo) -> None:
        self._failures += 1
        self._record.failed_items = self._failures
        self._execution.log(
            "warning",
            self._step.name,
            f"item failed: {info.name}: {info.message}",
            {"key": info.key},
        )
        if self._max_failures is not None and self._failures > self._max_failures:
            raise ItemsFailed(
                f"{self._failures} items failed, more than max_failures={self._max_failures}; the "
                f"last: {info}"
            )

    # --- one item ---------------------------------------------------------------------------------

    async def _item(self, key: str, args: tuple[Any, ...]) -> Any:
        fingerprint = self._context.fingerprint(key, _hashable(key, args))
        found = self._execution.stored.get((self._step.name, key))
        if found is not None:
            value = await self._reuse(found, fingerprint)
            if value is not _MISSING:
                return value
        return await self._attempt(key, args, fingerprint)

    async def _reuse(self, found: Checkpoint, fingerprint: str) -> Any:
        if is_outdated(found, self._codec.schema, fingerprint):
            return _MISSING
        text = await self._execution.runtime.payloads.fetch(found.value)
        reason = what_is_broken(found, text)
        if reason is None and text is not None:
            try:
                value = self._codec.decode(text)
            except InvalidInput as error:
                reason = str(error)
            else:
                self._count_once(found)
                self._publish(found.key, text)
                return value
        await self._execution.quarantine(self._step.name, found.key, reason or "it can't be read")
        return _MISSING

    def _count_once(self, found: Checkpoint) -> None:
        """What an earlier attempt paid for this item belongs to the step's usage, once."""
        place = (found.step, found.key)
        if found.epoch != self._execution.lease.epoch and place not in self._execution.counted:
            self._execution.counted.add(place)
            usage = recorded_usage(found)
            self._record.usage = self._record.usage + usage
            if self._step.name in self._execution.uncounted:
                self._execution.uncounted[self._step.name] = (
                    self._execution.uncounted[self._step.name] - usage
                )

    async def _attempt(self, key: str, args: tuple[Any, ...], fingerprint: str) -> Any:
        attempt = 0
        while True:
            attempt += 1
            context = self._context.for_item(key)
            started = self._execution.runtime.clock.monotonic()
            try:
                text = self._codec.encode(await self._call(context, args))
                value = self._codec.decode(text)
            except InvalidInput as error:
                raise Permanent(
                    f"what it returned does not fit its declared type: {error}"
                ) from error
            except Exception as error:
                if not is_retryable(error) or attempt >= self._max_attempts:
                    raise
                await self._before_next_try(key, attempt, error)
                continue
            duration = self._execution.runtime.clock.monotonic() - started
            await self._save(key, text, fingerprint, context, attempt, duration)
            self._publish(key, text)
            return value

    async def _before_next_try(self, key: str, attempt: int, error: Exception) -> None:
        delay = self._step.retry.delay(attempt, error)
        if delay > WAIT_IN_PLACE:
            raise TryLater(
                delay, ErrorInfo(type(error).__name__, describe(error), self._step.name, key)
            ) from error
        await asyncio.sleep(delay)
        await self._execution.confirm()

    async def _call(self, context: StepContext, args: tuple[Any, ...]) -> Any:
        self._execution.about_to_execute(self._step.name, context.key)
        if self._is_async:
            return await (self._fn(*args, ctx=context) if self._takes_context else self._fn(*args))
        if self._takes_context:
            blocking = BlockingStepContext(context, asyncio.get_running_loop())
            answer = await threads.call(
                lambda: self._fn(*args, ctx=blocking), self._step.name, blocking.stop
            )
        else:
            answer = await threads.call(lambda: self._fn(*args), self._step.name)
        return await answer if inspect.isawaitable(answer) else answer

    async def _save(
        self,
        key: str,
        text: str,
        fingerprint: str,
        context: StepContext,
        attempt: int,
        duration: float,
    ) -> None:
        execution = self._execution
        stored = text
        if not execution.runtime.payloads.fits_inline(text):
            stored = await execution.runtime.payloads.stow(
                text, f"{execution.folder}/{self._step.name}/{execution.lease.epoch}"
            )
        record = StepRecord(
            self._step.name,
            StepStatus.COMPLETED,
            duration=duration,
            attempts=attempt,
            usage=context.item_usage,  # type: ignore[arg-type]
        )
        sum_ = checksum(text)
        command = SaveCheckpoint(
            execution.claimed.run,
            execution.lease.epoch,
            self._step.name,
            key,
            stored,
            sum_,
            self._codec.schema,
            fingerprint,
            _encode(record).decode(),
        )
        await execution.persist(command)
        execution.stored[(self._step.name, key)] = Checkpoint(
            self._step.name,
            key,
            stored,
            sum_,
            self._codec.schema,
            fingerprint,
            command.record,
            execution.lease.epoch,
        )

    def _publish(self, key: str, text: str) -> None:
        if self._feed is not None and is_item(key):
            self._feed.put(key, text)


class _Source:
    """Hands items to workers one by one, from a plain or an asynchronous iterable, without reading
    ahead."""

    def __init__(self, items: Iterable[Any] | AsyncIterable[Any]) -> None:
        self._index = -1
        self._lock = asyncio.Lock()
        self._async = aiter(items) if isinstance(items, AsyncIterable) else None
        self._plain = iter(items) if not isinstance(items, AsyncIterable) else None

    async def next(self) -> tuple[int, Any] | None:
        if self._plain is not None:
            item = next(self._plain, _MISSING)
        else:
            async with self._lock:
                item = await anext(self._async, _MISSING)  # type: ignore[arg-type]
        if item is _MISSING:
            return None
        self._index += 1
        return self._index, item


def _own_key(item: Any) -> object:
    if isinstance(item, str | int):
        return item
    raise Fix(
        f"ctx.map needs key=... for items of type {type(item).__name__}: a function that names "
        "each item"
    )


def _hashable(key: str, args: tuple[Any, ...]) -> str:
    try:
        return plain_json(args)
    except Exception as error:
        raise Fix(
            f"item {key!r} can't be written as JSON ({error}): pass ids or plain values and look "
            "the object up inside"
        ) from error


def _takes_context(fn: Callable[..., Any]) -> bool:
    try:
        return "ctx" in inspect.signature(fn).parameters
    except ValueError:  # some builtins do not say
        return False


def _return_type(fn: Callable[..., Any]) -> Any:
    while isinstance(fn, partial):
        fn = fn.func
    if not inspect.isfunction(fn) and not inspect.ismethod(fn):
        return Any
    try:
        return get_type_hints(fn, localns=inspect.getclosurevars(fn).nonlocals).get("return", Any)
    except (NameError, TypeError) as error:
        raise Fix(
            f"the return type of {fn.__qualname__} can't be resolved ({error}): import it at "
            "module level"
        ) from error


def first_cause(group: BaseExceptionGroup[Any]) -> BaseException:
    """The exception that ended a task group: the first that is not just its consequence."""
    leaves = list(_leaves(group))
    for kind in (Stop, Fix):
        for leaf in leaves:
            if isinstance(leaf, kind):
                return leaf
    return leaves[0]


def _leaves(group: BaseExceptionGroup[Any]) -> Iterable[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
