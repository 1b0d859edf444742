"""A fake server, a model that asks it, and a bill: over a real socket, or in virtual time without
one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from pydantic import BaseModel

from holdfast.adapters.llm.address import parse
from holdfast.adapters.llm.client import ModelClient
from holdfast.model.usage import Usage
from holdfast.ports.language_model import Question
from holdfast.testing.fakellm import FakeLLM, Fixed
from holdfast.testing.world import World

KEY = "sk-canary-4f1d9c2b7a"
QUESTION = Question("Find the claims.", "I like the park. <c id=7>", "claims")
GOOD = {"claims": [{"id": "c1", "text": "Parks are nice", "weight": 2}], "note": None}
BRAIN = Fixed(claims=GOOD)


class Claim(BaseModel):
    id: str
    text: str
    weight: int


class Claims(BaseModel):
    claims: list[Claim]
    note: str | None = None


class FakeContext:
    """As much of a context as a model uses."""

    def __init__(self, run: str = "run-1") -> None:
        self.run_id = run
        self.tenant = "acme"
        self.spent = Usage()

    def usage(self, **counted: Any) -> None:
        self.spent.count(
            counted.get("input_tokens", 0),
            counted.get("output_tokens", 0),
            counted["cost"],
            counted.get("calls", 1),
        )

    async def secret(self, *names: str, configured: str | None = None) -> str | None:
        return configured


class Harness:
    """A fake server, a model that asks it, and a bill."""

    def __init__(self, fake: FakeLLM, model: ModelClient) -> None:
        self.fake = fake
        self.model = model
        self.ctx: Any = FakeContext()

    async def ask(self, question: Question = QUESTION, **options: Any) -> Claims:
        return await self.model.ask(question, Claims, self.ctx, **options)


def over_loopback(
    story: Callable[[Harness], Coroutine[Any, Any, Any]],
    vendor: str = "openai",
    *,
    address: dict[str, Any] | None = None,
    brain: Any = BRAIN,
    **options: Any,
) -> Any:
    """Play a story against a real server on a real socket."""

    async def run() -> Any:
        async with FakeLLM(brain, key=KEY, **options) as fake:
            model = ModelClient(
                parse(fake.address(vendor, **(address or {}))), environment=fake.environment
            )
            try:
                return await story(Harness(fake, model))
            finally:
                await model.aclose()

    return asyncio.run(run())


class VirtualTime:
    """The same in virtual time, without a socket."""

    def __init__(self) -> None:
        self.world = World()
        self._process = self.world.process("asker")

    @property
    def now(self) -> float:
        return self.world.clock.monotonic()

    def run(self, work: Coroutine[Any, Any, Any], within: float = 86_400.0) -> Any:
        return self.world.run(work, self._process, within=within)

    def harness(
        self,
        vendor: str = "openai",
        *,
        address: dict[str, Any] | None = None,
        brain: Any = BRAIN,
        **options: Any,
    ) -> Harness:
        fake = FakeLLM(brain, key=KEY, **options)
        where = parse(fake.address(vendor, **(address or {})))
        return Harness(
            fake, ModelClient(where, environment=fake.environment, transport=fake.transport())
        )
