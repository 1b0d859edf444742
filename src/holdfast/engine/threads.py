"""Running `def` steps: each in a thread of its own, which can be told to stop.

A thread can't be killed from outside, but an exception can be raised in it. It strikes between two instructions of
Python code: a loop ends at once, a blocking call in C when it returns. A thread of its own, rather than a pooled one,
is what makes that safe: nothing else ever runs where the exception strikes.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import logging
import threading
from collections.abc import Callable
from typing import Any

log = logging.getLogger("holdfast.threads")

STOP_GRACE = 1.0
"""How long a told-to-stop thread is waited for before it is left behind."""


class Interrupted(BaseException):
    """Raised inside a `def` step whose time is over. Not an Exception, so that no handler swallows it by chance."""


async def call(function: Callable[[], Any], label: str) -> Any:
    """Run `function` in a thread and await its result; being cancelled interrupts it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result, error = context.run(function), None
        except BaseException as raised:
            result, error = None, raised
        try:
            loop.call_soon_threadsafe(_deliver, done, result, error)
        except RuntimeError:  # the loop has closed: nobody waits any more
            pass

    thread = threading.Thread(target=work, name=f"holdfast-step-{label}", daemon=True)
    thread.start()
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        await _interrupt(thread, done, label)
        raise


def _deliver(done: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    elif isinstance(error, Interrupted | StopIteration):
        done.set_exception(RuntimeError(f"the step was stopped by {type(error).__name__}"))
    else:
        done.set_exception(error)


async def _interrupt(thread: threading.Thread, done: asyncio.Future[Any], label: str) -> None:
    done.add_done_callback(lambda future: future.cancelled() or future.exception())
    if thread.ident is not None and thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Interrupted))
    await asyncio.wait([done], timeout=STOP_GRACE)
    if not done.done():
        log.warning("step %s is stopped but its thread is still inside a blocking call; it can write nothing", label)
