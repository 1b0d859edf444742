"""`ctx` for `def` steps and items: the same words, and those that wait block their thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from holdfast.engine import threads
from holdfast.engine.runlog import RunLog

if TYPE_CHECKING:
    from holdfast.engine.context import StepContext


class BlockingStepContext:
    """The context of a `def` step: the same words; those that wait block its thread."""

    def __init__(self, context: StepContext, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop
        self._waiting: set[Future[Any]] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def map(self, fn: Callable[..., Any], items: Any, **options: Any) -> list[Any]:
        return self._wait(lambda: self._context.map(fn, items, **options))

    def step(self, name: str, fn: Callable[..., Any], *args: Any, key: object = None) -> Any:
        return self._wait(lambda: self._context.step(name, fn, *args, key=key))

    def artifact(self, name: str, data: bytes) -> str:
        return self._wait(lambda: self._context.artifact(name, data))

    def read(self, where: str) -> bytes:
        return self._wait(lambda: self._context.read(where))

    def secret(self, *names: str, configured: str | None = None) -> str | None:
        return self._wait(lambda: self._context.secret(*names, configured=configured))

    def progress(self, done: int, total: int | None = None) -> None:
        self._loop.call_soon_threadsafe(self._context.progress, done, total)

    def usage(self, **spent: Any) -> None:
        self._loop.call_soon_threadsafe(lambda: self._context.usage(**spent))

    @property
    def log(self) -> RunLog:
        return self._context.log.for_thread(self._loop)

    def stop(self) -> None:
        """Wake the thread from whatever it waits for: its time is over."""
        for future in list(self._waiting):
            future.cancel()

    def _wait(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        future = threads.wait_for(work, self._loop)
        self._waiting.add(future)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
        finally:
            self._waiting.discard(future)
