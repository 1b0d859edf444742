"""Ask the model, or repeat what it said before: the same question, word for word, is paid once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from holdfast.adapters.llm.answers import Answers
from holdfast.adapters.llm.model import Model, Question
from holdfast.errors import StoreUnavailable
from holdfast.model.report.brief import Brief
from holdfast.ports.context import Context

T = TypeVar("T", bound=BaseModel)
A = TypeVar("A")
R = TypeVar("R")


WRITES = 4
"""Answers that are put away at the same time: behind the calls, not in their way."""


class Asker:
    """A model, and the answers that it has given.

    Answers are put away beside the work; whoever asks in the meantime finds them here. A crash
    loses those that are not, and they are paid again: so a call has its place among those in flight
    until its answer is put away. Belongs to one event loop."""

    def __init__(self, model: Model, answers: Answers) -> None:
        self.model = model
        self.answers = answers
        self._unwritten: dict[tuple[str, tuple[str, ...]], str] = {}
        self._writing: set[asyncio.Task[None]] = set()
        self._writers = asyncio.Semaphore(WRITES)
        self._places = asyncio.Semaphore(model.address.in_flight)

    async def ask(
        self,
        question: Question,
        answer: type[T],
        brief: Brief,
        ctx: Context,
        *,
        check: Callable[[T], str | None] | None = None,
    ) -> T:
        """The answer, from the cache unless the brief wants fresh ones."""
        parts = (self.model.name, question.task, question.system, question.text)
        if (
            not brief.fresh
            and (found := await self.recall(ctx.tenant, parts, TypeAdapter(answer))) is not None
        ):
            return found
        async with self.place() as keep:
            given = await self.model.ask(question, answer, ctx, budget=brief.budget, check=check)
            keep(ctx.tenant, parts, given.model_dump_json())
        return given

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Callable[[str, tuple[str, ...], str], None]]:
        """A place for one call. What is kept of its answer is put away soon, and then the place is
        free."""
        await self._places.acquire()
        writes: list[asyncio.Task[None]] = []

        def keep(tenant: str, parts: tuple[str, ...], text: str) -> None:
            writes.append(self._remember(tenant, parts, text))

        try:
            yield keep
        finally:
            put_away = asyncio.gather(*writes, return_exceptions=True)
            put_away.add_done_callback(lambda _: self._places.release())

    async def recall(self, tenant: str, parts: tuple[str, ...], form: TypeAdapter[A]) -> A | None:
        """What was answered before, if it still has the form that we want."""
        text = self._unwritten.get((tenant, parts)) or await self.answers.get(tenant, parts)
        try:
            return None if text is None else form.validate_json(text)
        except ValidationError:
            return None

    def _remember(self, tenant: str, parts: tuple[str, ...], text: str) -> asyncio.Task[None]:
        self._unwritten[tenant, parts] = text
        task = asyncio.get_running_loop().create_task(self._write(tenant, parts, text))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return task

    async def _write(self, tenant: str, parts: tuple[str, ...], text: str) -> None:
        try:
            async with self._writers:
                await self.answers.put(tenant, parts, text)
        except StoreUnavailable:
            pass  # the run goes on without this entry; what it needs itself is in its checkpoints
        finally:
            self._unwritten.pop((tenant, parts), None)

    async def written(self) -> None:
        """Wait until everything is put away."""
        while self._writing:
            await asyncio.wait(self._writing)


async def together(calls: Iterable[Coroutine[Any, Any, R]]) -> list[R]:
    """All results in order. When one fails the others are stopped, and its error is raised."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
