"""Notices when the interpreter was blocked: C code held its lock, and no thread of this process
could run, not even the one that renews leases.

Whoever looks at short intervals and finds that a long time has passed was kept from running. If the
process used the processor meanwhile it was not paused but blocked. The cause is in the thread that
used the processor most: the step that ended there first when the block was over, or the one that is
still on its stack."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from types import FrameType
from typing import NamedTuple

from holdfast.model.lease_losses import Blocked

SHORTEST = 1.0
"""Gaps below so many seconds are those of a busy machine."""

BUSY = 0.1
"""The part of the gap for which the process must have used the processor. A process that is paused
uses none; on a busy machine one that is blocked may get a small share."""


class EndedStep(NamedTuple):
    step: str
    at: float
    thread: int
    processor_time: float
    """Of its thread, if that has ended as well."""


_ended: deque[EndedStep] = deque(maxlen=512)
"""The latest, of all threads: a step may be over before anybody can look which one it was."""


def note_end(step: str, processor_time: float = 0.0) -> None:
    """A step or item has ended in this thread."""
    _ended.append(EndedStep(step, time.monotonic(), threading.get_ident(), processor_time))


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
        due = self.looked + interval
        before, self._threads = self._threads, _processor_times()
        self.looked, self._processor = now, processor
        if gap < SHORTEST or used < gap * BUSY:
            return None
        used_by = {thread: at - before.get(thread, 0.0) for thread, at in self._threads.items()}
        return Blocked(gap, _busiest_step(used_by, due))


def _busiest_step(used_by: dict[int, float], due: float) -> str | None:
    """By the processor time that each thread used. At `due` the interpreter was blocked already."""
    suspects: dict[int, tuple[float, str]] = {}
    for ended in list(_ended):
        if ended.at > due:
            used = used_by.get(ended.thread, ended.processor_time)
            suspects.setdefault(ended.thread, (used, ended.step))
    frames = sys._current_frames()
    for thread, used in used_by.items():
        if thread not in suspects and (step := _step_in(frames.get(thread))) is not None:
            suspects[thread] = used, step
    return max(suspects.values())[1] if suspects else None


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
        if isinstance(step := getattr(caller, "step_name", None), str):
            return step
        frame = frame.f_back
    return None
