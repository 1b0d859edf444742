"""The contract of documents over every adapter, and what only files can get wrong."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.bucket_servers import fresh_gcs, fresh_s3, shared_gcs
from tests.emulators import fresh_firestore
from tests.redis_server import fresh_prefix, shared_server, shared_valkey

from holdfast.adapters.buckets.blobs import obstore
from holdfast.adapters.buckets.documents import BucketDocuments, object_name
from holdfast.adapters.files import documents as files
from holdfast.adapters.files.documents import FileDocuments
from holdfast.adapters.firestore.client import Client
from holdfast.adapters.firestore.documents import FirestoreDocuments, place_of
from holdfast.adapters.memory.documents import MemoryDocuments
from holdfast.adapters.redis.documents import RedisDocuments
from holdfast.adapters.redis.link import find_master
from holdfast.adapters.redis.wire import ask
from holdfast.errors import InvalidInput, Transient
from holdfast.ports.documents import REMEMBERED, Documents
from holdfast.testing.clock import ManualClock
from holdfast.testing.contracts.documents import DocumentsContract, story, version


class TestMemoryDocuments(DocumentsContract):
    def make_documents(self) -> Documents:
        self.clock = ManualClock()
        self.documents = MemoryDocuments(self.clock)
        return self.documents

    async def read(self, key: str) -> bytes | None:
        return self.documents.read(key)

    async def pass_time(self, keys: list[str], seconds: float) -> None:
        self.clock.advance(seconds)


class TestFileDocuments(DocumentsContract):
    @pytest.fixture(autouse=True)
    def _in_a_fresh_folder(self, tmp_path: Path) -> None:
        self.root = tmp_path / "deep" / "documents"

    def make_documents(self) -> FileDocuments:
        self.clock = ManualClock()
        self.documents = FileDocuments(self.root, self.clock)
        return self.documents

    async def read(self, key: str) -> bytes | None:
        path = self.documents.path(key)
        assert path.is_relative_to(self.root)
        return path.read_bytes() if path.is_file() else None

    async def pass_time(self, keys: list[str], seconds: float) -> None:
        self.clock.advance(seconds)

    @story
    async def test_a_key_is_its_path(self, documents: Documents) -> None:
        await documents.put("jobs/queued/42.json", b"{}", version=version(1))
        await documents.put("pipeline_state:r-1", b"{}", version=version(1))
        names = [p.relative_to(self.root).as_posix() for p in self.root.rglob("*") if p.is_file()]
        visible = [name for name in names if not name.startswith(".")]
        assert sorted(visible) == ["jobs/queued/42.json", "pipeline_state:r-1"]

    @story
    async def test_a_crash_in_the_middle_can_be_repeated_and_not_undone(
        self, documents: Documents
    ) -> None:
        await documents.put("a", b"1", version=version(1))
        with pytest.MonkeyPatch.context() as patch:
            replace = files._replace

            def die_at_the_document(path: Path, data: bytes) -> None:
                if path == self.root / "a":
                    raise OSError("crash")
                replace(path, data)

            patch.setattr(files, "_replace", die_at_the_document)
            with pytest.raises(Transient, match="crash"):
                await documents.put("a", b"3", version=version(3))
        assert not await documents.put("a", b"2", version=version(2))
        assert await documents.put("a", b"3", version=version(3))
        assert await self.read("a") == b"3"

    @story
    async def test_a_key_that_can_be_no_path_is_refused(self, documents: Documents) -> None:
        await documents.put("a", b"1", version=version(1))
        for key in ("", "a//b", "/a", "a/", "a/b"):
            with pytest.raises(InvalidInput):
                await documents.put(key, b"1", version=version(2))


class TestRedisDocuments(DocumentsContract):
    server = staticmethod(shared_server)

    def make_documents(self) -> RedisDocuments:
        self.documents = RedisDocuments(self.server().url(fresh_prefix()))
        return self.documents

    async def ask(self, *words: str | int) -> bytes | int | None:
        wire = await find_master(self.documents.address)
        try:
            return await ask(wire, *words)
        finally:
            wire.close()

    async def read(self, key: str) -> bytes | None:
        value = await self.ask("GET", f"{self.documents.address.prefix}{key}")
        assert value is None or isinstance(value, bytes)
        return value

    async def pass_time(self, keys: list[str], seconds: float) -> None:
        """The server's time can't be moved: what is left of the keys' lives is shortened."""
        prefix = self.documents.address.prefix
        for name in [n for key in keys for n in (f"{prefix}{key}", _version_key(prefix, key))]:
            milliseconds = await self.ask("PTTL", name)
            if isinstance(milliseconds, int) and milliseconds >= 0:
                await self.ask("PEXPIRE", name, max(0, milliseconds - round(1000 * seconds)))

    @story
    async def test_only_the_document_and_its_version_are_stored(self, documents: Documents) -> None:
        await documents.put("pipeline_state:r-1", b"{}", version=version(1), ttl=10.0)
        prefix = self.documents.address.prefix
        assert sorted(await self.ask("KEYS", f"{prefix}*") or []) == [  # type: ignore[arg-type]
            _version_key(prefix, "pipeline_state:r-1").encode(),
            f"{prefix}pipeline_state:r-1".encode(),
        ]

    @story
    async def test_a_server_that_is_away_is_transient(self, documents: Documents) -> None:
        away = RedisDocuments("redis://127.0.0.1:1/0?connect=500ms")
        with pytest.raises(Transient, match=r"127\.0\.0\.1:1"):
            await away.put("a", b"1", version=version(1))


class TestValkeyDocuments(TestRedisDocuments):
    server = staticmethod(shared_valkey)


class TestGcsDocuments(DocumentsContract):
    fresh = staticmethod(fresh_gcs)

    def make_documents(self) -> BucketDocuments:
        self.clock = ManualClock()
        self.documents = BucketDocuments(self.fresh(), self.clock)
        return self.documents

    async def read(self, key: str) -> bytes | None:
        try:
            result = await obstore.get_async(self.documents._bucket, object_name(key))
        except FileNotFoundError:
            return None
        return bytes(await result.bytes_async())

    async def pass_time(self, keys: list[str], seconds: float) -> None:
        self.clock.advance(seconds)

    def names(self) -> list[str]:
        pages = obstore.list(self.documents._bucket)
        names = [entry["path"] for page in pages for entry in page]
        return sorted(name for name in names if not name.startswith(".holdfast/"))

    @story
    async def test_a_key_is_the_name_of_its_object(self, documents: Documents) -> None:
        for key in ("jobs/Queued/42.json", "pipeline_state:r-1", "r-1.json"):
            await documents.put(key, b"{}", version=version(1))
        assert self.names() == ["jobs/Queued/42.json", "pipeline_state:r-1", "r-1.json"]
        await documents.delete("jobs/Queued/42.json", version=version(2))
        assert self.names() == ["pipeline_state:r-1", "r-1.json"]

    @story
    async def test_a_key_that_can_name_no_object_is_refused(self, documents: Documents) -> None:
        for key in ("", "a//b", "/a", "a/", "x" * 1000):
            with pytest.raises(InvalidInput):
                await documents.put(key, b"1", version=version(2))

    @story
    async def test_who_writes_what_was_deleted_in_the_meantime_takes_it_back(
        self, documents: Documents
    ) -> None:
        """The writer is held up between its look at the bucket and its write."""
        bucket = self.documents
        looked, write = await bucket._look("a"), bucket._write
        assert await documents.delete("a", version=version(3))
        assert await write("a", *looked, b"2", version(2), None)
        assert await self.read("a") is None

    @story
    async def test_a_delete_that_came_too_late_says_so(self, documents: Documents) -> None:
        """It has removed a document of a later version, and can't know which: the caller does."""
        bucket = self.documents
        await documents.put("a", b"1", version=version(1))
        document, mark = await bucket._look("a")
        assert await bucket._mark("a", mark, version(2), is_deleted=True)
        assert await documents.put("a", b"3", version=version(3))
        with pytest.raises(Transient, match="bring it up to date once more"):
            await bucket._remove("a", document, version(2))
        assert await documents.put("a", b"3", version=version(3))
        assert await self.read("a") == b"3"

    @story
    async def test_what_died_between_mark_and_delete_is_repaired(
        self, documents: Documents
    ) -> None:
        await documents.put("a", b"1", version=version(1))
        _, mark = await self.documents._look("a")
        assert await self.documents._mark("a", mark, version(2), is_deleted=True)
        assert await self.read("a") == b"1"
        assert await documents.delete("a", version=version(2))
        assert await self.read("a") is None
        assert not await documents.delete("a", version=version(2))

    @story
    async def test_marks_are_forgotten(self, documents: Documents) -> None:
        await documents.put("a", b"1", version=version(1), ttl=10.0)
        await documents.delete("b", version=version(1))
        self.clock.advance(200.0)
        await documents.put("c", b"1", version=version(1))
        self.clock.advance(REMEMBERED + 200.0)
        await documents.put("c", b"2", version=version(2))
        pages = obstore.list(self.documents._bucket)
        assert sorted(entry["path"] for page in pages for entry in page) == ["c"]


class TestS3Documents(TestGcsDocuments):
    fresh = staticmethod(fresh_s3)


@pytest.mark.parametrize("scheme", ["gs", "s3"])
def test_a_bucket_that_is_away_is_transient(scheme: str) -> None:
    away = BucketDocuments(f"{scheme}://nobody?endpoint=http://127.0.0.1:1&timeout=1s")
    with pytest.raises(Transient, match=rf"{scheme}://nobody failed"):
        asyncio.run(away.put("a", b"1", version=version(1)))


def test_a_bucket_that_is_missing_says_so() -> None:
    url = f"gs://no-such-bucket?endpoint={shared_gcs().address}"
    with pytest.raises(Transient, match="there is no such bucket; create it"):
        asyncio.run(BucketDocuments(url).put("a", b"1", version=version(1)))


class TestFirestoreDocuments(DocumentsContract):
    def make_documents(self) -> FirestoreDocuments:
        self.clock = ManualClock()
        self.documents = FirestoreDocuments(fresh_firestore(), self.clock)
        return self.documents

    @property
    def client(self) -> Client:
        return self.documents._client

    async def read(self, key: str) -> bytes | None:
        fields = (await self.client.get(self.client.document(*place_of(key)))).to_dict()
        if fields is None or fields.keys() == {"body"}:
            return fields and fields["body"]
        return json.dumps(fields).encode()

    async def pass_time(self, keys: list[str], seconds: float) -> None:
        self.clock.advance(seconds)

    @story
    async def test_fields_of_others_stay_and_our_own_can_go(self, documents: Documents) -> None:
        report = self.client.document("reports", "r-1")
        await report.set({"title": "Parks", "status": "queued"})
        failed = b'{"status": "failed", "errorMessage": "no"}'
        await documents.put("reports/r-1", failed, version=version(1))
        assert (await self.client.get(report)).to_dict() == {
            "title": "Parks",
            "status": "failed",
            "errorMessage": "no",
        }
        await documents.put("reports/r-1", b'{"status": "completed"}', version=version(2))
        expected = {"title": "Parks", "status": "completed"}
        assert (await self.client.get(report)).to_dict() == expected

    @story
    async def test_what_firestore_can_not_have_as_fields_is_kept_as_bytes(
        self, documents: Documents
    ) -> None:
        bodies = [b"[1]", b'{"a": [[1]]}', b'{"": 1}', b'{"n": 99999999999999999999}', b"{}"]
        for number, body in enumerate([*bodies, b'{"a.b": {"c`d": 1}, "\xc3\xa4": null}'], 1):
            assert await documents.put(f"d/{number}", body, version=version(1))
            stored = await self.read(f"d/{number}")
            assert stored is not None
            assert json.loads(stored) == json.loads(body)

    @story
    async def test_a_key_that_can_be_no_document_is_refused(self, documents: Documents) -> None:
        for key in ("", "a//b", "/a", "a/", "holdfast_documents/a", "x" * 1600):
            with pytest.raises(InvalidInput):
                await documents.put(key, b"1", version=version(2))

    @story
    async def test_versions_are_forgotten(self, documents: Documents) -> None:
        await documents.put("a", b"1", version=version(1), ttl=10.0)
        await documents.delete("b", version=version(1))
        self.clock.advance(REMEMBERED + 200.0)
        await documents.put("c", b"1", version=version(1))
        self.clock.advance(200.0)
        await documents.put("c", b"2", version=version(2))
        versions = self.client.here.collection("holdfast_documents").stream()
        assert [snapshot.id async for snapshot in versions] == ["c"]


def _version_key(prefix: str, key: str) -> str:
    return f"{prefix}holdfast:version:{key}"
