"""A world in one thread: processes, time and chance, all decided by a seed.

Each simulated process is an event loop of its own. The world runs one callback of one process at a
time, chosen at random, and moves time only when no process has anything to do. So a process can be
killed or paused between any two callbacks, exactly as `kill -9` and SIGSTOP would, and the same
seed gives the same story."""

from __future__ import annotations

import asyncio
import heapq
import random
import time
from asyncio import events
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from holdfast.engine import threads
from holdfast.testing.clock import ManualClock

T = TypeVar("T")

CANCEL_ROUNDS = 50
BUSY_LIMIT = 100_000
"""Callbacks within one moment: more than real work needs, far less than a busy loop takes."""

THREAD_TIMEOUT = 10.0
"""Real seconds to wait for a thread that computes, before it is called stuck."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop that does not run by itself and reads its time from the world's clock."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._world_clock = clock

    def time(self) -> float:
        return self._world_clock.monotonic()

    def run_in_executor(
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:  # type: ignore[override]
        """Blocking calls are made on the spot: a simulation has one thread."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _write_to_self(self) -> None:
        """No loop waits in a selector here, so there is nothing to wake."""

    def next_due(self) -> float | None:
        """When the next timer fires: None if there is none."""
        while self._scheduled and self._scheduled[0]._cancelled:  # type: ignore[attr-defined]
            heapq.heappop(self._scheduled)._scheduled = False  # type: ignore[attr-defined]
        return self._scheduled[0].when() if self._scheduled else None  # type: ignore[attr-defined]

    def has_work(self) -> bool:
        while (due := self.next_due()) is not None and due <= self.time():
            handle = heapq.heappop(self._scheduled)  # type: ignore[attr-defined]
            handle._scheduled = False
            self._ready.append(handle)  # type: ignore[attr-defined]
        return bool(self._ready)  # type: ignore[attr-defined]

    def run_one(self) -> None:
        handle = self._ready.popleft()  # type: ignore[attr-defined]
        if handle._cancelled:
            return
        before = events._get_running_loop()
        events._set_running_loop(self)
        try:
            handle._run()
        finally:
            events._set_running_loop(before)


class Process:
    """One simulated operating-system process."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.alive = True
        self.paused_until = 0.0
        self.errors: list[BaseException] = []
        self.loop = VirtualLoop(world.clock)
        self.loop.set_exception_handler(self._record_error)
        self._world = world

    def start(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return self.loop.create_task(coroutine)

    def kill(self) -> None:
        """Stop it between two callbacks, for good."""
        self.alive = False

    def pause(self, seconds: float) -> None:
        """Stop the process for a while, as SIGSTOP and SIGCONT do; it keeps everything it holds."""
        self.paused_until = self._world.clock.monotonic() + seconds

    @property
    def running(self) -> bool:
        return self.alive and self._world.clock.monotonic() >= self.paused_until

    def end_tasks(self) -> None:
        """End what a finished story left behind, without letting it write: the process is dead to
        all boundaries."""
        self.alive = False
        if self.loop.is_closed():
            return
        for _ in range(CANCEL_ROUNDS):
            tasks = asyncio.all_tasks(self.loop)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            while self.loop.has_work():
                self.loop.run_one()
        self.loop.close()

    def _record_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self.errors.append(error)


class World:
    """Processes that share a clock. `run` executes until the given work is done."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.clock = ManualClock()
        self.random = random.Random(seed)
        self.processes: list[Process] = []
        self.steps = 0
        self._moment, self._steps_before = 0.0, 0
        random.seed(seed)

    def process(self, name: str) -> Process:
        process = Process(self, name)
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in self.processes:
            process.end_tasks()

    def run(self, work: Coroutine[Any, Any, T], process: Process, *, within: float = 86_400.0) -> T:
        """The result of `work` in a process; AssertionError when `within` virtual seconds do not
        suffice."""
        task = process.start(work)
        self.run_until(task.done, within=within)
        return task.result()

    def run_until(self, condition: Callable[[], bool], *, within: float = 86_400.0) -> None:
        deadline = self.clock.monotonic() + within
        while not condition():
            if self.clock.monotonic() > deadline:
                raise AssertionError(
                    f"seed {self.seed}: not done after {within:g} s of the world's time"
                )
            if not self.step():
                raise AssertionError(
                    f"seed {self.seed}: nobody has anything left to do, and it is not done"
                )

    def run_for(self, seconds: float) -> None:
        """Let time pass, with everything that happens in it."""
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end and self.step(limit=end):
            pass
        self.clock.advance_to(end)

    def step(self, limit: float | None = None) -> bool:
        """One callback of one process, or a jump to the next moment at which something happens."""
        self._count_step()
        ready = [p for p in self.processes if p.running and p.loop.has_work()]
        if ready:
            self.random.choice(ready).loop.run_one()
            return True
        if any(p.running and threads.computing(p.loop) for p in self.processes):
            self._wait_for_threads()
            return True
        moment = self._next_moment()
        if moment is None:
            return False
        if limit is not None:
            moment = min(moment, limit)
        self.clock.advance_to(moment)
        return True

    def _count_step(self) -> None:
        self.steps += 1
        moment = self.clock.monotonic()
        if moment != self._moment:
            self._moment, self._steps_before = moment, self.steps
        elif self.steps - self._steps_before > BUSY_LIMIT:
            raise AssertionError(
                f"seed {self.seed}: somebody spins: {BUSY_LIMIT} callbacks and no time passed"
            )

    def _next_moment(self) -> float | None:
        now = self.clock.monotonic()
        moments = [p.paused_until for p in self.processes if p.alive and p.paused_until > now]
        moments += [
            due for p in self.processes if p.running and (due := p.loop.next_due()) is not None
        ]
        return min(moments, default=None)

    def _wait_for_threads(self) -> None:
        """A `def` step computes in a real thread: give it real time, and no virtual time."""
        deadline = time.monotonic() + THREAD_TIMEOUT
        while time.monotonic() < deadline:
            if any(p.running and p.loop.has_work() for p in self.processes):
                return
            time.sleep(0.0002)
        raise AssertionError(
            f"seed {self.seed}: a def step computes for more than {THREAD_TIMEOUT:g} real seconds"
        )


async def forever() -> Any:
    """What a killed process waits for."""
    return await asyncio.get_running_loop().create_future()


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits, from outside of any loop."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise AssertionError("it had to wait")
