"""Checks a folder of blobs: one is written, read back and deleted, and all workers must see the
same folder."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path

from holdfast.adapters import disk
from holdfast.adapters.files.blobs import INCOMING, FileBlobs
from holdfast.model.ids import new_token
from holdfast.ports.health import Finding, Findings, make_finding, milliseconds

SAMPLE = bytes(range(256)) * 256
SAMPLE_FOLDER = "holdfast-doctor"


async def findings(path: str | Path, many_hosts: bool) -> Findings:
    """`many_hosts`: the store is a server, so that workers may be anywhere."""
    folder = Path(path)
    yield await _trial(folder)
    yield disk.room(folder)
    yield disk.file_system(folder, refuse_network=False)
    if many_hosts:
        yield _shared(folder)


async def _trial(folder: Path) -> Finding:
    """Raises what any user of the folder would meet."""
    existing = await asyncio.to_thread(disk.nearest, folder)
    blobs, key = FileBlobs(folder), f"{SAMPLE_FOLDER}/{new_token()}/sample"
    began = time.perf_counter()
    try:
        await blobs.put(key, SAMPLE)
        same = await blobs.get(key) == SAMPLE
        await blobs.delete(key.rpartition("/")[0] + "/")
    finally:
        _remove(folder, existing)
    took = time.perf_counter() - began
    return make_finding(
        "round trip",
        f"64 KiB written, read and deleted in {milliseconds(took)}, in {folder}"
        if same
        else f"{folder} returned other data than were written",
        fail=not same,
        why="large values and artifacts are kept there, and checkpoints point to them",
        fix="check the disk before going on",
    )


def _remove(folder: Path, existing: Path) -> None:
    """The folders that a trial has created below one that was there, unless somebody has used them
    since."""
    for path in (folder / INCOMING, folder, *folder.parents):
        if path.absolute() == existing.absolute():
            return
        with suppress(OSError):
            path.rmdir()


def _shared(folder: Path) -> Finding:
    kind = disk.file_system_of(disk.nearest(folder)) or "unknown"
    return make_finding(
        "shared",
        f"{folder} is on {kind}"
        + ("" if kind in disk.NETWORK_FILE_SYSTEMS else ", which other hosts do not see"),
        warn=kind not in disk.NETWORK_FILE_SYSTEMS,
        why="the store is a server: a worker on another host would not find the values that this "
        "one keeps here",
        fix="run all workers on one host, or name a folder that all of them mount",
    )
