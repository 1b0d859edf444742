"""Lists of runs: the narrowest sorted set that has all that match, read from its newest end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.adapters.redis import codec
from holdfast.adapters.redis.codec import SMALL, WHOLE
from holdfast.adapters.redis.facts import Ask
from holdfast.model.commands import Prune
from holdfast.model.machine.facts import RunFacts
from holdfast.model.run import Run, RunState
from holdfast.ports.store import RunFilter

PAGE = 200
"""Runs that are looked at in one go, where most may not match."""
NAMES = 5000
"""Ids that are looked at in one go: none is loaded that does not match."""

Numbered = tuple[int, str]
"""A run's number and its id."""

INDEXED_STATES = (RunState.PAUSED, RunState.FAILED, RunState.CANCELLED)


async def runs(ask: Ask, where: RunFilter, limit: int, below: float) -> list[Run]:
    """The newest runs with numbers below one."""
    matches: list[Run] = []
    is_plain = where in (RunFilter(), RunFilter(tenant=where.tenant))
    if _is_counted(where):  # whoever has all that there are need not look for more
        limit = min(limit, sum((await count(ask, where)).values()))
    while len(matches) < limit:
        size = min(limit - len(matches), 1000) if is_plain else NAMES if where.id_prefix else PAGE
        page = await _newest(ask, where, below, size)
        named = [id for _, id in page if id.startswith(where.id_prefix or "")]
        rows = await load(ask, named, WHOLE if is_plain else SMALL)
        ids = [run.id for run in rows if where.matches(run)][: limit - len(matches)]
        matching = rows if is_plain else await load(ask, ids, WHOLE)
        matches += [run.view() for run in matching]
        if len(page) < size:
            break
        below = page[-1][0]
    return matches


def _is_counted(where: RunFilter) -> bool:
    """Whether the matching runs are counted as they change, and have no list of their own."""
    if where.key is not None or where.id_prefix is not None or where.labels:
        return False
    is_narrow = where.pipeline is not None or where.lane is not None
    return where.state == RunState.SUCCEEDED or (where.state is None and is_narrow)


async def load(ask: Ask, ids: Sequence[str], fields: Sequence[str]) -> list[RunFacts]:
    rows = await ask([("HMGET", f"run:{id}", *fields) for id in ids])
    loaded = [codec.run(id, row) for id, row in zip(ids, rows, strict=True)]
    return [run for run in loaded if run is not None]  # some may have gone meanwhile


# --- sources --------------------------------------------------------------------------------------


async def _newest(ask: Ask, where: RunFilter, below: float, size: int) -> list[Numbered]:
    """The newest of all that may match: at most `size`, and fewer only if there are no more."""
    if where.key is not None:
        candidates = await _with_key(ask, where)
    elif where.labels:
        candidates = await _from_sets(ask, await _label_keys(ask, where), below, size)
    elif where.state == RunState.RUNNING:
        candidates = await _numbered(ask, await _members(ask, ["leases"]))
    elif where.state == RunState.QUEUED:
        candidates = await _queued(ask, where, below, size)
    elif where.state in INDEXED_STATES:
        candidates = await _from_sets(ask, [f"state:{where.state}"], below, size)
    else:
        key = "runs" if where.tenant is None else f"tenant:{where.tenant}"
        candidates = await _from_sets(ask, [key], below, size)
    return sorted((named for named in candidates if named[0] < below), reverse=True)[:size]


async def _from_sets(ask: Ask, keys: Sequence[str], below: float, size: int) -> list[Numbered]:
    """From sets whose scores are the numbers of runs."""
    top = "+inf" if below == float("inf") else f"({below:.0f}"
    bounds = ("-inf", "WITHSCORES", "LIMIT", 0, size)
    answers = await ask([("ZREVRANGEBYSCORE", key, top, *bounds) for key in keys])
    return [(int(score), id.decode()) for flat in answers for id, score in codec.pairs(flat)]


async def _members(ask: Ask, keys: Sequence[str]) -> list[str]:
    answers = await ask([("ZRANGE", key, 0, -1) for key in keys])
    return [id.decode() for members in answers for id in members]


async def _numbered(ask: Ask, ids: Sequence[str]) -> list[Numbered]:
    pieces = [ids[start : start + 1000] for start in range(0, len(ids), 1000)]
    answers = await ask([("ZMSCORE", "runs", *piece) for piece in pieces])
    numbers = [number for some in answers for number in some]
    return [(int(n), id) for n, id in zip(numbers, ids, strict=True) if n is not None]


async def tenants(ask: Ask, where: RunFilter) -> list[str]:
    if where.tenant is not None:
        return [where.tenant]
    [members] = await ask([("SMEMBERS", "tenants")])
    return sorted(name.decode() for name in members)


async def _with_key(ask: Ask, where: RunFilter) -> list[Numbered]:
    names = [f"{tenant}\0{where.key}" for tenant in await tenants(ask, where)]
    answers = await ask([("HGET", "keys", name) for name in names])
    return await _numbered(ask, [id.decode() for id in answers if id is not None])


async def _label_keys(ask: Ask, where: RunFilter) -> list[str]:
    name, value = next(iter(where.labels.items()))
    return [f"label:{tenant}\0{name}\0{value}" for tenant in await tenants(ask, where)]


async def _queued(ask: Ask, where: RunFilter, below: float, size: int) -> list[Numbered]:
    if where.lane is None:
        lanes = sorted({lane for _, _, lane, _, _ in await counts(ask, RunFilter())})
    else:
        lanes = [where.lane]
    names = await ask([("ZRANGE", f"queues:{lane}", 0, -1) for lane in lanes])
    queues = [
        f"ready:{lane}\0{name.decode()}"
        for lane, members in zip(lanes, names, strict=True)
        for name in members
    ]
    fifo = [f"fifo:{lane}" for lane in lanes]
    ready = await _from_sets(ask, [*queues, *fifo], below, size)
    delayed = await _members(ask, [f"delayed:{lane}" for lane in lanes])
    return ready + await _numbered(ask, delayed)


# --- counting -------------------------------------------------------------------------------------


async def counts(ask: Ask, where: RunFilter) -> list[tuple[str, str, str, str, int]]:
    """Tenant, pipeline, lane, state and number of runs."""
    names = await tenants(ask, where)
    answers = await ask([("HGETALL", f"counts:{tenant}") for tenant in names])
    rows: list[tuple[str, str, str, str, int]] = []
    for tenant, flat in zip(names, answers, strict=True):
        for name, number in codec.pairs(flat):
            pipeline, lane, state = name.decode().split("\0")
            rows.append((tenant, pipeline, lane, state, int(number)))
    return rows


async def count(ask: Ask, where: RunFilter) -> dict[str, int]:
    total: dict[str, int] = {}
    if where.key is not None or where.id_prefix is not None or where.labels:
        numbers: list[Any] = [
            (run.state, 1) for run in await runs(ask, where, 1 << 40, float("inf"))
        ]
    else:
        numbers = [
            (state, number)
            for _, pipeline, lane, state, number in await counts(ask, where)
            if where.pipeline in (None, pipeline)
            and where.lane in (None, lane)
            and where.state in (None, state)
        ]
    for state, number in numbers:
        total[str(state)] = total.get(str(state), 0) + number
    return total


# --- what the sweeper looks for -------------------------------------------------------------------


async def ended_leases(ask: Ask, limit: int, mono: float) -> list[str]:
    """Running runs whose lease has ended, the first that ended first."""
    [ids] = await ask([("ZRANGEBYSCORE", "leases", "-inf", codec.score(mono), "LIMIT", 0, limit)])
    runs = await load(ask, [id.decode() for id in ids], SMALL)
    return [run.id for run in sorted(runs, key=lambda run: (run.lease_until or 0.0, run.seq))]


async def expired(ask: Ask, prune: Prune, now: float) -> list[str]:
    """Finished runs that retention lets go, the oldest first. Twice as many are looked at: some may
    have to stay."""
    limits = {"failed": prune.keep_failed, "finished": prune.keep}
    answers = await ask(
        [
            ("ZRANGEBYSCORE", key, "-inf", codec.score(now - keep), "LIMIT", 0, 2 * prune.limit)
            for key, keep in limits.items()
        ]
    )
    old = await load(ask, [id.decode() for ids in answers for id in ids], SMALL)
    events = await ask([("HGET", f"run:{run.id}", f"e{run.events}") for run in old])
    last_sent = (1 << 62) if prune.sent is None else prune.sent
    expired_runs = [
        run
        for run, event in zip(old, events, strict=True)
        if not run.holds_lane and event is not None and codec.unpack(4, event)[3] <= last_sent
    ]
    expired_runs.sort(key=lambda run: (run.finished, run.seq))
    return [run.id for run in expired_runs[: prune.limit]]
