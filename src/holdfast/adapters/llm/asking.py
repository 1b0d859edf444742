"""Ask the model, or repeat what it said before: the same question, word for word, is paid once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from holdfast.adapters.llm.answers import Answers
from holdfast.adapters.llm.model import Model, Question
from holdfast.model.report.brief import Brief
from holdfast.ports.context import Context

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Asker:
    """A model, and the answers that it has given."""

    model: Model
    answers: Answers

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
        if not brief.fresh and (found := await self.recall(ctx.tenant, parts, answer)) is not None:
            return found
        given = await self.model.ask(question, answer, ctx, budget=brief.budget, check=check)
        await self.answers.put(ctx.tenant, parts, given.model_dump_json())
        return given

    async def recall(self, tenant: str, parts: tuple[str, ...], answer: type[T]) -> T | None:
        """What was answered before, if it still has the form that we want."""
        text = await self.answers.get(tenant, parts)
        try:
            return None if text is None else answer.model_validate_json(text)
        except ValidationError:
            return None


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
