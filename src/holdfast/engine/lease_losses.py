"""Keeping beside a run how often the interpreter of its workers was blocked for too long."""

from __future__ import annotations

import logging

import msgspec

from holdfast.errors import HoldfastError
from holdfast.model.lease_losses import Blocked, LeaseLosses, losses_in, record_key
from holdfast.model.replies import Stored
from holdfast.ports.records import Records

log = logging.getLogger("holdfast.leases")

KEPT = 7 * 86_400.0
"""For how long, in seconds."""


async def note(records: Records, run: str, blocked: Blocked) -> None:
    """Count one more. It may get lost: then the run's error knows less."""
    key = record_key(run)
    try:
        written = False
        while not written:
            known = (await records.get(key)).records
            before = losses_in(known[0].value) if known else None
            losses = LeaseLosses(1 + (before.count if before else 0), blocked)
            value = msgspec.json.encode(losses).decode()
            expected = known[0].version if known else None
            written = isinstance(await records.put(key, value, expected=expected, ttl=KEPT), Stored)
    except HoldfastError as error:
        log.warning("run %s: why it lost its lease could not be kept: %s", run, error)
