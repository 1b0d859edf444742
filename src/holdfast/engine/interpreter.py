"""Notices when the interpreter was blocked: C code held its lock, and no thread of this process
could run, not even the one that renews leases.

Whoever looks at short intervals and finds that a long time has passed was kept from running. If the
process used the processor meanwhile it was not paused but blocked. Of the threads that are in a
step then, the one that used the processor most is the culprit: its stack tells which step."""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType

from holdfast.engine.threads import Job
from holdfast.model.lease_losses import Blocked

SHORTEST = 1.0
"""Gaps below so many seconds are those of a busy machine."""

BUSY = 0.1
"""The part of the gap for which the process must have used the processor. A process that is paused
uses none; on a busy machine one that is blocked may get a small share."""


class InterpreterWatch:
    """Call `look` often, from one thread."""

    def __init__(self) -> None:
        self.looked = time.monotonic()
        """When it looked last."""
        self._processor = time.process_time()
        self._threads: dict[int, float] = {}

    def look(self, interval: float) -> Blocked | None:
        """Whether the interpreter was blocked since the last look, which was to be `interval`
        seconds ago at most."""
        now, processor = time.monotonic(), time.process_time()
        gap, used = now - self.looked - interval, processor - self._processor
        before, self._threads = self._threads, _processor_times()
        self.looked, self._processor = now, processor
        if gap < SHORTEST or used < gap * BUSY:
            return None
        used_by = {thread: at - before.get(thread, 0.0) for thread, at in self._threads.items()}
        return Blocked(gap, _step_of_busiest(used_by))


def _step_of_busiest(used_by: dict[int, float]) -> str | None:
    frames = sys._current_frames()
    busiest_first = sorted(used_by, key=lambda thread: used_by[thread], reverse=True)
    steps = (_step_in(frames.get(thread)) for thread in busiest_first)
    return next((step for step in steps if step is not None), None)


def _processor_times() -> dict[int, float]:
    """The processor time of each thread but our own."""
    times: dict[int, float] = {}
    for thread in threading.enumerate():
        if thread.ident is None or thread is threading.current_thread():
            continue
        try:
            times[thread.ident] = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        except (OSError, AttributeError):  # it has just ended, or the system can't tell
            continue
    return times


def _step_in(frame: FrameType | None) -> str | None:
    """The step that a thread is in: of the innermost durable call or job on its stack."""
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, Job):
            return caller.label
        if isinstance(step := getattr(caller, "step_name", None), str):
            return step
        frame = frame.f_back
    return None
