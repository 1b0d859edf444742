"""Answers cached by what was asked: the same question to the same model costs nothing the second
time.

An entry's name is a digest of everything that decides the answer. Entries are never changed; one
that was damaged on the disk is passed over, and the answer is kept beside it under the next number.
Tenants share nothing.

    TENANT/answers/2026-11-18/ab/cdef….0.json    an answer, under the day it was written
    answer-days/TENANT/2026-11-18/marker         that the tenant has answers of that day

Answers follow the retention of finished runs. A day is deleted as a whole when all of it is older
than that. Whoever finds an answer that has used up half of its time writes it again under the
present day, so what is in use stays. The markers exist because a blob store can't list tenants or
days: they are written before a day's first answer and deleted after its last, so that a crash in
between leaves nothing behind that is not found again."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime

import msgspec

from holdfast.errors import ConfigurationError
from holdfast.model.clock import Clock
from holdfast.model.names import path_part
from holdfast.ports.blobs import BlobStore

VERSION = "2"
MAX_DAMAGED = 3
"""How often an entry may be damaged before its answer is no longer kept."""
MARKERS = "answer-days"
_MARKER = re.compile(rf"{MARKERS}/([^/]+)/(\d{{4}}-\d\d-\d\d)/marker")
DAY = 86_400.0


class _Entry(msgspec.Struct):
    checksum: str
    answer: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Entry).decode


class AnswerCache:
    """A cache over the blob store. Only validated answers belong in it. `retention` is in seconds.

    Belongs to one event loop; others, and other processes, may have theirs on the same blobs."""

    def __init__(self, blobs: BlobStore | None, clock: Clock, retention: float) -> None:
        self._optional_blobs = blobs
        self._clock = clock
        self._retention = retention
        self._marked: dict[str, date] = {}
        """Tenant → the last day that was marked here."""
        self._days: dict[str, tuple[date, list[date]]] = {}
        """Tenant → when its markers were read, and the days before that."""
        self._reading_days = asyncio.Lock()

    @property
    def _blobs(self) -> BlobStore:
        if self._optional_blobs is None:
            raise ConfigurationError(
                "asking a model needs a blob store for its answers: set "
                "HOLDFAST_BLOBS=file:./folder"
            )
        return self._optional_blobs

    @property
    def _today(self) -> date:
        return datetime.fromtimestamp(self._clock.now(), UTC).date()

    async def get(self, tenant: str, key: Sequence[str]) -> str | None:
        """The answer to a question, given by what decides it: model, task, instructions, text, …"""
        tenant = path_part(tenant)
        name, today = _digest(VERSION, *key), self._today
        answer = await self._read(tenant, today, name)
        if answer is not None:
            return answer
        for day in await self._earlier_days(tenant, today):
            answer = await self._read(tenant, day, name)
            if answer is not None:
                if 2 * DAY * (today - day).days >= self._retention:
                    await self._write(tenant, today, name, answer)
                return answer
        return None

    async def put(self, tenant: str, key: Sequence[str], answer: str) -> None:
        """Keep an answer. What is kept already stays."""
        await self._write(path_part(tenant), self._today, _digest(VERSION, *key), answer)

    async def prune(self) -> int:
        """Delete the days that are older than the retention. Returns how many answers that were."""
        count = 0
        for tenant, day in _marked(await self._blobs.list(f"{MARKERS}/")):
            if self._is_over(day):
                count += await self._blobs.delete(_folder(tenant, day))
                await self._blobs.delete(f"{MARKERS}/{tenant}/{day}/")
        return count

    def _is_over(self, day: date) -> bool:
        """Whether everything that was written on a day is older than the retention."""
        begin = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
        return begin + DAY + self._retention <= self._clock.now()

    # --- one day ----------------------------------------------------------------------------------

    async def _read(self, tenant: str, day: date, name: str) -> str | None:
        for key in _keys(tenant, day, name):
            data = await self._blobs.get(key)
            if data is None:
                return None
            answer = _answer_in(data)
            if answer is not None:
                return answer
        return None

    async def _write(self, tenant: str, day: date, name: str, answer: str) -> None:
        await self._mark(tenant, day)
        data = _encode(_Entry(_digest(answer), answer))
        for key in _keys(tenant, day, name):
            if await self._blobs.put(key, data, durable=False):  # it can be asked again
                return
            existing = await self._blobs.get(key)
            if existing is not None and _answer_in(existing) is not None:
                return

    # --- which days there are ---------------------------------------------------------------------

    async def _mark(self, tenant: str, day: date) -> None:
        if self._marked.get(tenant) != day:
            await self._blobs.put(f"{MARKERS}/{tenant}/{day}/marker", b"")
            self._marked[tenant] = day

    async def _earlier_days(self, tenant: str, today: date) -> list[date]:
        """The days before today of which the tenant has answers, newest first. Read once a day:
        answers are only ever written under the present one."""
        async with self._reading_days:
            read_on, days = self._days.get(tenant, (None, []))
            if read_on != today:
                markers = await self._blobs.list(f"{MARKERS}/{tenant}/")
                days = sorted((day for _, day in _marked(markers) if day < today), reverse=True)
                self._days[tenant] = today, days
        return [day for day in days if not self._is_over(day)]


def _folder(tenant: str, day: date) -> str:
    return f"{tenant}/answers/{day}/"


def _keys(tenant: str, day: date, name: str) -> Iterator[str]:
    for number in range(MAX_DAMAGED):
        yield f"{_folder(tenant, day)}{name[:2]}/{name[2:]}.{number}.json"


def _marked(keys: Iterable[str]) -> Iterator[tuple[str, date]]:
    """The tenants and days of markers. A tenant may be called like the markers' folder: what else
    is in it is passed over."""
    for key in keys:
        if match := _MARKER.fullmatch(key):
            yield match[1], date.fromisoformat(match[2])


def _digest(*parts: str) -> str:
    """Each part with its length, so that no two lists of parts look the same."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def _answer_in(data: bytes) -> str | None:
    try:
        entry = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return entry.answer if entry.checksum == _digest(entry.answer) else None
