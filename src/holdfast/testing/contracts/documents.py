"""The contract of the `Documents` port: every sentence of `ports/documents.py`, as a test."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.ports.documents import REMEMBERED, Documents

LATE = 60.0
"""Seconds that an adapter may take to remove what has expired."""


def version(number: int) -> str:
    return f"{number:010d}"


def story(test: Callable[[Any, Documents], Awaitable[None]]) -> Callable[[Any], None]:
    def run(self: DocumentsContract) -> None:
        async def on_documents() -> None:
            documents = self.make_documents()
            try:
                await test(self, documents)
            finally:
                await documents.close()

        asyncio.run(on_documents())

    run.__name__, run.__qualname__, run.__doc__ = test.__name__, test.__qualname__, test.__doc__
    return run


class DocumentsContract:
    """Subclass it and define `make_documents`, `read` and `pass_time`. No test sleeps."""

    def make_documents(self) -> Documents:
        raise NotImplementedError("say how to make the documents under test")

    async def read(self, key: str) -> bytes | None:
        """A document as another system reads it, past the adapter."""
        raise NotImplementedError("say how others read a document")

    async def pass_time(self, keys: list[str], seconds: float) -> None:
        """Let so much time pass for these documents and for what is remembered of them."""
        raise NotImplementedError("say how to let time pass")

    @story
    async def test_what_is_put_can_be_read_as_it_is(self, documents: Documents) -> None:
        assert await self.read("state:a") is None
        for body in (b'{"n": 1}', "☃".encode(), bytes(range(256)), b""):
            key = f"state:{body[:4].hex()}"
            assert await documents.put(key, body, version=version(1))
            assert await self.read(key) == body

    @story
    async def test_only_a_higher_version_replaces_it(self, documents: Documents) -> None:
        assert await documents.put("a", b"2", version=version(2))
        assert not await documents.put("a", b"1", version=version(1))
        assert not await documents.put("a", b"again", version=version(2))
        assert await self.read("a") == b"2"
        assert await documents.put("a", b"10", version=version(10))
        assert await self.read("a") == b"10"

    @story
    async def test_deleting_needs_a_higher_version_too(self, documents: Documents) -> None:
        await documents.put("a", b"2", version=version(2))
        assert not await documents.delete("a", version=version(1))
        assert not await documents.delete("a", version=version(2))
        assert await self.read("a") == b"2"
        assert await documents.delete("a", version=version(3))
        assert await self.read("a") is None
        assert not await documents.delete("a", version=version(3))

    @story
    async def test_what_was_deleted_does_not_come_back(self, documents: Documents) -> None:
        await documents.put("a", b"1", version=version(1))
        await documents.delete("a", version=version(3))
        await documents.delete("never-there", version=version(3))
        for key in ("a", "never-there"):
            assert not await documents.put(key, b"2", version=version(2))
            assert await self.read(key) is None
        assert await documents.put("a", b"4", version=version(4))
        assert await self.read("a") == b"4"

    @story
    async def test_documents_do_not_touch_one_another(self, documents: Documents) -> None:
        keys = ["a", "b", "jobs/queued/a.json", "jobs/queued/b.json", "a:b", "a b", "ä☃", "A"]
        keys += ["x" * 400, "x" * 400 + "y", "..", ".hidden", "a%2Fb", "reports/../../etc"]
        for number, key in enumerate(keys, 1):
            assert await documents.put(key, str(number).encode(), version=version(number))
        bodies = [await self.read(key) for key in keys]
        assert bodies == [str(number).encode() for number in range(1, len(keys) + 1)]
        await documents.delete("jobs/queued/a.json", version=version(99))
        assert await self.read("jobs/queued/b.json") == b"4"

    @story
    async def test_a_document_expires(self, documents: Documents) -> None:
        await documents.put("a", b"1", version=version(1), ttl=1000.0)
        await documents.put("b", b"1", version=version(1))
        await self.pass_time(["a", "b"], 900.0)
        assert await self.read("a") == b"1"
        await self.pass_time(["a", "b"], 100.0 + LATE)
        await documents.put("c", b"1", version=version(1))
        assert await self.read("a") is None
        assert await self.read("b") == b"1"

    @story
    async def test_the_version_of_an_expired_document_is_remembered(
        self, documents: Documents
    ) -> None:
        await documents.put("a", b"2", version=version(2), ttl=1000.0)
        await self.pass_time(["a"], 1000.0 + LATE)
        assert not await documents.put("a", b"1", version=version(1))
        assert await self.read("a") is None
        assert await documents.put("a", b"3", version=version(3))
        assert await self.read("a") == b"3"

    @story
    async def test_every_put_begins_the_time_anew(self, documents: Documents) -> None:
        await documents.put("a", b"1", version=version(1), ttl=1000.0)
        await self.pass_time(["a"], 900.0)
        await documents.put("a", b"2", version=version(2), ttl=1000.0)
        await self.pass_time(["a"], 900.0)
        assert await self.read("a") == b"2"
        await documents.put("a", b"3", version=version(3))
        await self.pass_time(["a"], REMEMBERED)
        assert await self.read("a") == b"3"

    @story
    async def test_of_those_who_write_at_once_the_highest_stays(self, documents: Documents) -> None:
        numbers = random.Random(7).sample(range(1, 1000), 30)
        writes = [documents.put("a", str(n).encode(), version=version(n)) for n in numbers]
        assert any(await asyncio.gather(*writes))
        assert await self.read("a") == str(max(numbers)).encode()
