"""The contract of the `BlobStore` port."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from holdfast.ports.blobs import BlobStore

T = TypeVar("T")
KEY = "acme/r1/step/1/result.json"
ANY_BYTES = bytes(range(256)) * 10


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


class BlobStoreContract:
    """Subclass it and define `make_blobs`, which gives an empty store in each test."""

    def make_blobs(self) -> BlobStore:
        raise NotImplementedError("say how to make the blob store under test")

    def test_an_object_is_read_back_as_it_was_put(self) -> None:
        blobs = self.make_blobs()
        assert run(blobs.put(KEY, ANY_BYTES)) is True
        assert run(blobs.get(KEY)) == ANY_BYTES

    def test_what_need_not_be_durable_is_complete_and_stays_as_well(self) -> None:
        blobs = self.make_blobs()
        assert run(blobs.put(KEY, ANY_BYTES, durable=False)) is True
        assert run(blobs.put(KEY, b"other", durable=False)) is False
        assert run(blobs.put(KEY, b"other")) is False
        assert run(blobs.get(KEY)) == ANY_BYTES

    def test_an_object_may_be_empty(self) -> None:
        blobs = self.make_blobs()
        assert run(blobs.put(KEY, b"")) is True
        assert run(blobs.put(KEY, b"")) is False
        assert run(blobs.get(KEY)) == b""

    def test_an_object_may_be_large(self) -> None:
        blobs = self.make_blobs()
        data = ANY_BYTES * 2_000
        run(blobs.put(KEY, data))
        assert run(blobs.get(KEY)) == data

    def test_an_object_that_is_there_stays_as_it_is(self) -> None:
        blobs = self.make_blobs()
        run(blobs.put(KEY, b"first"))
        assert run(blobs.put(KEY, b"second")) is False
        assert run(blobs.get(KEY)) == b"first"

    def test_what_does_not_exist_is_none(self) -> None:
        blobs = self.make_blobs()
        assert run(blobs.get("acme/nobody/x")) is None
        run(blobs.put("acme/r1/x", b"1"))
        assert run(blobs.get("acme/r1")) is None
        assert run(blobs.get("acme/r1/x/y")) is None

    def test_of_many_writers_one_creates_the_object(self) -> None:
        blobs = self.make_blobs()
        values = [f"writer {number}".encode() * 1_000 for number in range(16)]

        async def race() -> list[bool]:
            return await asyncio.gather(*[blobs.put(KEY, value) for value in values])

        created = run(race())
        assert created.count(True) == 1
        assert run(blobs.get(KEY)) == values[created.index(True)]

    def test_keys_are_listed_sorted(self) -> None:
        blobs = self.make_blobs()
        keys = [
            "acme/r1/b",
            "acme/r1/a/x",
            "acme/r1/a-1",
            "acme/r1/a/b/c",
            "acme/r2/a",
            "acme/r10/a",
            "bolt/r1/a",
        ]
        for key in keys:
            run(blobs.put(key, b"1"))
        assert run(blobs.list("acme/")) == sorted(key for key in keys if key.startswith("acme/"))
        assert run(blobs.list("acme/r1/")) == [
            "acme/r1/a-1",
            "acme/r1/a/b/c",
            "acme/r1/a/x",
            "acme/r1/b",
        ]
        assert run(blobs.list("acme/r1/a/")) == ["acme/r1/a/b/c", "acme/r1/a/x"]

    def test_a_prefix_without_objects_is_an_empty_list(self) -> None:
        blobs = self.make_blobs()
        assert run(blobs.list("nobody/")) == []
        run(blobs.put("acme/x", b"1"))
        assert run(blobs.list("acme/x/")) == []

    def test_all_objects_below_a_prefix_are_deleted_and_no_others(self) -> None:
        blobs = self.make_blobs()
        for key in ("acme/r1/a", "acme/r1/b/c", "acme/r10/a", "bolt/r1/a"):
            run(blobs.put(key, b"1"))
        assert run(blobs.delete("acme/r1/")) == 2
        assert run(blobs.get("acme/r1/a")) is None
        assert run(blobs.list("acme/")) == ["acme/r10/a"]
        assert run(blobs.get("bolt/r1/a")) == b"1"
        assert run(blobs.delete("acme/r1/")) == 0
        assert run(blobs.delete("nobody/")) == 0

    def test_a_deleted_key_can_be_put_again(self) -> None:
        blobs = self.make_blobs()
        run(blobs.put(KEY, b"1"))
        run(blobs.delete("acme/"))
        assert run(blobs.put(KEY, b"2")) is True
        assert run(blobs.get(KEY)) == b"2"

    def test_calls_may_overlap(self) -> None:
        blobs = self.make_blobs()

        async def busy(number: int) -> bytes | None:
            await blobs.put(f"acme/r{number}/x", str(number).encode())
            await blobs.delete(f"gone/r{number}/")
            return await blobs.get(f"acme/r{number}/x")

        async def all_at_once() -> list[bytes | None]:
            return await asyncio.gather(*[busy(number) for number in range(30)])

        assert run(all_at_once()) == [str(number).encode() for number in range(30)]

    def test_putting_beside_somebody_who_deletes_never_fails(self) -> None:
        blobs = self.make_blobs()

        async def churn() -> None:
            for number in range(30):
                puts = [blobs.put(f"acme/r1/{number}-{n}/x", b"1") for n in range(4)]
                await asyncio.gather(blobs.delete("acme/r1/"), *puts)

        run(churn())
        run(blobs.delete("acme/"))
        assert run(blobs.list("acme/")) == []
