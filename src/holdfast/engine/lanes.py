"""Lanes: which ones the pipelines use, and who leads a fifo lane.

The leader is the only worker that may claim from its lane. The right is a lock in the store, named
after the lane; its epoch is the leader's term, and every claim carries it. So a leader that was
paused past its lease claims nothing when it wakes up, however late it learns that it is deposed.
Order itself does not depend on the leader: the store claims only the head, and only when no other
run of the lane is under way, so a new leader finds the old one's run at the head and goes on with
it once its lease has ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from holdfast.engine.committer import Committer
from holdfast.engine.leader_history import LEASE_LOST, STOPPED, LeaderHistory
from holdfast.engine.locks import Lock
from holdfast.engine.runtime import Runtime
from holdfast.errors import ConfigurationError
from holdfast.model.commands import DefineLane
from holdfast.model.lane import Lane
from holdfast.model.leadership import Leaders
from holdfast.model.pipeline import Pipeline

log = logging.getLogger("holdfast.lanes")


def lanes_of(pipelines: Iterable[Pipeline[Any]]) -> dict[Lane, list[str]]:
    """The lanes that the pipelines use, each with the names of its pipelines. Raises
    ConfigurationError when one name means two lanes."""
    by_name: dict[str, Lane] = {}
    lanes: dict[Lane, list[str]] = {}
    for pipeline in pipelines:
        lane = by_name.setdefault(pipeline.lane.name, pipeline.lane)
        if lane != pipeline.lane:
            raise ConfigurationError(
                f"lane {lane.name!r} is declared both as {lane.order} ({lane.head}) and as "
                f"{pipeline.lane.order} ({pipeline.lane.head}): choose one"
            )
        lanes.setdefault(lane, []).append(pipeline.name)
    return lanes


async def define_lanes(committer: Committer, pipelines: Iterable[Pipeline[Any]]) -> None:
    """Make the lanes of the pipelines known to the store. Raises ConfigurationError when the store
    knows one of them with another order."""
    lanes = list(lanes_of(pipelines))
    definitions = [DefineLane(lane.name, lane.order, lane.head) for lane in lanes]
    orders = await asyncio.gather(*map(committer.send, definitions))
    for lane, stored in zip(lanes, orders, strict=True):
        if stored != lane.order:
            raise ConfigurationError(
                f"lane {lane.name!r} is {stored!r} in this store and {lane.order!r} in the code: "
                "a lane never changes its order; use another lane name"
            )


class LaneLeader:
    """A worker's candidacy for one lane."""

    def __init__(
        self, runtime: Runtime, lane: Lane, worker: str, leaders: Leaders | None = None
    ) -> None:
        leaders = leaders or Leaders()
        self._lane = lane.name
        self._worker = worker
        self._meter = runtime.meter
        self._leads = False
        self._key = leaders.key_of(lane.name)
        self._times = leaders.of(lane.name).times(lane.name, runtime.times)
        self._lost_term: int | None = None
        self._history = LeaderHistory(runtime.records, lane.name)
        self._lock = Lock(
            runtime,
            lane.leader_lock,
            owner=worker,
            internal=True,
            on_lost=self._note_lost,
            times=None if self._times == runtime.times else self._times,
        )

    @property
    def token(self) -> str:
        return self._lock.token

    @property
    def term(self) -> int:
        return self._lock.epoch

    async def lead(self) -> bool:
        """Whether this worker leads now; tries to become leader if nobody does."""
        if self._lock.held:
            return True
        self._note_lost()
        await self._write_loss()
        if await self._lock.try_acquire():
            self._leads = True
            self._log("gained")
            if self._meter is not None:
                self._meter.leadership_began(self._lane)
            await self._history.begin(self._worker, self.term)
        return self._leads

    async def resign(self) -> None:
        """Let the next one lead at once."""
        await self._write_loss()
        if await self._lock.release():
            self._log("given up")
            await self._history.end(self.term, STOPPED)
        self._leads = False

    def _note_lost(self) -> None:
        if self._leads:
            self._leads = False
            self._lost_term = self.term
            self._log("lost")

    async def _write_loss(self) -> None:
        """Not when it is noticed: the store may be away then."""
        if self._lost_term is not None:
            await self._history.end(self._lost_term, LEASE_LOST)
            self._lost_term = None

    def _log(self, change: str) -> None:
        log.info(
            "lane %s: leadership %s, term %d, worker %s",
            self._lane,
            change,
            self.term,
            self._worker,
            extra={
                "fields": {
                    "event": f"leadership.{change.replace(' ', '_')}",
                    "lane": self._lane,
                    "term": self.term,
                    "worker": self._worker,
                    "leader_key": self._key,
                    "ttl": self._times.ttl,
                }
            },
        )
