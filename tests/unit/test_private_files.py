"""Files are their owner's alone, whatever the umask."""

import asyncio
import os
import stat

import pytest

from holdfast.adapters.files.blobs import FileBlobs
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.model.commands import DefineLane


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o377])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def rights(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("threads", [True, False])
def test_a_database_and_what_is_beside_it_belong_to_their_owner(tmp_path, umask, threads):
    async def write():
        store = SqliteStore(tmp_path / "holdfast.db", threads=threads)
        await store.open()
        await store.apply([DefineLane("a", "parallel", "dead-letter")])
        files = {path.name: rights(path) for path in tmp_path.iterdir()}
        await store.close()
        return files

    names = ("holdfast.db", "holdfast.db-wal", "holdfast.db-shm")
    assert asyncio.run(write()) == dict.fromkeys(names, 0o600)


def test_the_rights_that_somebody_gave_to_a_database_stay(tmp_path):
    path = tmp_path / "holdfast.db"
    path.touch()
    path.chmod(0o660)

    async def write():
        store = SqliteStore(path)
        await store.open()
        await store.close()

    asyncio.run(write())
    assert rights(path) == 0o660


def test_blobs_and_their_folders_belong_to_their_owner(tmp_path, umask):
    root = tmp_path / "new" / "blobs"
    assert asyncio.run(FileBlobs(root).put("acme/r1/s/1/a.json", b"{}"))
    below = [root, *root.rglob("*")]
    assert {rights(path) for path in below if path.is_dir()} == {0o700}
    assert {rights(path) for path in below if path.is_file()} == {0o600}
    assert rights(root.parent) == 0o700
