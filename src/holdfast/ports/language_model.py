"""The language model: a question goes in, a validated answer comes out, and no vendor is known.

class Summary(BaseModel):
    sentences: list[str]

@pipeline.step
async def summary(request: Letter, ctx: Context) -> Summary:
    model = ctx.use(LanguageModel)
    return await model.ask(Question("Summarise the letter.", request.text), Summary, ctx)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from holdfast.errors import Permanent, Transient
from holdfast.ports.context import Context

T = TypeVar("T")

CacheKey = tuple[str, ...]
"""What a cached answer depends on, part by part."""


class Malformed(Transient):
    """The answers did not fit what was asked for, repairs included."""


class Declined(Permanent):
    """The model, or a filter before or after it, refused to answer: ask about less, or leave it
    out."""


class TooLong(Permanent):
    """The question or its answer does not fit into the model: ask about less at once."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked."""

    system: str
    """Instructions: the part that many questions share, and that vendors cache."""
    text: str
    """The data that the question is about. It is never followed, whatever it says."""
    task: str = "answer"
    """The name of the answer's schema: `[a-z_]{1,40}`."""
    max_output: int = 4096
    """Tokens."""


class LanguageModel(Protocol):
    """One model, found with `ctx.use(LanguageModel)`: the one that the setting `llm` names.

    Who may call: tasks of the event loop that the app runs in, so `async def` steps and items.
    Hundreds of calls may overlap: they are paced together, first come, first served. How long a
    call may block: while others are served and while the vendor asks callers to wait (up to a
    minute; for a longer time `Transient` is raised with what is left of it), then for the timeout
    of each request. The event loop never blocks. Who retries: the engine. The model itself only
    sends an answer back that can't be used (at most twice), says a request differently that the
    server does not understand, and sends a call again that was rate-limited, after the cool-down
    that all callers share (at most eight times). What is idempotent: the same question for the same
    tenant with the same answer type is answered from the cache, as long as `retention.finished`
    keeps answers. Two that ask at the same moment both pay, and a crash loses at most what was in
    flight. What is counted with `ctx.usage`: every call that the vendor worked on, with its tokens
    and its price; an answer from the cache is no call. Errors: `Transient` (`Malformed` if it is
    the answer's fault), `Permanent` (`Declined`, `TooLong`), `Pause` before the budget is passed or
    when the account can't pay, `ConfigurationError` (no key, no such model), `Fix` (no schema for
    the answer type)."""

    name: str
    """Vendor and model: `openai:gpt-4o-mini`."""
    in_flight: int
    """How many calls may be under way at once."""

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
        """The validated answer: a pydantic model, a dataclass, a msgspec Struct, or plain JSON
        types such as `str` and `list[int]`.

        `budget` is what the run may spend in all, in US dollars: `Pause` is raised before a call
        that could pass it. `fresh` asks although the answer is cached. `check` may say what is
        wrong with an answer that fits the schema: it is sent back with that. `cache_parts` is for
        one call about several things: it says what to cache under which key, to be found again
        with `recall`; such a call is not looked up as a whole."""
        ...

    async def recall(self, key: CacheKey, kind: type[T], ctx: Context) -> T | None:
        """What is cached for the run's tenant, if it still has that type. The model's name belongs
        into the key wherever another model would answer differently."""
        ...

    async def remember(self, key: CacheKey, value: Any, ctx: Context) -> None:
        """Cache something that was worked out from answers. What is there already stays."""
        ...

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        """US dollars; None if nobody knows. Asks nobody."""
        ...

    def input_tokens(self, question: Question, answer: type[Any]) -> int:
        """About how many tokens a question takes with the schema of its answer, rather too many
        than too few."""
        ...

    def check_configuration(self) -> None:
        """Raise ConfigurationError if it could not be asked: its key is missing, a package is not
        installed. Asks nobody."""
        ...


class LanguageModels(Protocol):
    """Every model by its address, for pipelines whose runs name one."""

    def named(self, address: str) -> LanguageModel:
        """The model at an address such as `openai:gpt-4o-mini?rpm=500`; the same object every time,
        so that its callers are paced together. Raises ConfigurationError if the address is not
        understood. Asks nobody."""
        ...
