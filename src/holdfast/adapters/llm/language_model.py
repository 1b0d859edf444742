"""The port `LanguageModel`: a client for one model, and the cache of the answers that it has given.

Answers are written to the cache beside the work; whoever asks in the meantime finds them here. A
crash loses those that are not written yet, and they are paid again: so a call counts among those in
flight until its answer is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from holdfast.adapters.llm.answer_cache import AnswerCache
from holdfast.adapters.llm.answer_types import Mismatch, answer_type, encode
from holdfast.adapters.llm.client import ModelClient
from holdfast.adapters.llm.schema import schema_of
from holdfast.errors import StoreUnavailable
from holdfast.ports.context import Context
from holdfast.ports.language_model import CacheKey, Question

T = TypeVar("T")

WRITES = 4
"""Answers that are written at the same time: behind the calls, not in their way."""

_schema_text = msgspec.json.Encoder(order="deterministic").encode


class HttpLanguageModel:
    """A `LanguageModel` over HTTP. Belongs to one event loop."""

    def __init__(self, client: ModelClient, cache: AnswerCache) -> None:
        self.name = client.name
        self.in_flight = client.address.in_flight
        self._client = client
        self._cache = cache
        self._unwritten: dict[tuple[str, CacheKey], str] = {}
        self._writes: set[asyncio.Task[None]] = set()
        self._writers = asyncio.Semaphore(WRITES)
        self._slots = asyncio.Semaphore(self.in_flight)

    async def ask(
        self,
        question: Question,
        answer: type[T],
        ctx: Context,
        *,
        budget: float | None = None,
        fresh: bool = False,
        check: Callable[[T], str | None] | None = None,
        cache_parts: Callable[[T], Iterable[tuple[CacheKey, Any]]] | None = None,
    ) -> T:
        key = self._cache_key(question, answer)
        if not fresh and cache_parts is None:
            cached = await self.recall(key, answer, ctx)
            if cached is not None:
                return cached
        async with self._slot() as write:
            given = await self._client.ask(question, answer, ctx, budget=budget, check=check)
            for part_key, part in cache_parts(given) if cache_parts else [(key, given)]:
                write(ctx.tenant, part_key, encode(part))
        return given

    async def recall(self, key: CacheKey, kind: type[T], ctx: Context) -> T | None:
        text = await self._cached(ctx.tenant, key)
        try:
            return None if text is None else answer_type(kind).decode(text)
        except Mismatch:
            return None

    async def remember(self, key: CacheKey, value: Any, ctx: Context) -> None:
        await self._cache.put(ctx.tenant, key, encode(value))

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        return self._client.price(input_tokens, output_tokens)

    def input_tokens(self, question: Question, answer: type[Any]) -> int:
        return self._client.input_tokens(question, answer)

    def check_configuration(self) -> None:
        self._client.check_key()

    async def aclose(self) -> None:
        """Write what is not written yet, then let go of the connections."""
        while self._writes:
            await asyncio.wait(self._writes)
        await self._client.aclose()

    # --- the cache --------------------------------------------------------------------------------

    def _cache_key(self, question: Question, answer: type[Any]) -> CacheKey:
        """The schema is part of it: another shape of answer is another question."""
        schema = _schema_text(schema_of(answer, question.task)).decode()
        return self.name, question.task, question.system, question.text, schema

    async def _cached(self, tenant: str, key: CacheKey) -> str | None:
        return self._unwritten.get((tenant, key)) or await self._cache.get(tenant, key)

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[Callable[[str, CacheKey, str], None]]:
        """Room for one call. It is free again when everything that the call gave is written."""
        await self._slots.acquire()
        writes: list[asyncio.Task[None]] = []

        def write(tenant: str, key: CacheKey, text: str) -> None:
            writes.append(self._start_writing(tenant, key, text))

        try:
            yield write
        finally:
            written = asyncio.gather(*writes, return_exceptions=True)
            written.add_done_callback(lambda _: self._slots.release())

    def _start_writing(self, tenant: str, key: CacheKey, text: str) -> asyncio.Task[None]:
        self._unwritten[tenant, key] = text
        task = asyncio.get_running_loop().create_task(self._write(tenant, key, text))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return task

    async def _write(self, tenant: str, key: CacheKey, text: str) -> None:
        try:
            async with self._writers:
                await self._cache.put(tenant, key, text)
        except StoreUnavailable:
            pass  # the run goes on without this entry; what it needs itself is in its checkpoints
        finally:
            self._unwritten.pop((tenant, key), None)
