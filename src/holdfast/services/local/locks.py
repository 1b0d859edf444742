"""Locks on an open store."""

from __future__ import annotations

from holdfast.errors import Conflict
from holdfast.services.held_locks import LockView, held_locks
from holdfast.services.local.context import ServiceContext
from holdfast.services.service import Released


class LocalLocks:
    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def list(self) -> list[LockView]:
        return await held_locks(self._context.store, self._context.leaders)

    async def release(self, name: str, *, reason: str = "") -> Released:
        lock = next((lock for lock in await self.list() if lock.name == name), None)
        if lock is not None and lock.kind == "run":
            raise Conflict(
                f"{name} is held by run {lock.held_for}, and ends with it: `holdfast runs cancel "
                f"{lock.held_for}`",
                lock.held_for,
            )
        actor = self._context.actor
        await self._context.operations.release_lock(name, actor=actor, reason=reason)
        return Released(name, True, lock.holder if lock is not None else None)
