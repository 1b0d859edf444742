"""The leader of a fifo lane: the only worker that may claim from it.

The right is a lock in the store, named after the lane; its epoch is the leader's term, and every
claim carries it. So a leader that was paused past its lease claims nothing when it wakes up,
however late it learns that it is deposed. Order itself does not depend on the leader: the store
claims only the head, and only when no other run of the lane is under way, so a new leader finds the
old one's run at the head and goes on with it once its lease has ended."""

from __future__ import annotations

from holdfast.engine.locks import Lock
from holdfast.engine.runtime import Runtime
from holdfast.model.lane import Lane


class LaneLeader:
    """A worker's candidacy for one lane."""

    def __init__(self, runtime: Runtime, lane: Lane, worker: str) -> None:
        self._lock = Lock(runtime, lane.leader_lock, owner=worker)

    @property
    def token(self) -> str:
        return self._lock.token

    @property
    def term(self) -> int:
        return self._lock.epoch

    async def lead(self) -> bool:
        """Whether this worker leads now; tries to become leader if nobody does."""
        return self._lock.held or await self._lock.try_acquire()

    async def resign(self) -> None:
        """Let the next one lead at once. Only after this worker's runs have ended or been handed
        over."""
        await self._lock.release()
