"""What the server gives back, as the values of the port. Packed fields hold their values one after
another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any

import msgspec

from holdfast.model.checkpoint import Checkpoint
from holdfast.model.event import Event
from holdfast.model.lease import LockInfo
from holdfast.model.run import ErrorInfo, Progress, Run, RunState
from holdfast.ports.mover import Mark
from holdfast.ports.store import Audit, DeadLetter, LaneInfo, StoredLog

pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode
_error = msgspec.json.Decoder(ErrorInfo).decode
_progress = msgspec.json.Decoder(Progress).decode
_attributes = msgspec.json.Decoder(dict[str, str]).decode

STATES = [
    RunState.QUEUED,
    RunState.RUNNING,
    RunState.PAUSED,
    RunState.SUCCEEDED,
    RunState.FAILED,
    RunState.CANCELLED,
]
"""Their numbers in the store, from 1."""
FENCE = Struct(">QBQdIddH")
"""As in `lua/prelude.lua`."""


def unpack(count: int, packed: bytes) -> list[Any]:
    """`count` values that were packed one after another: with this in front they are an array."""
    return _unpack(bytes((0x90 | count,)) + packed)


def packed(*values: Any) -> bytes:
    """The other way round: an array without its first byte."""
    return pack(values)[1:]


def lease_ends(fence: bytes) -> float:
    """By the clock of leases, which `lua/clock.lua` describes."""
    return FENCE.unpack(fence)[3]


def epoch_of(lock: bytes) -> int:
    """The epoch of a lock, which `lua/locks.lua` makes longer while it is held."""
    return unpack(6 if lock.endswith(b"-" * 16) else 5, lock)[0]


def run(row: Sequence[Any]) -> Run:
    s, f, r, input, progress, result, error, id = row
    tenant, pipeline, lane, fingerprint, key, _, priority, parent, created, _ = unpack(10, s)
    seq, state, epoch, _, _, started, finished, _ = FENCE.unpack_from(f)
    attempts, limit, available, _, worker, reason, _ = unpack(7, r)
    return Run(
        id.decode(),
        tenant,
        pipeline,
        lane,
        STATES[state - 1],
        seq,
        priority,
        key,
        fingerprint,
        parent,
        epoch,
        attempts,
        limit,
        worker,
        created,
        available,
        started or None,
        finished or None,
        input.decode(),
        None if result is None else result.decode(),
        _error(error) if error else None,
        reason,
        _progress(progress) if progress else Progress(),
    )


def counts(flat: Sequence[Any]) -> dict[str, int]:
    return {name.decode(): number for name, number in _pairs(flat) if number}


def counted(runs: Sequence[Run]) -> dict[str, int]:
    return dict(Counter(str(run.state) for run in runs))


def checkpoints(flat: Sequence[bytes]) -> list[Checkpoint]:
    found = [_checkpoint(field, packed) for field, packed in _pairs(flat)]
    return sorted(found, key=lambda checkpoint: (checkpoint.step, checkpoint.key))


def _checkpoint(field: bytes, packed: bytes) -> Checkpoint:
    step, _, key = field[1:].decode().partition("\0")
    return Checkpoint(step, key, *unpack(6, packed))


def quarantined(rows: Sequence[bytes]) -> list[tuple[str, str, str]]:
    return [tuple(unpack(5, row)[:3]) for row in rows]  # type: ignore[misc]


def history(run: str, found: Sequence[Any]) -> list[Event]:
    spec, events = found
    if spec is None:
        return []
    tenant, pipeline, *_ = unpack(10, spec)
    return [
        _event(run, number, packed, tenant, pipeline) for number, packed in enumerate(events, 1)
    ]


def _event(run: str, number: int, packed: bytes, tenant: str, pipeline: str) -> Event:
    kind, at, data, position = unpack(4, packed)
    return Event(run, number, kind, at, data, tenant, pipeline, position)


def logs(rows: Sequence[bytes]) -> list[StoredLog]:
    return [StoredLog(*unpack(5, row)) for row in rows]


def dead_letter(id: bytes, packed: bytes, body: bytes) -> DeadLetter:
    source, reason, attributes, tenant, created, run, closed, resolution = unpack(8, packed)
    return DeadLetter(
        id.decode(),
        source,
        reason,
        body,
        _attributes(attributes),
        tenant,
        created,
        run,
        closed,
        resolution,
    )


def locks(packed: bytes) -> list[LockInfo]:
    return sorted((LockInfo(*row) for row in _unpack(packed)), key=lambda lock: lock.name)


def lanes(packed: bytes) -> list[LaneInfo]:
    return sorted((_lane(*row) for row in _unpack(packed)), key=lambda lane: lane.name)


def _lane(
    name: str,
    order: str,
    head: str,
    queued: int,
    running: int,
    leader: str | bool,
    term: int,
    blocked_by: str | bool,
) -> LaneInfo:
    return LaneInfo(name, order, head, queued, running, leader or None, term, blocked_by or None)  # type: ignore[arg-type]


def audit(rows: Sequence[bytes]) -> list[Audit]:
    return [Audit(*unpack(5, row)) for row in rows]


def mark(text: bytes | None) -> Mark | None:
    return msgspec.json.decode(text, type=Mark) if text else None


def _pairs(flat: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(flat[::2], flat[1::2], strict=True)
