"""Many small questions, few calls: what is asked at the same time travels together.

Callers ask about one comment each, hundreds of them at once. The batcher collects what arrives
while the event loop is busy, looks up what has been answered before, and puts the rest into calls.
While all calls that the model takes at once are under way, questions wait, and the fuller the next
call becomes.

- Equal questions are asked once; whoever asks gets the answer.
- A question that the answer passes over is asked once more, alone. So is every question of a call
  that the model declines, finds too long or answers with nonsense: one comment does not spoil the
  others'.
- Any other error goes to everybody in the call. Who stops waiting leaves the others alone; when
  nobody waits any more the call is cancelled.

A batcher belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, cast

from holdfast.apps.report.llm.shared_usage import SharedContext
from holdfast.errors import HoldfastError
from holdfast.ports.context import Context
from holdfast.ports.language_model import Declined, Malformed, TooLong

P = TypeVar("P", bound=Hashable)
P_contra = TypeVar("P_contra", contravariant=True)
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One question that can share a call with others."""

    identity: str
    """Two items of the same identity are the same question."""
    body: dict[str, Any]
    """What is sent; the id is added when it is batched."""
    tokens: int
    affinity: str = ""
    """Items with the same word here are rather batched together."""
    alone: bool = False
    """Whether it must share its call with nobody."""


@dataclass(frozen=True, slots=True)
class BatchSize:
    """How much one call takes."""

    items: int
    tokens: int

    def callers_for(self, calls: int) -> int:
        """How many callers fill so many calls.

        More of them would keep calls fuller while others still store what they got. But then a
        crash would lose what was in more than those calls."""
        return calls * self.items


class BatchHandler(Protocol[P_contra, A_co]):
    """Who answers. A batch key is what the items of one call have in common: run, instructions,
    taxonomy."""

    async def recall(self, batch_key: P_contra, item: BatchItem, ctx: Context) -> A_co | None:
        """The answer from an earlier time."""
        ...

    async def ask(
        self, batch_key: P_contra, items: Sequence[BatchItem], ctx: Context
    ) -> Sequence[A_co | None]:
        """One call about all of them: their answers in their order, None for what was not
        answered."""
        ...


@dataclass(slots=True, eq=False)
class PendingItem(Generic[A]):
    """An item on its way, and everybody who waits for it. The first one's context pays."""

    batch_key: Hashable
    item: BatchItem
    ctx: Context
    alone: bool
    callers: list[asyncio.Future[A | None]] = field(default_factory=list)
    call: asyncio.Task[None] | None = None
    batch: Sequence[PendingItem[A]] = ()
    """Those that share its call."""

    @property
    def abandoned(self) -> bool:
        return all(caller.done() for caller in self.callers)

    def settle(self, answer: A | None) -> None:
        for caller in self.callers:
            if not caller.done():
                caller.set_result(answer)

    def fail(self, error: BaseException) -> None:
        """A fresh exception for every caller: a shared one would collect their tracebacks."""
        for caller in self.callers:
            if caller.done():
                continue
            if isinstance(error, asyncio.CancelledError):
                caller.cancel()
            else:
                caller.set_exception(_fresh(error))


class Batcher(Generic[P, A]):
    """Collects questions and asks them together."""

    def __init__(self, handler: BatchHandler[P, A], size: BatchSize, calls: int) -> None:
        self._handler = handler
        self._size = size
        self._most_calls = calls
        self._pending: dict[tuple[Hashable, str], PendingItem[A]] = {}
        self._arrived: list[PendingItem[A]] = []
        self._ready: list[PendingItem[A]] = []
        self._calls: set[asyncio.Task[None]] = set()
        self._lookups: set[asyncio.Task[None]] = set()
        self._collecting = False

    async def ask(self, batch_key: P, item: BatchItem, ctx: Context) -> A | None:
        """The answer to one question; None if the model gave none, asked twice."""
        pending = self._pending.get((batch_key, item.identity)) or self._enqueue(
            batch_key, item, ctx
        )
        caller = asyncio.get_running_loop().create_future()
        pending.callers.append(caller)
        try:
            return await caller
        except asyncio.CancelledError:
            self._abandon(pending)
            raise

    def _enqueue(self, batch_key: P, item: BatchItem, ctx: Context) -> PendingItem[A]:
        pending = PendingItem[A](
            batch_key, item, ctx, item.alone or item.tokens > self._size.tokens
        )
        self._pending[batch_key, item.identity] = pending
        self._arrived.append(pending)
        self._collect_soon()
        return pending

    def _abandon(self, pending: PendingItem[A]) -> None:
        if pending.abandoned:
            self._remove(pending)
            if pending.call is not None and all(other.abandoned for other in pending.batch):
                pending.call.cancel()

    def _remove(self, pending: PendingItem[A]) -> None:
        """From now on, whoever asks the same asks anew."""
        key = (pending.batch_key, pending.item.identity)
        if self._pending.get(key) is pending:
            del self._pending[key]

    def _settle(self, pending: PendingItem[A], answer: A | None) -> None:
        self._remove(pending)
        pending.settle(answer)

    def _fail(self, pending: PendingItem[A], error: BaseException) -> None:
        self._remove(pending)
        pending.fail(error)

    # --- collecting -------------------------------------------------------------------------------

    def _collect_soon(self) -> None:
        """Twice round the loop: by then, whoever was about to ask has asked."""
        if not self._collecting:
            self._collecting = True
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._collect)

    def _collect(self) -> None:
        self._collecting = False
        arrived, self._arrived = self._arrived, []
        _start(self._look_up(arrived), self._lookups)

    async def _look_up(self, arrived: list[PendingItem[A]]) -> None:
        answers = await asyncio.gather(
            *(self._recall(pending) for pending in arrived), return_exceptions=True
        )
        for pending, answer in zip(arrived, answers, strict=True):
            if isinstance(answer, BaseException):
                self._fail(pending, answer)
            elif answer is not None:
                self._settle(pending, answer)
            else:
                self._ready.append(pending)
        self._dispatch()

    async def _recall(self, pending: PendingItem[A]) -> A | None:
        return await self._handler.recall(cast(P, pending.batch_key), pending.item, pending.ctx)

    # --- calling ----------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        self._ready = [pending for pending in self._ready if not pending.abandoned]
        while self._ready and len(self._calls) < self._most_calls:
            batch = next_batch(self._ready, self._size)
            taken = set(map(id, batch))
            self._ready = [pending for pending in self._ready if id(pending) not in taken]
            call = _start(self._call(batch), self._calls)
            call.add_done_callback(lambda _: self._dispatch())
            for pending in batch:
                pending.call, pending.batch = call, batch

    async def _call(self, batch: list[PendingItem[A]]) -> None:
        try:
            self._deliver(batch, await self._answers(batch))
        except (Declined, Malformed, TooLong) as error:
            self._ask_alone(batch, error)
        except BaseException as error:
            for pending in batch:
                self._fail(pending, error)
            if not isinstance(error, Exception):
                raise

    async def _answers(self, batch: list[PendingItem[A]]) -> Sequence[A | None]:
        ctx = SharedContext(
            [pending.ctx for pending in batch], [pending.item.tokens for pending in batch]
        )
        items = [pending.item for pending in batch]
        return await self._handler.ask(cast(P, batch[0].batch_key), items, cast(Context, ctx))

    def _deliver(self, batch: list[PendingItem[A]], answers: Sequence[A | None]) -> None:
        for pending, answer in zip(batch, answers, strict=True):
            if answer is not None or pending.alone:
                self._settle(pending, answer)
            else:
                self._again(pending)

    def _ask_alone(self, batch: list[PendingItem[A]], error: HoldfastError) -> None:
        for pending in batch:
            if pending.alone:
                self._fail(pending, error)
            else:
                self._again(pending)

    def _again(self, pending: PendingItem[A]) -> None:
        pending.alone, pending.call, pending.batch = True, None, ()
        self._ready.append(pending)


def next_batch(ready: Sequence[PendingItem[Any]], size: BatchSize) -> list[PendingItem[Any]]:
    """The next call: whoever has waited longest, those nearest to it, and others with its batch
    key while there is room."""
    first = ready[0]
    if first.alone:
        return [first]
    others = [
        pending
        for pending in ready[1:]
        if pending.batch_key == first.batch_key and not pending.alone
    ]
    others.sort(
        key=lambda pending: (pending.item.affinity != first.item.affinity, pending.item.affinity)
    )
    batch, room = [first], size.tokens - first.item.tokens
    for pending in others:
        if len(batch) == size.items:
            break
        if pending.item.tokens <= room:
            batch.append(pending)
            room -= pending.item.tokens
    return batch


def _fresh(error: BaseException) -> BaseException:
    """The same exception anew, whatever its constructor wants."""
    fresh = type(error).__new__(type(error), *error.args)
    vars(fresh).update(vars(error))
    return fresh


def _start(coroutine: Any, tasks: set[asyncio.Task[None]]) -> asyncio.Task[None]:
    task = asyncio.get_running_loop().create_task(coroutine)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task
