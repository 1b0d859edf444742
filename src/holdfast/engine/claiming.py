"""Claiming: one claimer for each lane that a worker serves.

A claimer is one loop: wait for a free slot, claim, begin what was claimed, and when nothing was
there wait for a change in the store, at most the poll interval. In a fifo lane only the leader
claims."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from msgspec import Struct

from holdfast.engine.capacity import Capacity
from holdfast.engine.keeper import CATCH_UP
from holdfast.engine.lanes import LaneLeader
from holdfast.engine.runtime import Runtime
from holdfast.errors import Transient
from holdfast.model.commands import Claim, Claimed, Wake
from holdfast.model.lane import Lane
from holdfast.model.options import WorkerOptions

log = logging.getLogger("holdfast.worker")

CLAIMS_AT_ONCE = 2
"""Claims of a lane that are under way at once: while the store is busy with one, the worker begins
what the other brought."""

Begin = Callable[[Claimed, float], None]
"""Called with a claimed run and the moment until which its lease can be trusted."""


class _Request(Struct, frozen=True):
    """A claim that was sent: its answer to come, how many runs at most, when it was sent, and after
    how many interventions."""

    answer: asyncio.Future[list[Claimed]]
    limit: int
    sent: float
    interventions: int


class LaneClaimer:
    """Claims the runs of one lane for one worker, and hands each to `begin`."""

    def __init__(
        self,
        runtime: Runtime,
        worker: str,
        lane: Lane,
        pipelines: list[str],
        options: WorkerOptions,
        capacity: Capacity,
        begin: Begin,
    ) -> None:
        self._runtime = runtime
        self._worker = worker
        self._lane = lane
        self._pipelines = pipelines
        self._poll_interval = options.poll
        self._batch = min(options.batch, -(-options.concurrency // CLAIMS_AT_ONCE))
        self._capacity = capacity
        self._begin = begin
        self._leader = (
            LaneLeader(runtime, lane, worker, options.leader) if lane.order == "fifo" else None
        )
        self._wake = Wake.WORKERS if self._leader is None else Wake.WAITERS
        self._claims: set[asyncio.Task[bool]] = set()
        self._early_claim: asyncio.Task[bool] | None = None
        self._retries_due: list[float] = []
        self._last_served = ""
        """The tenant of the run that was claimed last: the next claim begins behind it."""

    async def run(self) -> None:
        """Claim until the capacity is closed. What was requested then still comes: see `finish`."""
        change = 0
        try:
            while not self._capacity.closed:
                await self._capacity.wait_for_slot()
                if not await self._try_to_claim() and not self._capacity.closed:
                    change = await self._runtime.store.wait(
                        change, self._time_to_wait(), wake=self._wake
                    )
        finally:
            if self._leader is not None:
                await self._leader.resign()

    def claim_early(self) -> None:
        """Let a claim leave together with a submission that is about to be sent: one commit less
        until work begins. Of no use in a fifo lane, where the leader has to be asked first."""
        under_way = self._early_claim is not None and not self._early_claim.done()
        is_behind = self._runtime.keeper.is_behind
        if self._leader is None and not under_way and self._capacity.free and not is_behind:
            self._early_claim = self._start_claim()

    def expect_retry(self, delay: float) -> None:
        """A run of this lane can be claimed again after so many seconds; nothing will say so."""
        self._retries_due.append(self._runtime.committer.loop.time() + delay)

    async def finish(self) -> None:
        """Wait until every claim that was sent is answered, and its runs have been handed on."""
        while self._claims:
            await asyncio.wait(self._claims)

    def _time_to_wait(self) -> float:
        now = self._runtime.committer.loop.time()
        self._retries_due = [due for due in self._retries_due if due > now]
        return min([self._poll_interval, *(due - now for due in self._retries_due)])

    async def _try_to_claim(self) -> bool:
        """Whether it is worth while to try again at once."""
        if self._runtime.keeper.is_behind:
            await asyncio.sleep(CATCH_UP)
            return True
        try:
            if self._leader is not None and not await self._leader.lead():
                return False
            return await asyncio.shield(self._start_claim(self._request()))
        except Transient as error:
            log.warning("lane %s: can't claim: %s", self._lane.name, error)
            await asyncio.sleep(self._poll_interval)
            return True

    def _start_claim(self, request: _Request | None = None) -> asyncio.Task[bool]:
        """In a task of its own: who waits for it may be cancelled, what the store gives to it must
        not be lost. It begins with this request, or makes one when the task begins."""
        claim = asyncio.create_task(self._claim(request))
        self._claims.add(claim)
        claim.add_done_callback(self._claims.discard)
        claim.add_done_callback(_retrieve_exception)
        return claim

    async def _claim(self, request: _Request | None) -> bool:
        """Claim and begin as many runs as there are, and as there are slots for. Whether there may
        be more."""
        request, claimed = request or self._request(), None
        while request is not None:
            claimed = await self._receive(request)
            trusted_until = self._runtime.times.trusted_until(request.sent)
            has_more = self._leader is None and len(claimed) == request.limit
            if has_more and self._capacity.free and len(self._claims) < CLAIMS_AT_ONCE:
                self._start_claim()
            for run in claimed:
                self._begin(run, trusted_until)
            if request.interventions != self._runtime.keeper.interventions:
                self._runtime.keeper.check_now()  # one of these may have been cancelled meanwhile
            # Runs that end at once send their outcomes now: the next claim goes with them.
            await asyncio.sleep(0)
            request = self._request() if has_more else None
        return claimed is None or len(claimed) > 0

    def _request(self) -> _Request | None:
        limit = min(self._capacity.free, self._batch)
        if limit <= 0:
            return None
        self._capacity.reserve(limit)
        runtime, leader = self._runtime, self._leader
        sent = runtime.clock.monotonic()
        claim = Claim(
            self._worker,
            self._lane.name,
            self._pipelines,
            limit,
            runtime.times.ttl,
            self._capacity.free_bytes,
            leader.token if leader else None,
            leader.term if leader else 0,
            self._last_served,
        )
        answer = runtime.committer.send(claim)
        return _Request(answer, limit, sent, runtime.keeper.interventions)

    async def _receive(self, request: _Request) -> list[Claimed]:
        claimed: list[Claimed] = []
        try:
            claimed = await request.answer
        finally:
            self._capacity.release(request.limit - len(claimed))
        for run in claimed:
            self._capacity.add_input(len(run.input))
        if claimed:
            self._last_served = claimed[-1].tenant
        return claimed


def _retrieve_exception(claim: asyncio.Task[bool]) -> None:
    """Whoever waits for a claim reports its failure; for an early claim nobody does, and the lane's
    own loop runs into the same failure."""
    if not claim.cancelled():
        claim.exception()
