"""Checks Firestore: a record is written, protected from a second writer, and deleted."""

from __future__ import annotations

import time

from holdfast.adapters.firestore.records import FirestoreRecords
from holdfast.model.ids import new_token
from holdfast.model.replies import Changed, Stored
from holdfast.ports.health import Finding, Findings, make_finding, milliseconds

SLOW = 1.0


async def findings(url: str) -> Findings:
    """Raises what any user of the database would meet."""
    records = FirestoreRecords(url)
    try:
        yield await _trial(records)
    finally:
        await records.close()


async def _trial(records: FirestoreRecords) -> Finding:
    key = f"holdfast-doctor/{new_token()}"
    began = time.perf_counter()
    stored = await records.put(key, "sample")
    refused = await records.put(key, "other")
    deleted = isinstance(stored, Stored) and await records.delete(key, expected=stored.version)
    took = time.perf_counter() - began
    holds = isinstance(refused, Changed) and deleted
    return make_finding(
        "round trip",
        f"a document written, protected and deleted in {milliseconds(took)}, in {records.address}"
        if holds
        else f"{records.address} did not keep what was written first",
        fail=not holds,
        warn=took > SLOW,
        why="documents for other systems and pipeline locks depend on it",
        fix="use a database in the region of the workers"
        if holds
        else "this must not happen: stop the workers and report it",
    )
