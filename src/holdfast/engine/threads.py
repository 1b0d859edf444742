"""Running `def` steps: each in a thread of its own, which can be interrupted.

A thread can't be killed from outside, but an exception can be raised in it, between two
instructions of Python code: a loop ends at once, a blocking call in C when it returns. A thread of
its own, rather than a pooled one, is what makes that safe: nothing else ever runs where the
exception is raised."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from holdfast.engine.failures import ended_by
from holdfast.engine.interpreter import note_end

log = logging.getLogger("holdfast.threads")

T = TypeVar("T")

_computing: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
_counting = threading.Lock()

STOP_GRACE = 1.0
"""How long an interrupted thread is waited for, in seconds, before it is left behind."""


def computing(loop: asyncio.AbstractEventLoop) -> int:
    """How many threads compute for this loop now: a loop that owns time must not move it
    meanwhile."""
    return _computing.get(loop, 0)


def _count(loop: asyncio.AbstractEventLoop, change: int) -> None:
    with _counting:
        _computing[loop] = _computing.get(loop, 0) + change


def wait_for(
    work: Callable[[], Coroutine[Any, Any, T]], loop: asyncio.AbstractEventLoop
) -> Future[T]:
    """Let the loop do something for the calling thread, which does not compute until it is
    answered."""

    async def answer() -> T:
        try:
            return await work()
        finally:
            _count(loop, 1)  # before the thread can know: no moment in which nobody seems to work

    future = asyncio.run_coroutine_threadsafe(answer(), loop)
    _count(loop, -1)
    return future


class Interrupted(BaseException):
    """Raised inside a `def` step whose time is over. Not an Exception, so that no handler swallows
    it by chance."""


async def call(
    function: Callable[[], Any], label: str, on_stop: Callable[[], None] = lambda: None
) -> Any:
    """Run `function` in a thread and await its result; being cancelled interrupts it, after
    `on_stop`."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    job = Job(lambda: context.run(function), label)

    def work() -> None:
        job.run()
        try:
            loop.call_soon_threadsafe(_deliver, done, job.result, job.error)
        except RuntimeError:  # the loop has closed: nobody waits any more
            pass
        _count(loop, -1)

    thread = threading.Thread(target=work, name=f"holdfast-step-{label}", daemon=True)
    _count(loop, 1)
    thread.start()
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        on_stop()
        job.interrupt(thread)
        await _wait_a_moment(done, label)
        raise


class Job:
    """One call, which can be interrupted until it has returned and not a moment longer."""

    def __init__(self, function: Callable[[], Any], step_name: str) -> None:
        self.step_name = step_name
        self.result: Any = None
        self.error: BaseException | None = None
        self._function = function
        self._lock = threading.Lock()
        self._finished = False

    def run(self) -> None:
        try:
            try:
                self.result = self._function()
            except BaseException as raised:
                self.error = raised
            with self._lock:
                self._finished = True
        except Interrupted as raised:  # it came after the call had returned
            self.error = raised
            self._finished = True
        note_end(self.step_name, time.thread_time())

    def interrupt(self, thread: threading.Thread) -> None:
        with self._lock:
            if not self._finished and thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread.ident), ctypes.py_object(Interrupted)
                )


def _deliver(done: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    elif isinstance(error, Exception) and not isinstance(error, StopIteration):
        done.set_exception(error)
    else:  # SystemExit and its like would end the worker, and a future takes no StopIteration
        done.set_exception(ended_by(error))


async def _wait_a_moment(done: asyncio.Future[Any], label: str) -> None:
    """A thread that ends at once is not left behind; one that does not, can't hold anybody up."""
    done.add_done_callback(lambda future: future.cancelled() or future.exception())
    await asyncio.wait([done], timeout=STOP_GRACE)
    if not done.done():
        log.warning(
            "step %s is stopped but its thread is still inside a blocking call; it can write "
            "nothing",
            label,
        )
