"""What other systems see of pipeline locks: on Redis `GET pipeline_lock:{tenant}:{pipeline}` gives
the `pipeline_logging_id` that holds the lock.

The lock itself is a record in the store. The document is written after it and decides nothing:
when it can't be written, the lock holds all the same."""

from __future__ import annotations

import logging
from urllib.parse import quote

from holdfast.errors import Transient
from holdfast.ports.documents import Documents
from holdfast.services.pipeline_locks import PREFIX, HeldLock

log = logging.getLogger("holdfast.pipeline_locks")


class LockDocuments:
    """Versions are moments of the store, in microseconds: what happened later wins."""

    def __init__(self, documents: Documents | None) -> None:
        self._documents = documents

    async def show(self, lock: HeldLock, now: float) -> None:
        """It is held from now on, for its timeout."""
        if self._documents is None:
            return
        try:
            key, version = document_key(lock.tenant, lock.pipeline), _version(now)
            await self._documents.put(key, lock.id.encode(), version=version, ttl=lock.timeout)
        except Transient as error:
            _warn(lock.tenant, lock.pipeline, error)

    async def remove(self, tenant: str, pipeline: str, now: float) -> None:
        """It is free."""
        if self._documents is None:
            return
        try:
            await self._documents.delete(document_key(tenant, pipeline), version=_version(now))
        except Transient as error:
            _warn(tenant, pipeline, error)

    async def close(self) -> None:
        if self._documents is not None:
            await self._documents.close()


def document_key(tenant: str, pipeline: str) -> str:
    """`a:b` with `c` and `a` with `b:c` have keys of their own."""
    return f"{PREFIX}{quote(tenant, safe='@/ ')}:{quote(pipeline, safe='@/ ')}"


def _version(now: float) -> str:
    return f"{round(now * 1_000_000):020d}"


def _warn(tenant: str, pipeline: str, error: Transient) -> None:
    log.warning("Lock of %s:%s can't be shown to others: %s", tenant, pipeline, error)
