"""`ctx.map`: many items inside one step, each a durable call of its own, several at once."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterable, Callable, Iterable, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from holdfast.engine.attempt import Attempt
from holdfast.engine.failures import (
    TryLater,
    describe,
    ended_by,
    error_name,
    is_from_outside,
    raise_first_cause,
)
from holdfast.engine.item_call import ItemFunction
from holdfast.errors import CheckpointsCorrupt, Fix, ItemsFailed, Stop, StoreUnavailable
from holdfast.model.keys import SEPARATOR, ItemKey
from holdfast.model.limits import is_text
from holdfast.model.run import ErrorInfo, StepRecord
from holdfast.model.step import Step
from holdfast.ports.context import Failure

if TYPE_CHECKING:
    from holdfast.engine.context import StepContext

_END = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOptions:
    """What `ctx.map` is told besides the function and the items."""

    key: Callable[[Any], object] | None = None
    concurrency: int = 16
    on_error: Literal["fail", "collect"] = "fail"
    max_failures: int | None = None
    max_attempts: int | None = None

    def __post_init__(self) -> None:
        if self.on_error not in ("fail", "collect"):
            raise Fix(f"on_error={self.on_error!r} is unknown: use 'fail' or 'collect'")
        _check_number("concurrency", self.concurrency, least=1)
        _check_number("max_attempts", self.max_attempts, least=1)
        _check_number("max_failures", self.max_failures, least=0)
        if self.max_failures is not None and self.on_error == "fail":
            raise Fix("max_failures counts failures that are collected: add on_error='collect'")


def _check_number(name: str, value: Any, least: int) -> None:
    try:
        is_right = value is None or operator.index(value) >= least
    except TypeError:
        is_right = False
    if not is_right:
        raise Fix(f"{name}={value!r:.100}: ctx.map takes a number from {least} on")


class ItemMap:
    """Applies a function to items, each result a checkpoint of its own, written before it counts as
    done."""

    def __init__(
        self,
        attempt: Attempt,
        context: StepContext,
        step: Step,
        record: StepRecord,
        fn: Callable[..., Any],
        options: MapOptions,
    ) -> None:
        self._attempt = attempt
        self._context = context
        self._step = step
        self._record = record
        self._function = ItemFunction(fn)
        self._options = options
        self._max_attempts = options.max_attempts or step.max_attempts
        self._results: list[Any] = []
        self._failures = 0
        self._done = 0
        self._total: int | None = None

    async def run(self, items: Iterable[Any] | AsyncIterable[Any]) -> list[Any]:
        """Results in the order of the items."""
        self._total = len(items) if isinstance(items, Sized) else None
        source, concurrency = _Source(items), self._options.concurrency
        workers = min(concurrency, self._total) if self._total is not None else concurrency
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(self._work(source))
        except BaseExceptionGroup as group:
            raise_first_cause(group)
        self._context.progress(self._done, self._total or self._done)
        return self._results

    async def _work(self, source: _Source) -> None:
        task = asyncio.current_task()
        try:
            await self._work_on(source)
        except BaseException as error:
            if isinstance(error, Exception) or is_from_outside(error, task):
                raise
            raise ended_by(error) from error  # or its group would believe that all is well

    async def _work_on(self, source: _Source) -> None:
        while (numbered := await source.next()) is not None:
            index, item = numbered
            key = self._key_of(item)
            while len(self._results) <= index:
                self._results.append(None)
            self._results[index] = await self._result_or_failure(key, item)
            self._done += 1
            self._context.progress(self._done, self._total)

    def _key_of(self, item: Any) -> ItemKey:
        key = str((self._options.key or _own_key)(item))
        if not key or key.startswith("@") or SEPARATOR in key or not is_text(key):
            raise Fix(
                f"step {self._step.name!r}: an item's key is {key!r:.200}; it must not be empty "
                "or begin with '@', and be text that can be stored"
            )
        item_key = self._context.item.inner(key)
        self._context.claim_key(item_key.stored)
        return item_key

    async def _result_or_failure(self, key: ItemKey, item: Any) -> Any:
        try:
            call = self._context.item_call(self._function, key, (item,), self._max_attempts)
            return (await call.run()).value
        except (Stop, Fix, StoreUnavailable, CheckpointsCorrupt, TryLater):
            raise
        except Exception as error:
            # Without its traceback: there may be thousands of them. If the step fails because of
            # this one, its traceback is part of the step's.
            info = ErrorInfo(error_name(error), describe(error), self._step.name, key.stored)
            if self._options.on_error == "fail":
                raise ItemsFailed(
                    f"item {key.stored!r} failed: {info.name}: {info.message}"
                ) from error
            self._count_failure(info, error)
            return Failure(key.original, info)

    def _count_failure(self, info: ErrorInfo, error: Exception) -> None:
        self._failures += 1
        self._record.failed_items = self._failures
        self._attempt.gate.log(
            "warning",
            self._step.name,
            f"item failed: {info.name}: {info.message}",
            {"key": info.key},
        )
        most = self._options.max_failures
        if most is not None and self._failures > most:
            raise ItemsFailed(
                f"{self._failures} items failed, more than max_failures={most}; the last: {info}"
            ) from error


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
            item = next(self._plain, _END)
        else:
            async with self._lock:
                item = await anext(self._async, _END)  # type: ignore[arg-type]
        if item is _END:
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
