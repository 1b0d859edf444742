"""The blob store's contract over every adapter, and what only files can get wrong."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.bucket_servers import fresh_gcs, fresh_s3

from holdfast.adapters.buckets.blobs import BucketBlobs
from holdfast.adapters.files.blobs import ABANDONED_AFTER, INCOMING, FileBlobs
from holdfast.adapters.memory.blobs import MemoryBlobs
from holdfast.errors import InvalidInput, StoreUnavailable
from holdfast.ports.blobs import BlobStore
from holdfast.testing.contracts.blobs import BlobStoreContract, run


class TestMemoryBlobs(BlobStoreContract):
    def make_blobs(self) -> BlobStore:
        return MemoryBlobs()


class TestGcsBlobs(BlobStoreContract):
    def make_blobs(self) -> BlobStore:
        return BucketBlobs(fresh_gcs())


class TestGcsBlobsInAFolder(BlobStoreContract):
    def make_blobs(self) -> BlobStore:
        return BucketBlobs(fresh_gcs("some/folder"))


class TestS3Blobs(BlobStoreContract):
    def make_blobs(self) -> BlobStore:
        return BucketBlobs(fresh_s3())


class TestFileBlobs(BlobStoreContract):
    @pytest.fixture(autouse=True)
    def _in_a_fresh_folder(self, tmp_path: Path) -> None:
        self.root = tmp_path / "deep" / "blobs"

    def make_blobs(self) -> FileBlobs:
        return FileBlobs(self.root)

    def files(self) -> list[str]:
        return sorted(
            str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()
        )

    @pytest.mark.parametrize(
        "key",
        [
            "",
            "/etc/passwd",
            "..",
            "../x",
            "a/../../x",
            "a//b",
            "a/",
            "./a",
            "a/.hidden",
            ".incoming/x",
            "a..b/c",
            "a\\b",
            "a/b c",
            "a/\x00",
            "a/ü",
            "a/" + "x" * 202,
            "-rf",
            "a\n",
        ],
    )
    def test_unsafe_keys_are_refused_everywhere(self, key: str) -> None:
        blobs = self.make_blobs()
        for call in (
            blobs.put(key, b"1"),
            blobs.get(key),
            blobs.list(key + "/"),
            blobs.delete(key + "/"),
        ):
            with pytest.raises(InvalidInput):
                run(call)
        assert not self.root.exists()

    def test_a_prefix_has_to_end_in_a_slash(self) -> None:
        blobs = self.make_blobs()
        run(blobs.put("acme/r1/x", b"1"))
        for call in (
            blobs.delete("acme/r1"),
            blobs.list("acme/r1"),
            blobs.delete("/"),
            blobs.delete(""),
        ):
            with pytest.raises(InvalidInput):
                run(call)
        assert self.files() == ["acme/r1/x"]

    def test_nothing_but_the_object_is_left_behind(self) -> None:
        blobs = self.make_blobs()
        run(blobs.put("acme/x", b"1"))
        run(blobs.put("acme/x", b"2"))
        assert self.files() == ["acme/x"]

    def test_deleting_removes_the_folders_that_became_empty(self) -> None:
        blobs = self.make_blobs()
        run(blobs.put("acme/r1/a/b/x", b"1"))
        run(blobs.put("bolt/r1/x", b"1"))
        run(blobs.delete("acme/r1/"))
        assert sorted(path.name for path in self.root.iterdir()) == [INCOMING, "bolt"]

    def test_a_writer_that_fails_halfway_leaves_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full_disk(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        blobs = self.make_blobs()
        run(blobs.put("acme/other", b"1"))
        monkeypatch.setattr(os, "fsync", full_disk)
        with pytest.raises(StoreUnavailable, match=r"acme/x.*No space left.*free some space"):
            run(blobs.put("acme/x", b"2"))
        monkeypatch.undo()
        assert self.files() == ["acme/other"]
        assert run(blobs.get("acme/x")) is None

    @pytest.mark.parametrize(
        ("number", "remedy"),
        [
            (errno.EROFS, "read-only"),
            (errno.EACCES, "permissions"),
            (errno.EPERM, "hard links"),
            (errno.EIO, "disk"),
        ],
    )
    def test_errors_name_the_cause_and_the_remedy(
        self, number: int, remedy: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "link", refuse)
        with pytest.raises(StoreUnavailable, match=remedy):
            run(self.make_blobs().put("acme/x", b"1"))
        assert self.files() == []

    def test_a_file_in_the_way_of_a_folder_is_an_error_that_says_so(self) -> None:
        blobs = self.make_blobs()
        run(blobs.put("acme/r1", b"1"))
        with pytest.raises(StoreUnavailable, match="a file stands where a folder is needed"):
            run(blobs.put("acme/r1/x", b"1"))

    @pytest.mark.parametrize("moment", ["fsync", "link", "unlink"])
    def test_a_process_that_dies_at_any_moment_leaves_the_object_complete_or_absent(
        self, moment: str
    ) -> None:
        """The process is ended at its first call of each system function on the way."""
        script = f"""
import asyncio, os, pathlib, sys
from holdfast.adapters.files import blobs
def die(*args, **kwargs): os._exit(9)
store = blobs.FileBlobs(pathlib.Path(sys.argv[1]))
asyncio.run(store.put("acme/before", b"1"))
if {moment!r} == "unlink": blobs.Path.unlink = die
else: setattr(os, {moment!r}, die)
asyncio.run(store.put("acme/x", b"complete" * 1000))
"""
        died = subprocess.run([sys.executable, "-c", script, str(self.root)], check=False)
        assert died.returncode == 9
        blobs = self.make_blobs()
        content = run(blobs.get("acme/x"))
        assert content == (b"complete" * 1000 if moment == "unlink" else None)
        assert run(blobs.list("acme/")) == ["acme/before"] + ["acme/x"] * (content is not None)
        assert run(blobs.put("acme/x", b"complete" * 1000)) is (content is None)

    def test_what_crashed_writers_left_is_tidied_up_later(self) -> None:
        run(self.make_blobs().put("acme/x", b"1"))
        old, fresh = self.root / INCOMING / "old", self.root / INCOMING / "fresh"
        for path in (old, fresh):
            path.write_bytes(b"half")
        os.utime(old, (0, old.stat().st_mtime - ABANDONED_AFTER - 1))
        run(self.make_blobs().put("acme/y", b"1"))
        assert not old.exists()
        assert fresh.exists()

    def test_the_event_loop_is_not_blocked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        blobs = self.make_blobs()
        loop_thread: list[object] = []
        monkeypatch.setattr(blobs, "_put", lambda *_: loop_thread.append(_running_loop()))
        run(blobs.put("acme/x", b"1"))
        assert loop_thread == [None]


def _running_loop() -> object:
    return asyncio._get_running_loop()
