"""The workers of a store, as people see them: the shape behind `workers list`."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

import msgspec
from msgspec import Struct

from holdfast.engine.registry import PREFIX, WorkerInfo
from holdfast.ports.records import Record, Records

_decode = msgspec.json.Decoder(WorkerInfo).decode


class WorkerView(Struct):
    """`silent` is how long ago it wrote its record, in seconds, by the store's clock."""

    name: str
    state: Literal["alive", "lost"]
    host: str
    pid: int
    version: str
    pipelines: list[str]
    concurrency: int
    active: int
    last_beat: datetime
    silent: float


async def list_workers(records: Records) -> list[WorkerView]:
    """All workers that have not stopped, by name; those that vanished are shown for an hour."""
    workers: list[WorkerView] = []
    page = await records.list(PREFIX)
    while page.records:
        for record in page.records:
            with suppress(msgspec.MsgspecError):  # one that can't be read hides no other
                workers.append(_view(record, page.now))
        page = await records.list(PREFIX, after=page.records[-1].key)
    return workers


def _view(record: Record, now: float) -> WorkerView:
    info = _decode(record.value)
    silent = max(0.0, now - record.updated)
    return WorkerView(
        info.name,
        "lost" if silent > info.lost_after else "alive",
        info.host,
        info.pid,
        info.version,
        info.pipelines,
        info.concurrency,
        info.active,
        datetime.fromtimestamp(record.updated, UTC),
        silent,
    )
