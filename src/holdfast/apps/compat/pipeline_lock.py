"""`PipelineLockManager`: one live execution of a pipeline for each tenant.

    lock_manager = get_pipeline_lock_manager()
    lock_acquired, existing_id = await lock_manager.acquire_lock(
        tenant_id="acme1281",
        pipeline_id="gcp_billing_export",
        pipeline_logging_id="abc-123-def-456",
        locked_by="api_user",
    )

The locks live in the store that `store=` or the settings `locks.store` and `store` name, also in
Firestore, and in memory when nobody names one: then a second process is refused, since it would not
know of them. A store that can't be reached raises StoreUnavailable, and nothing should run."""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from holdfast.apps.compat.lock_documents import LockDocuments
from holdfast.apps.compat.lock_storage import lock_storage
from holdfast.apps.compat.single_process import refuse_other_processes
from holdfast.bootstrap import make_documents, with_server_settings
from holdfast.bootstrap.metrics import make_meter
from holdfast.errors import ConfigurationError, StoreUnavailable
from holdfast.model.clock import Clock, SystemClock
from holdfast.ports.documents import Documents
from holdfast.ports.store import Store
from holdfast.services.pipeline_locks import HeldLock, PipelineLocks, new_lock
from holdfast.settings import Loaded, load

log = logging.getLogger("holdfast.pipeline_locks")


@dataclass
class PipelineLock:
    """Represents an active pipeline execution lock."""

    pipeline_logging_id: str
    """Of the run that holds it."""
    tenant_id: str
    pipeline_id: str
    locked_at: float
    """When it was acquired, in seconds since 1970, by the store's clock."""
    locked_by: str
    """Who triggered the pipeline."""
    reason: str = ""
    """Why, if somebody said so."""
    timeout_seconds: float = 3600.0


class Acquisition(NamedTuple):
    """The answer of `acquire_lock`: two values, and true only if the lock was acquired."""

    acquired: bool
    existing_id: str | None

    def __bool__(self) -> bool:
        return self.acquired


class PipelineLockManager:
    """Locks with a timeout of their own, which ends also under a live holder, unless they are
    renewed: `renew_seconds`, or `renew_lock` by hand. Any task of any loop in any thread may
    call."""

    def __init__(
        self,
        lock_timeout_seconds: float | None = None,
        *,
        store: str | Store | None = None,
        renew_seconds: float | None = None,
        retries: int | None = None,
        retry_delay_seconds: float | None = None,
        clock: Clock | None = None,
        app: str | None = None,
    ) -> None:
        """What is not given is as the settings `locks.*` and `store` say. `app` names the program
        whose processes must not hold locks in memory at once."""
        loaded = load()
        settings = loaded.settings.locks
        self.lock_timeout_seconds = _above_zero(
            settings.timeout if lock_timeout_seconds is None else lock_timeout_seconds
        )
        self._renew = settings.renew if renew_seconds is None else renew_seconds
        self._retries = settings.retries if retries is None else retries
        self._delay = settings.retry_delay if retry_delay_seconds is None else retry_delay_seconds
        self._app = app or settings.app
        self._storage = lock_storage(store, loaded, clock or SystemClock())
        self._locks = PipelineLocks(self._storage.records)
        self._meter = make_meter(loaded.settings) if settings.metrics else None
        self._documents = LockDocuments(_documents(store, loaded))
        self._unanswered: dict[tuple[str, str, str], str] = {}
        """The tokens of acquisitions whose answer was lost: they may have succeeded."""
        self._renewing: dict[tuple[str, str, str], asyncio.Task[None]] = {}

    def with_timeout(self, lock_timeout_seconds: float) -> PipelineLockManager:
        """The same locks, in the same store, with another timeout for those to come."""
        manager = copy.copy(self)
        manager.lock_timeout_seconds = _above_zero(lock_timeout_seconds)
        return manager

    async def acquire_lock(
        self,
        tenant_id: str,
        pipeline_id: str,
        pipeline_logging_id: str,
        locked_by: str,
        *,
        reason: str = "",
    ) -> Acquisition:
        """`(True, None)`, or `(False, id)` with the `pipeline_logging_id` that holds the lock."""
        await self._open()
        who = (tenant_id, pipeline_id, pipeline_logging_id)
        new = new_lock(*who, locked_by, self.lock_timeout_seconds, reason)
        if (token := self._unanswered.get(who)) is not None:
            new = replace(new, token=token)
        lock = await self._acquire(who, new)
        if lock.token != new.token:
            self._say("Lock held by another execution", lock)
            return Acquisition(False, lock.id)
        await self._documents.show(lock, lock.locked_at)
        self._say("Lock acquired", lock)
        self._keep(who)
        return Acquisition(True, None)

    async def _acquire(self, who: tuple[str, str, str], new: HeldLock) -> HeldLock:
        """Who holds the lock, after as many tries as are allowed."""
        started, result = time.monotonic(), "error"
        try:
            lock = await self._take(who, new)
            for _ in range(self._retries):
                if lock.token != new.token:
                    await asyncio.sleep(self._delay)
                    lock = await self._take(who, new)
            result = "success" if lock.token == new.token else "conflict"
            return lock
        finally:
            if self._meter is not None:
                self._meter.lock_asked(*who[:2], result, time.monotonic() - started)

    async def release_lock(
        self, tenant_id: str, pipeline_id: str, pipeline_logging_id: str
    ) -> bool:
        """Whether the lock was held by this execution, and is free now."""
        await self._open()
        who = (tenant_id, pipeline_id, pipeline_logging_id)
        if (renewing := self._renewing.pop(who, None)) is not None:
            renewing.get_loop().call_soon_threadsafe(renewing.cancel)
        released = await self._locks.release(*who)
        if released is None:
            log.warning("Lock not found or held by different execution: %s:%s, wanted by %s", *who)
            return False
        await self._documents.remove(tenant_id, pipeline_id, released.now)
        self._say("Lock released", released.lock)
        if self._meter is not None:
            held = max(0.0, released.now - released.lock.locked_at)
            self._meter.lock_released(tenant_id, pipeline_id, held)
        return True

    async def renew_lock(self, tenant_id: str, pipeline_id: str, pipeline_logging_id: str) -> bool:
        """Let the timeout begin anew. False when the lock is not held by this execution any
        more."""
        await self._open()
        renewed = await self._locks.renew(tenant_id, pipeline_id, pipeline_logging_id)
        if renewed is not None:
            await self._documents.show(renewed.lock, renewed.now)
        return renewed is not None

    async def get_lock_status(self, tenant_id: str, pipeline_id: str) -> PipelineLock | None:
        """The lock, or None if nobody holds it."""
        await self._open()
        lease = await self._locks.get(tenant_id, pipeline_id)
        return _pipeline_lock(lease.lock) if lease else None

    async def get_active_locks(self, tenant_id: str | None = None) -> dict[str, PipelineLock]:
        """The locks that are held, of one tenant or of all, by `{tenant_id}:{pipeline_id}`."""
        await self._open()
        await self._locks.warn_of_expired()
        locks = [lease.lock async for lease in self._locks.held(tenant_id)]
        return {f"{lock.tenant}:{lock.pipeline}": _pipeline_lock(lock) for lock in locks}

    async def close(self) -> None:
        """Stop renewing. What is held stays held until its timeout."""
        for renewing in self._renewing.values():
            renewing.cancel()
        await asyncio.gather(*self._renewing.values(), return_exceptions=True)
        self._renewing.clear()
        await self._documents.close()
        await self._storage.close()

    async def _open(self) -> None:
        if not self._storage.is_shared:
            refuse_other_processes(self._app)
        await self._storage.ready()

    async def _take(self, who: tuple[str, str, str], new: HeldLock) -> HeldLock:
        """As `PipelineLocks.take`. An acquisition whose answer was lost counts when it is repeated:
        else the caller would be told that it stands in its own way."""
        try:
            lock = await self._locks.take(new)
        except StoreUnavailable:
            self._unanswered[who] = new.token
            raise
        self._unanswered.pop(who, None)
        return lock

    def _keep(self, who: tuple[str, str, str]) -> None:
        if self._renew:
            self._renewing[who] = asyncio.create_task(self._renew_until_lost(who, self._renew))

    async def _renew_until_lost(self, who: tuple[str, str, str], interval: float) -> None:
        while True:
            await asyncio.sleep(interval)
            try:
                if not await self.renew_lock(*who):
                    log.warning("Lock lost: %s:%s, held by %s until now", *who)
                    self._renewing.pop(who, None)
                    return
            except StoreUnavailable as error:
                log.warning("Lock not renewed: %s:%s, held by %s: %s", *who, error)

    def _say(self, event: str, lock: HeldLock) -> None:
        log.info(event, extra={**lock.fields, "fields": {**lock.fields, "by": lock.locked_by}})


def _documents(store: str | Store | None, loaded: Loaded) -> Documents | None:
    """Where the settings want documents, else beside the locks, if these are on Redis."""
    settings = loaded.settings
    url = store if isinstance(store, str) else settings.locks.store or settings.store
    if not loaded.is_default("documents"):
        url = settings.documents or "none"
    elif not url.startswith(("redis:", "rediss:")) or not isinstance(store, str | None):
        return None
    return make_documents(with_server_settings(url, settings), SystemClock())


def _above_zero(timeout: float) -> float:
    if timeout <= 0:
        raise ConfigurationError(
            f"lock_timeout_seconds is {timeout:g}: a lock has to last for a while"
        )
    return timeout


def _pipeline_lock(lock: HeldLock) -> PipelineLock:
    return PipelineLock(
        lock.id,
        lock.tenant,
        lock.pipeline,
        lock.locked_at,
        lock.locked_by,
        lock.reason,
        lock.timeout,
    )


_managers: dict[float | None, PipelineLockManager] = {}


def get_pipeline_lock_manager(lock_timeout_seconds: float | None = None) -> PipelineLockManager:
    """The manager of this process. A call with another timeout gets a manager of the same locks
    with that timeout."""
    shared = _managers.get(None)
    if shared is None:
        shared = _managers[None] = PipelineLockManager(lock_timeout_seconds)
    if lock_timeout_seconds is None or lock_timeout_seconds == shared.lock_timeout_seconds:
        return shared
    if lock_timeout_seconds not in _managers:
        _managers[lock_timeout_seconds] = shared.with_timeout(lock_timeout_seconds)
    return _managers[lock_timeout_seconds]
