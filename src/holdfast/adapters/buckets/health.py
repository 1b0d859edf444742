"""Checks a bucket: an object is written, read back, protected from a second writer, and deleted."""

from __future__ import annotations

import time

from holdfast.adapters.buckets.blobs import BucketBlobs
from holdfast.model.ids import new_token
from holdfast.ports.health import Finding, Findings, make_finding, milliseconds

SAMPLE = bytes(range(256)) * 256
PLACE = "holdfast-doctor"
SLOW = 1.0


async def findings(url: str) -> Findings:
    """Raises what any user of the bucket would meet."""
    yield await _trial(BucketBlobs(url))


async def _trial(blobs: BucketBlobs) -> Finding:
    folder = f"{PLACE}/{new_token()}"
    began = time.perf_counter()
    created = await blobs.put(f"{folder}/sample", SAMPLE)
    overwritten = await blobs.put(f"{folder}/sample", b"other")
    same = await blobs.get(f"{folder}/sample") == SAMPLE
    removed = await blobs.delete(f"{folder}/") == 1
    took = time.perf_counter() - began
    holds = created and not overwritten and same and removed
    return make_finding(
        "round trip",
        f"64 KiB written once, read and deleted in {milliseconds(took)}, in {blobs.address}"
        if holds
        else f"{blobs.address} did not keep what was written first, or did not delete it",
        fail=not holds,
        warn=took > SLOW,
        why="large values and artifacts are kept there, and checkpoints point to them",
        fix="use a bucket in the region of the workers"
        if holds
        else "this service ignores preconditions: choose one that knows them",
    )
