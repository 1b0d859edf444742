"""Who led a fifo lane, and why that ended: a record for each lane, with the last `MOST` terms.

Nothing rests on it, it is for people; so a store that does not answer loses an entry, a history
that can't be read begins anew, and neither stops anybody. A leader that vanishes can't say so: the
next one ends its term for it."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import HoldfastError
from holdfast.model.damage import unless_damaged
from holdfast.model.replies import Stored
from holdfast.ports.records import Records

log = logging.getLogger("holdfast.lanes")

PREFIX = "leaders/"
MOST = 20
KEPT = 90 * 86_400.0
"""How long the history of a lane is kept after the last change of its leader, in seconds."""
TRIES = 5
"""How often somebody else may have written in between before an entry is given up."""

STOPPED = "the worker stopped"
LEASE_LOST = "lease lost"
NOT_RENEWED = "lease not renewed"
"""What the next leader says about one that has said nothing itself."""


class LeaderTerm(Struct, frozen=True):
    """A term, with its times by the store's clock. `ended` is the reason."""

    worker: str
    term: int
    since: float
    until: float | None = None
    ended: str | None = None


Leaderships = list[LeaderTerm]
_decode = msgspec.json.Decoder(Leaderships).decode


def begun(history: Leaderships, worker: str, term: int, now: float) -> Leaderships:
    """The history with a new leader. Whoever led before leads no more."""
    terms = {leader.term: leader for leader in history}
    terms.setdefault(term, LeaderTerm(worker, term, now))
    ordered = [terms[number] for number in sorted(terms)][-MOST:]
    return [*(_surely_ended(leader, now) for leader in ordered[:-1]), ordered[-1]]


def _surely_ended(leader: LeaderTerm, now: float) -> LeaderTerm:
    return leader if leader.ended else replace(leader, until=now, ended=NOT_RENEWED)


def ended(history: Leaderships, term: int, reason: str, now: float) -> Leaderships:
    """The history with the end of a term. A reason that is known replaces one that is assumed."""
    return [
        replace(leader, until=leader.until or now, ended=reason)
        if leader.term == term and leader.ended in (None, NOT_RENEWED)
        else leader
        for leader in history
    ]


async def read(records: Records, lane: str) -> Leaderships:
    """The last terms, the newest last."""
    page = await records.get(PREFIX + lane)
    return _history(page.records[0].value) if page.records else []


def _history(text: str) -> Leaderships:
    return unless_damaged(_decode, text) or []


class LeaderHistory:
    """Writes the history of one lane."""

    def __init__(self, records: Records, lane: str) -> None:
        self._records = records
        self._lane = lane

    async def begin(self, worker: str, term: int) -> None:
        await self._change(lambda history, now: begun(history, worker, term, now))

    async def end(self, term: int, reason: str) -> None:
        await self._change(lambda history, now: ended(history, term, reason, now))

    async def _change(self, change: Callable[[Leaderships, float], Leaderships]) -> None:
        try:
            for _ in range(TRIES):
                if await self._try_to_change(change):
                    return
            reason = "others wrote to it at the same time"
        except HoldfastError as error:
            reason = str(error)
        log.warning("lane %s: its history of leaders could not be written: %s", self._lane, reason)

    async def _try_to_change(self, change: Callable[[Leaderships, float], Leaderships]) -> bool:
        key = PREFIX + self._lane
        page = await self._records.get(key)
        record = page.records[0] if page.records else None
        value = msgspec.json.encode(change(_history(record.value) if record else [], page.now))
        expected = record.version if record else None
        reply = await self._records.put(key, value.decode(), expected=expected, ttl=KEPT)
        return isinstance(reply, Stored)
