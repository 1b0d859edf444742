"""Many small questions, few calls: what is asked at the same time travels together.

Callers ask about one comment each, hundreds of them at once. The packer collects what arrives while
the event loop is busy, looks up what has been answered before, and puts the rest into calls. While
all calls that the model takes at once are under way, questions wait, and the fuller the next call
becomes.

- Equal questions are asked once; whoever asks gets the answer.
- A question that the answer passes over is asked once more, alone. So is every question of a call
  that the model
  declines, finds too long or answers with nonsense: one comment does not spoil the others'.
- Any other error goes to everybody in the call. Who stops waiting leaves the others alone; when
  nobody waits any more
  the call is cancelled.

A packer belongs to one event loop.
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
    """Two pieces of the same identity are the same question."""
    body: dict[str, Any]
    """What is sent; the id is added when it is packed."""
    tokens: int
    near: str = ""
    """Pieces with the same word here are rather packed together."""
    alone: bool = False
    """Whether it must share its call with nobody."""


@dataclass(frozen=True, slots=True)
class BatchSize:
    """How much one call takes."""

    pieces: int
    tokens: int

    def to_fill(self, calls: int) -> int:
        """How many callers fill so many calls.

        More of them would keep calls fuller while others still put away what they got. But then a
        crash would lose what was in more than those calls."""
        return calls * self.pieces


class BatchHandler(Protocol[P_contra, A_co]):
    """Who answers. A pile is what the pieces of one call have in common: run, instructions,
    taxonomy."""

    async def recall(self, pile: P_contra, piece: BatchItem, ctx: Context) -> A_co | None:
        """The answer from an earlier time."""
        ...

    async def ask(
        self, pile: P_contra, pieces: Sequence[BatchItem], ctx: Context
    ) -> Sequence[A_co | None]:
        """One call about all of them: their answers in their order, None for what was not
        answered."""
        ...


@dataclass(slots=True, eq=False)
class PendingItem(Generic[A]):
    """A piece on its way, and everybody who waits for it. The first one's context pays."""

    pile: Hashable
    piece: BatchItem
    ctx: Context
    alone: bool
    callers: list[asyncio.Future[A | None]] = field(default_factory=list)
    call: asyncio.Task[None] | None = None
    pack: Sequence[PendingItem[A]] = ()
    """Those that share its call."""

    @property
    def deserted(self) -> bool:
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

    def __init__(self, service: BatchHandler[P, A], size: BatchSize, calls: int) -> None:
        self._service = service
        self._size = size
        self._most_calls = calls
        self._waiting: dict[tuple[Hashable, str], PendingItem[A]] = {}
        self._arrived: list[PendingItem[A]] = []
        self._ready: list[PendingItem[A]] = []
        self._calls: set[asyncio.Task[None]] = set()
        self._lookups: set[asyncio.Task[None]] = set()
        self._collecting = False

    async def ask(self, pile: P, piece: BatchItem, ctx: Context) -> A | None:
        """The answer to one question; None if the model gave none, asked twice."""
        waiting = self._waiting.get((pile, piece.identity)) or self._arrive(pile, piece, ctx)
        caller = asyncio.get_running_loop().create_future()
        waiting.callers.append(caller)
        try:
            return await caller
        except asyncio.CancelledError:
            self._leave(waiting)
            raise

    def _arrive(self, pile: P, piece: BatchItem, ctx: Context) -> PendingItem[A]:
        waiting = PendingItem[A](pile, piece, ctx, piece.alone or piece.tokens > self._size.tokens)
        self._waiting[pile, piece.identity] = waiting
        self._arrived.append(waiting)
        self._collect_soon()
        return waiting

    def _leave(self, waiting: PendingItem[A]) -> None:
        if waiting.deserted:
            self._remove(waiting)
            if waiting.call is not None and all(other.deserted for other in waiting.pack):
                waiting.call.cancel()

    def _remove(self, waiting: PendingItem[A]) -> None:
        """From now on, whoever asks the same asks anew."""
        key = (waiting.pile, waiting.piece.identity)
        if self._waiting.get(key) is waiting:
            del self._waiting[key]

    def _settle(self, waiting: PendingItem[A], answer: A | None) -> None:
        self._remove(waiting)
        waiting.settle(answer)

    def _fail(self, waiting: PendingItem[A], error: BaseException) -> None:
        self._remove(waiting)
        waiting.fail(error)

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
            *(self._recall(waiting) for waiting in arrived), return_exceptions=True
        )
        for waiting, answer in zip(arrived, answers, strict=True):
            if isinstance(answer, BaseException):
                self._fail(waiting, answer)
            elif answer is not None:
                self._settle(waiting, answer)
            else:
                self._ready.append(waiting)
        self._dispatch()

    async def _recall(self, waiting: PendingItem[A]) -> A | None:
        return await self._service.recall(cast(P, waiting.pile), waiting.piece, waiting.ctx)

    # --- calling ----------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        self._ready = [waiting for waiting in self._ready if not waiting.deserted]
        while self._ready and len(self._calls) < self._most_calls:
            pack = packed(self._ready, self._size)
            taken = set(map(id, pack))
            self._ready = [waiting for waiting in self._ready if id(waiting) not in taken]
            call = _start(self._call(pack), self._calls)
            call.add_done_callback(lambda _: self._dispatch())
            for waiting in pack:
                waiting.call, waiting.pack = call, pack

    async def _call(self, pack: list[PendingItem[A]]) -> None:
        try:
            self._hand_out(pack, await self._answers(pack))
        except (Declined, Malformed, TooLong) as error:
            self._ask_alone(pack, error)
        except BaseException as error:
            for waiting in pack:
                self._fail(waiting, error)
            if not isinstance(error, Exception):
                raise

    async def _answers(self, pack: list[PendingItem[A]]) -> Sequence[A | None]:
        ctx = SharedContext(
            [waiting.ctx for waiting in pack], [waiting.piece.tokens for waiting in pack]
        )
        pieces = [waiting.piece for waiting in pack]
        return await self._service.ask(cast(P, pack[0].pile), pieces, cast(Context, ctx))

    def _hand_out(self, pack: list[PendingItem[A]], answers: Sequence[A | None]) -> None:
        for waiting, answer in zip(pack, answers, strict=True):
            if answer is not None or waiting.alone:
                self._settle(waiting, answer)
            else:
                self._again(waiting)

    def _ask_alone(self, pack: list[PendingItem[A]], error: HoldfastError) -> None:
        for waiting in pack:
            if waiting.alone:
                self._fail(waiting, error)
            else:
                self._again(waiting)

    def _again(self, waiting: PendingItem[A]) -> None:
        waiting.alone, waiting.call, waiting.pack = True, None, ()
        self._ready.append(waiting)


def packed(ready: Sequence[PendingItem[Any]], size: BatchSize) -> list[PendingItem[Any]]:
    """The next call: whoever has waited longest, those nearest to it, and others of its pile while
    there is room."""
    first = ready[0]
    if first.alone:
        return [first]
    others = [waiting for waiting in ready[1:] if waiting.pile == first.pile and not waiting.alone]
    others.sort(key=lambda waiting: (waiting.piece.near != first.piece.near, waiting.piece.near))
    pack, room = [first], size.tokens - first.piece.tokens
    for waiting in others:
        if len(pack) == size.pieces:
            break
        if waiting.piece.tokens <= room:
            pack.append(waiting)
            room -= waiting.piece.tokens
    return pack


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
