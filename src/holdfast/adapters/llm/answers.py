"""Answers kept by what was asked: the same question to the same model costs nothing the second
time.

An entry's name is a digest of everything that decides the answer. Entries are never changed; one
that was damaged on the disk is passed over, and the answer is kept beside it under the next number.
Tenants share nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from holdfast.ports.blobs import BlobStore

VERSION = "1"
SPARES = 3
"""How often an entry may be damaged before its answer is no longer kept."""


class _Entry(msgspec.Struct):
    checksum: str
    answer: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Entry).decode


class Answers:
    """A cache over the blob store. Only validated answers belong in it; any task of any process may
    use it."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    async def get(self, tenant: str, parts: Sequence[str]) -> str | None:
        """The answer to a question, given by its parts: model, task, instructions, text, …"""
        for key in _keys(tenant, parts):
            data = await self._blobs.get(key)
            if data is None:
                return None
            answer = _read(data)
            if answer is not None:
                return answer
        return None

    async def put(self, tenant: str, parts: Sequence[str], answer: str) -> None:
        """Keep an answer. What is kept already stays."""
        data = _encode(_Entry(_digest(answer), answer))
        for key in _keys(tenant, parts):
            if await self._blobs.put(key, data, durable=False):  # it can be asked again
                return
            there = await self._blobs.get(key)
            if there is not None and _read(there) is not None:
                return


def _keys(tenant: str, parts: Sequence[str]) -> list[str]:
    name = _digest(VERSION, *parts)
    return [f"{tenant}/answers/{name[:2]}/{name[2:]}.{number}.json" for number in range(SPARES)]


def _digest(*parts: str) -> str:
    """Each part with its length, so that no two lists of parts look the same."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def _read(data: bytes) -> str | None:
    try:
        entry = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return entry.answer if entry.checksum == _digest(entry.answer) else None
