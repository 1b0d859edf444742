"""Rate limits that hold across processes: what all of them have taken is one record.

The record says until when the allowance is spent, for requests and for tokens, by the store's
clock: a request moves the moment on by its share of a minute. Whoever has requests waiting takes
the next slice of the allowance for them, by comparing versions, sends each when its moment has
come, and takes the next slice when this one is nearly used: so processes take turns, and one that
dies wastes no more than its slice. Nobody looks further ahead than `AHEAD`. If the store is away,
nothing is sent."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from hashlib import sha256

import msgspec
from msgspec import Struct

from holdfast.model.damage import unless_damaged
from holdfast.model.replies import Stored
from holdfast.ports.records import Records

PREFIX = "rates/"
SLICE = 0.5
"""Seconds of the allowance that a process takes at once, or one request."""
AHEAD = 2.0
"""Seconds: what is due later than that is left to whoever comes first then."""
LEAD = 0.25
"""Seconds before its slice is used up at which a process takes the next one."""
REQUESTS_EARLY = 0.1
TOKENS_EARLY = 10.0
"""Seconds by which a request may be early, and seconds' worth of tokens that may be spent at
once."""
KEPT = 3600.0
"""Seconds for which the record is kept without use. A moment further away than that is none: the
store's clock was set back."""


class Spent(Struct, frozen=True):
    """Until when the allowance is spent, in seconds of the store's time."""

    requests: float = 0.0
    tokens: float = 0.0


_decode = msgspec.json.Decoder(Spent).decode


@dataclass(slots=True)
class _Request:
    tokens: int
    granted: asyncio.Future[float]
    """Seconds after which it may be sent."""


class SharedRate:
    """One vendor's allowance, as one process takes its part of it."""

    def __init__(
        self,
        records: Records,
        name: str,
        requests_per_minute: int | None,
        tokens_per_minute: int | None,
    ) -> None:
        self._records = records
        self._key = PREFIX + sha256(name.encode()).hexdigest()[:32]
        self._request_takes = 60 / requests_per_minute if requests_per_minute else 0.0
        self._token_takes = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._waiting: deque[_Request] = deque()
        self._taker: asyncio.Task[None] | None = None
        self._correction = 0

    async def take(self, tokens: int) -> None:
        request = _Request(tokens, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        if self._taker is None or self._taker.done():
            self._taker = asyncio.create_task(self._take_slices())
        await asyncio.sleep(await request.granted)

    def correct(self, tokens: int) -> None:
        self._correction += tokens

    async def _take_slices(self) -> None:
        """Until nobody waits."""
        try:
            while self._waiting:
                await self._take_slice()
        except Exception as error:
            waiting, self._waiting = self._waiting, deque()
            for request in waiting:
                if not request.granted.done():
                    request.granted.set_exception(error)

    async def _take_slice(self) -> None:
        """Wait for room, and grant what fits into the next slice."""
        while True:
            page = await self._records.get(self._key)
            now, correction = page.now, self._correction
            before = unless_damaged(_decode, page.records[0].value) if page.records else None
            spent = self._corrected(_sensible(before or Spent(), now), correction)
            spent, moments = self._granted(spent, now)
            if not moments:
                await asyncio.sleep(self._due(spent) - AHEAD - now)
                continue
            reply = await self._records.put(
                self._key,
                msgspec.json.encode(spent).decode(),
                expected=page.records[0].version if page.records else None,
                ttl=KEPT,
            )
            if isinstance(reply, Stored):
                self._correction -= correction
                for moment in moments:
                    request = self._waiting.popleft()
                    if not request.granted.done():
                        request.granted.set_result(max(0.0, moment - now))
                await asyncio.sleep(moments[-1] - LEAD - now)
                return

    def _granted(self, spent: Spent, now: float) -> tuple[Spent, list[float]]:
        """What is spent with the first requests that fit, and the moment of each."""
        moments: list[float] = []
        for request in self._waiting:
            due = max(self._due(spent), now)
            if due > now + AHEAD or (moments and due >= moments[0] + SLICE):
                break
            moments.append(due)
            spent = Spent(
                max(spent.requests, now) + self._request_takes,
                max(spent.tokens, now) + request.tokens * self._token_takes,
            )
        return spent, moments

    def _due(self, spent: Spent) -> float:
        """When the next request may be sent."""
        return max(spent.requests - REQUESTS_EARLY, spent.tokens - TOKENS_EARLY)

    def _corrected(self, spent: Spent, tokens: int) -> Spent:
        return Spent(spent.requests, spent.tokens + tokens * self._token_takes)


def _sensible(spent: Spent, now: float) -> Spent:
    return Spent(
        *(until if until < now + KEPT else now for until in (spent.requests, spent.tokens))
    )
