"""What a store holds: how many of each kind, how large, and a digest to compare two stores by."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from holdfast.engine.payloads import REFERENCE
from holdfast.ports.blobs import BlobStore
from holdfast.ports.mover import (
    KINDS,
    AuditRecord,
    ExpiringRecord,
    Kind,
    LetterRecord,
    LockEpoch,
    Mover,
    RunRecord,
    TenantLimit,
)

PAGE = 200
"""Records of a page: a page of runs ends earlier when they are large."""

LATEST = 253_402_300_799.0
"""The last second that has a date."""

_encode = msgspec.json.Encoder().encode


class Amount(Struct):
    """How much there is of one kind. Two stores with the same digest hold the same, in whatever
    order it is read."""

    count: int = 0
    bytes: int = 0
    _sum: int = 0

    def add(self, count: int, encoded: bytes) -> bytes:
        digest = blake2b(encoded, digest_size=16).digest()
        self.count += count
        self.bytes += len(encoded)
        self._sum += int.from_bytes(digest)
        return digest

    @property
    def digest(self) -> str:
        return f"{self._sum % (1 << 128):032x}"


class Inventory(Struct):
    """All that was counted."""

    amounts: dict[str, Amount] = field(default_factory=dict)
    states: Counter[str] = field(default_factory=Counter)
    keys: int = 0
    values: int = 0
    """How many inputs, results and checkpoints are kept in the blob store."""

    def add(self, record: Any) -> bytes:
        """What the record hashes to: the same for the same record only."""
        digest = b""
        for name, owner, parts in _parts(record):
            amount = self.amounts.setdefault(name, Amount())
            digest += amount.add(len(parts), _encode((owner, parts))) if parts else b"-"
        if isinstance(record, RunRecord):
            self.states[str(record.run.state)] += 1
            self.keys += record.run.key is not None
            self.values += sum(1 for _ in blobs_of(record))
        return digest

    def differences(self, other: Inventory) -> list[str]:
        """The kinds that are not the same."""
        differing: list[str] = []
        for name in sorted({*self.amounts, *other.amounts}):
            own, foreign = self.amounts.get(name, Amount()), other.amounts.get(name, Amount())
            if (own.count, own.digest) != (foreign.count, foreign.digest):
                differing.append(f"{name} ({own.count} and {foreign.count})")
        return differing


def _parts(record: Any) -> Iterator[tuple[str, str, list[Any]]]:
    """What a record is made of: kind, whose it is, and the things themselves."""
    match record:
        case RunRecord(run=run):
            yield "runs", run.id, [run]
            yield "checkpoints", run.id, record.checkpoints
            yield "quarantined", run.id, record.quarantine
            yield "events", run.id, record.history
            yield "log lines", run.id, record.logs
            yield "dead letters", run.id, [record.letter] if record.letter else []
        case LetterRecord():
            yield "dead letters", "", [record]
        case AuditRecord():
            yield "audit entries", "", [record]
        case ExpiringRecord(remaining=remaining):
            # What expires is moved, but may be gone on one side when the two are compared.
            yield "records", "", [record.record] if remaining is None else []
        case TenantLimit():
            yield "tenants", "", [record]
        case LockEpoch():
            yield "locks", "", [record]
        case _:
            yield "lanes", "", [record]


def blobs_of(record: RunRecord) -> Iterator[str]:
    """The blobs that a run's values refer to."""
    texts = [
        record.run.input,
        record.run.result or "",
        *(saved.value for saved in record.checkpoints),
    ]
    return (text[len(REFERENCE) :] for text in texts if text.startswith(REFERENCE))


class BlobCheck:
    """Looks whether the blobs that runs refer to are there."""

    def __init__(self, blobs: BlobStore | None) -> None:
        self._blobs = blobs
        self.missing = 0

    async def look(self, record: RunRecord) -> None:
        folders: dict[str, set[str]] = {}
        for key in blobs_of(record):
            folder = key.rpartition("/")[0] + "/"
            if folder not in folders:
                folders[folder] = set(await self._blobs.list(folder)) if self._blobs else set()
            self.missing += key not in folders[folder]


# --- reading --------------------------------------------------------------------------------------


async def pages(mover: Mover, kind: Kind, after: str | None = None) -> AsyncIterator[list[Any]]:
    """All records of a kind, as every store can keep them."""
    while True:
        page = await mover.export(kind, after, PAGE)
        if page.records:
            yield [canonical(record) for record in page.records]
        if (after := page.after) is None:
            return


async def records(mover: Mover, kind: Kind) -> AsyncIterator[Any]:
    """The same, one by one."""
    async for page in pages(mover, kind):
        for record in page:
            yield record


async def all_but_runs(mover: Mover) -> AsyncIterator[Any]:
    """All records but the runs."""
    for kind in KINDS[:-1]:
        async for record in records(mover, kind):
            yield record


def canonical(record: Any) -> Any:
    """The record as all stores can keep it: times in microseconds, and as a run's number the
    position of its first event, which gives the same order."""
    match record:
        case RunRecord():
            run = replace(record.run, seq=record.history[0].position)
            return replace(
                record,
                run=_rounded(run, "created", "available", "started", "finished"),
                quarantine=[_rounded(bad, "at") for bad in record.quarantine],
                history=[_rounded(event, "at") for event in record.history],
                logs=[_rounded(line, "at") for line in record.logs],
                letter=_rounded(record.letter, "created", "closed") if record.letter else None,
            )
        case LetterRecord():
            letter = _rounded(record.letter, "created", "closed")
            return LetterRecord(letter, _rounded(record.event, "at"))
        case ExpiringRecord():
            return replace(record, record=_rounded(record.record, "updated"))
        case AuditRecord():
            return _rounded(record, "at")
    return record


def _rounded(record: Any, *names: str) -> Any:
    times = {name: value for name in names if (value := getattr(record, name)) is not None}
    return replace(
        record, **{name: round(min(float(value), LATEST), 6) for name, value in times.items()}
    )
