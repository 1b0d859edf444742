"""Ctrl-C and SIGTERM: the first one asks to stop, the second one ends the process at once. The
process is gone `EXIT_TIMEOUT` seconds after the worker's grace at the latest.

Ending at once is safe: whatever was acknowledged is durable, leases that nobody renews come to an
end, and what a step still does is refused by the fence.

Signals are received by a thread of their own, because Python runs handlers in the main thread,
which a step may block: `signal.set_wakeup_fd` has them written to a socket by C code. Only C code
that holds the interpreter lock can keep that thread from running. If it takes the lock after the
signal, a timer of C code still ends the process in time; if it had it before, the time counts from
when it lets go."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal
import socket
import sys
import threading
import time
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from holdfast.engine.worker import STOP_TIMEOUT

if TYPE_CHECKING:
    from holdfast.app import Holdfast

WATCHED = (signal.SIGINT, signal.SIGTERM)

EXIT_TIMEOUT = 3.0
"""After the grace, in seconds: then the process is gone, whatever its steps and the store do."""

BLOCKED_AFTER = 1.9
"""After the grace, in seconds, runs are handed over from here if the event loop is blocked."""

EXIT_MARGIN = 0.15
"""What ending the process takes, in seconds."""


class StopSignal:
    """`async with StopSignal(holdfast) as stop: await stop.wait()`; `stop.code` is the exit code
    when not everything could be handed over."""

    def __init__(self, holdfast: Holdfast) -> None:
        self.received: int | None = None
        self._holdfast = holdfast
        self._grace = holdfast.options.worker.grace
        self._event = asyncio.Event()
        self._before: dict[int, object] = {}

    @property
    def code(self) -> int:
        return 128 + (self.received or 0)

    @property
    def limit(self) -> float:
        """Seconds within which everything has to be closed after the signal."""
        return self._grace + STOP_TIMEOUT + EXIT_MARGIN

    async def wait(self) -> None:
        await self._event.wait()

    def request(self) -> None:
        """Stop as if SIGTERM had come: for a worker that can't work any more."""
        self._writer.send(bytes([signal.SIGTERM]))

    async def __aenter__(self) -> StopSignal:
        self._loop = asyncio.get_running_loop()
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        for number in WATCHED:
            self._before[number] = signal.signal(number, _received_by_the_thread)
        self._wakeup_before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._watch, name="holdfast-signals", daemon=True).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._writer.close()  # after a signal the thread goes on: leaving may hang as well

    # --- in the thread ----------------------------------------------------------------------------

    def _watch(self) -> None:
        number = self._next_signal(None)
        if number is None:
            return
        begun = time.monotonic()
        self.received = number
        self._end_by_force_after(self._grace + EXIT_TIMEOUT)
        self._notify_loop(self._event.set)
        self._pause_until(begun + self._grace + BLOCKED_AFTER)
        if self._is_blocked():
            self._hand_over()
        self._pause_until(begun + self._grace + EXIT_TIMEOUT - EXIT_MARGIN)
        _exit(self.code, "not everything could be handed over; it goes on when its leases end")

    def _next_signal(self, timeout: float | None) -> int | None:
        """The next signal that counts; None when there is none in time, or nobody waits for one
        any more."""
        self._reader.settimeout(timeout)
        try:
            while received := self._reader.recv(1):
                if received[0] in WATCHED:
                    return received[0]
        except TimeoutError:
            pass
        return None

    def _pause_until(self, moment: float) -> None:
        while (left := moment - time.monotonic()) > 0:
            if self._next_signal(left) is not None:
                _exit(self.code, "stopped at once; leases end by themselves")
            if self._writer.fileno() < 0:  # closed: no further signal comes this way
                time.sleep(max(0.0, moment - time.monotonic()))

    def _notify_loop(self, callback: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)  # type: ignore[arg-type]
        except RuntimeError:
            pass  # it is closed: the process is about to end

    def _is_blocked(self) -> bool:
        """Whether the event loop does not come round: a step blocks it."""
        if self._loop.is_closed():
            return False
        turned = threading.Event()
        self._notify_loop(turned.set)
        return not turned.wait(EXIT_MARGIN)

    def _hand_over(self) -> NoReturn:
        worker = self._holdfast.worker
        try:
            if worker is not None:
                worker.hand_over_from_outside(EXIT_TIMEOUT - BLOCKED_AFTER - 3 * EXIT_MARGIN)
        except Exception as error:
            _exit(self.code, f"its runs could not be handed over: {type(error).__name__}: {error}")
        _exit(0, "a step blocks the event loop; its runs were handed over")

    def _end_by_force_after(self, seconds: float) -> None:
        """Should something hold the interpreter lock, or the lock of a log: C code ends the
        process."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)


def _received_by_the_thread(number: int, frame: FrameType | None) -> None:
    """Python writes a signal to the wake-up socket only if it has a handler."""


def leave(code: int) -> NoReturn:
    """End the process with everything that was said written."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _exit(code: int, message: str) -> NoReturn:
    """End the process now. The message bypasses files and logs, whose locks somebody may hold."""
    os.write(2, f"holdfast: {message}\n".encode())
    os._exit(code)
