"""Answers that may be a little old: what every request asks the store for, and few people change.

An answer is used for `FRESH` seconds. Then whoever asks first asks the store again, and the others
use the old one meanwhile, but never one that is older than `OLDEST`. Ages are measured by the
monotonic clock, from the moment at which the store was asked: a change that was made in another
process is known here `OLDEST` seconds later at the latest. If the store can't be asked, its error
is the answer."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from holdfast.model.clock import Clock

T = TypeVar("T")

FRESH = 2.0
OLDEST = 4.0
MOST = 10_000
"""Answers that are kept."""


@dataclass(slots=True)
class _Answer(Generic[T]):
    value: T
    loaded_at: float
    is_loading: bool = False


class Cached(Generic[T]):
    """`load` for keys, with the answers of the last seconds."""

    def __init__(self, load: Callable[[str], Awaitable[T]], clock: Clock) -> None:
        self._load = load
        self._clock = clock
        self._answers: OrderedDict[str, _Answer[T]] = OrderedDict()

    async def get(self, key: str) -> T:
        now = self._clock.monotonic()
        old = self._answers.get(key)
        if old is not None and now - old.loaded_at < (OLDEST if old.is_loading else FRESH):
            return old.value
        if old is not None:
            old.is_loading = True
        try:
            value = await self._load(key)
        except BaseException:
            if old is not None:
                old.is_loading = False
            raise
        self._keep(key, _Answer(value, now))
        return value

    def forget(self, key: str) -> None:
        """It was changed here."""
        self._answers.pop(key, None)

    def _keep(self, key: str, answer: _Answer[T]) -> None:
        self._answers[key] = answer
        self._answers.move_to_end(key)
        while len(self._answers) > MOST:
            self._answers.popitem(last=False)
