"""A language model that is asked questions and gives validated answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from holdfast.adapters.llm.address import Address
from holdfast.ports.context import Context

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `system` is the part that many questions share: instructions and taxonomy, cached by vendors."""

    task: str
    """The name of the answer's schema: `[a-z_]{1,40}`."""
    system: str
    text: str
    """The data that the question is about: never followed, whatever it says."""
    max_output: int = 4096
    """Tokens."""


class Model:
    """One model at one address. Calls may overlap, hundreds of them: they are paced together."""

    def __init__(self, address: Address, *, environment: Mapping[str, str] = os.environ) -> None:
        self.address = address
        self.name = address.name

    async def ask(
        self,
        question: Question,
        answer: type[T],
        ctx: Context,
        *,
        budget: float | None = None,
        check: Callable[[T], str | None] | None = None,
    ) -> T:
        """The validated answer. `check` may say what is wrong with an answer that fits the schema."""
        raise NotImplementedError

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        """US dollars; None if nobody knows."""
        raise NotImplementedError

    async def aclose(self) -> None:
        raise NotImplementedError
