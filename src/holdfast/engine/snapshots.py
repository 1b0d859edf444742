"""A run as it is now, read so that all of it belongs to one moment."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Sequence

import msgspec
from msgspec import Struct

from holdfast.engine.payloads import Payloads
from holdfast.errors import Damaged
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event, EventType
from holdfast.model.projection import RunSnapshot
from holdfast.model.run import Run, RunState
from holdfast.ports.store import Store

TRIES = 5
"""How often a run may change while it is read before parts of two moments are good enough: whoever
changes it so often refreshes it again soon."""
CACHED_RUNS = 256
"""Runs whose step results are kept: as long as no step ends, they need not be read again."""

CHANGES_OF_RESULTS = (
    EventType.STEP_COMPLETED,
    EventType.STEP_SKIPPED,
    EventType.CHECKPOINT_QUARANTINED,
)


class StepCheckpoints(Struct, frozen=True):
    """The checkpoints of steps, their values resolved."""

    last: int
    """The number of the last event that changed them."""
    checkpoints: Sequence[Checkpoint]


class Snapshots:
    """Reads runs for document projections."""

    def __init__(self, store: Store, payloads: Payloads) -> None:
        self._store = store
        self._payloads = payloads
        self._results: OrderedDict[str, StepCheckpoints] = OrderedDict()

    async def read(
        self, id: str, now: float, steps: Sequence[str] = (), *, results: bool = False
    ) -> RunSnapshot | None:
        """None if the run is gone. `steps` are the names of its pipeline's steps, if known."""
        snapshot: RunSnapshot | None = None
        for _ in range(TRIES):
            run = await self._store.run(id)
            if run is None:
                return None
            snapshot = await self._read_rest(run, now, steps, results)
            if await self._is_unchanged(run):
                break
        return snapshot

    async def _read_rest(
        self, run: Run, now: float, steps: Sequence[str], results: bool
    ) -> RunSnapshot:
        history = await self._store.history(run.id)
        checkpoints = await self._step_results(run.id, history) if results else ()
        return RunSnapshot(
            run,
            history,
            steps,
            msgspec.json.decode(await _unless_damaged(self._payloads.input_of(run))),
            msgspec.json.decode(await _unless_damaged(self._payloads.result_of(run)))
            if run.state is RunState.SUCCEEDED
            else None,
            now,
            checkpoints,
        )

    async def _is_unchanged(self, run: Run) -> bool:
        again = await self._store.run(run.id)
        return again is None or again.events == run.events

    async def _step_results(self, id: str, history: Sequence[Event]) -> Sequence[Checkpoint]:
        last = max((e.seq for e in history if e.type in CHANGES_OF_RESULTS), default=0)
        known = self._results.get(id)
        if known is None or known.last != last:
            known = self._results[id] = StepCheckpoints(last, await self._read_results(id))
        self._results.move_to_end(id)
        if len(self._results) > CACHED_RUNS:
            self._results.popitem(last=False)
        return known.checkpoints

    async def _read_results(self, id: str) -> list[Checkpoint]:
        checkpoints: list[Checkpoint] = []
        for checkpoint in await self._store.checkpoints(id):
            if checkpoint.key == "":
                value = await _unless_damaged(self._payloads.result(checkpoint))
                checkpoints.append(msgspec.structs.replace(checkpoint, value=value))
        return checkpoints


async def _unless_damaged(text: Awaitable[str]) -> str:
    """What is damaged is shown as nothing."""
    try:
        return await text
    except Damaged:
        return "null"
