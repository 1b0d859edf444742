"""What `holdfast doctor` looks at beyond the adapters' own health: a trial of the store, and how
the runs are doing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from msgspec.structs import replace

from holdfast.adapters.records import StoreRecords
from holdfast.engine import cursors
from holdfast.engine.cursors import Cursor
from holdfast.errors import HoldfastError, Transient
from holdfast.model.commands import Acquire, Acquired, Held, ReleaseLock
from holdfast.model.duration import humanise
from holdfast.model.ids import new_token
from holdfast.model.replies import Changed, Stored
from holdfast.model.run import Run
from holdfast.ports.health import SCHEMA, Finding, Findings, make_finding, milliseconds
from holdfast.ports.records import Records
from holdfast.ports.store import LaneInfo, RunFilter, Store

LOCK = "holdfast-doctor"
TTL = 10.0
LATE = 1.0
"""Seconds after which a wake-up is late."""
WAITING = 60.0
"""Seconds that a run may be due without anybody taking it, and an event without reaching the
bus."""
PAGE = 1000


async def named(area: str, checks: Findings) -> Findings:
    """The findings of an area. What keeps a check from going on is a finding, too."""
    try:
        async for finding in checks:
            yield replace(finding, area=area)
    except Transient as error:
        yield Finding(
            area=area,
            check="reachable",
            status="fail",
            seen=str(error),
            why=WHILE_AWAY,
            fix=BRING_BACK,
        )
    except HoldfastError as error:
        yield Finding(
            area=area, check="usable", status="fail", seen=str(error), why=UNUSABLE, fix=CHANGE
        )
    except Exception as error:
        seen = f"the check broke off: {type(error).__name__}: {error}"
        yield Finding(
            area=area,
            check="usable",
            status="fail",
            seen=seen,
            why=UNUSABLE,
            fix="please report this",
        )


WHILE_AWAY = "while it is away nothing is accepted and nothing starts"
BRING_BACK = "bring it back, or correct where it is looked for; workers go on by themselves"
UNUSABLE = "nothing can be accepted or executed until this is changed"
CHANGE = "do what the message says, then look again"


def is_ready(findings: list[Finding]) -> bool:
    """Whether opening the store would work, and change nothing in it."""
    return any(finding.check == SCHEMA and finding.status == "ok" for finding in findings)


# --- a trial of the store -------------------------------------------------------------------------


async def trial(make: Callable[[], Store]) -> Findings:
    """Two users of one store: a lock and a record are taken, defended and given back, and one hears
    what the other does."""
    first, second = make(), make()
    await first.open()
    try:
        yield await _fence(first)
        yield await _record(StoreRecords(first))
        if first.features.shared:
            await second.open()
            try:
                yield await _wake_up(first, second)
            finally:
                await second.close()
    finally:
        await first.close()


async def _fence(store: Store) -> Finding:
    """One name for all doctors: a lock's epoch is kept for ever, and one is little."""
    token, other_token = new_token(), new_token()
    began = time.perf_counter()
    [acquired] = await store.apply([Acquire(LOCK, token, "doctor", TTL)])
    if isinstance(acquired, Held):
        return make_finding("fenced write", "another doctor is looking at this store just now")
    [refused] = await store.apply([Acquire(LOCK, other_token, "doctor", TTL)])
    [stolen] = await store.apply([ReleaseLock(LOCK, other_token)])
    [released] = await store.apply([ReleaseLock(LOCK, token)])
    seconds = time.perf_counter() - began
    holds = isinstance(acquired, Acquired) and isinstance(refused, Held) and not stolen and released
    return make_finding(
        "fenced write",
        "a lock was taken, defended and given back: 4 durable round trips in "
        f"{milliseconds(seconds)}"
        if holds
        else f"a lock did not hold: {acquired}, {refused}, {stolen}, {released}",
        fail=not holds,
        why="one effective worker per run rests on this",
        fix="this must not happen: stop the workers and report it",
    )


async def _record(records: Records) -> Finding:
    """It expires, should nobody delete it."""
    key = f"doctor/{new_token()}"
    written = await records.put(key, "1", ttl=TTL)
    refused = await records.put(key, "2", ttl=TTL)
    holds = isinstance(written, Stored) and isinstance(refused, Changed)
    deleted = isinstance(written, Stored) and await records.delete(key, expected=written.version)
    return make_finding(
        "record",
        "one was written, defended and deleted"
        if holds and deleted
        else f"one did not hold: {written}, {refused}, {deleted}",
        fail=not (holds and deleted),
        why="cursors, quotas, API keys and webhooks rest on records",
        fix="this must not happen: stop the workers and report it",
    )


async def _wake_up(listener: Store, writer: Store) -> Finding:
    change = await listener.wait(0, LATE)
    token = new_token()
    await writer.apply([Acquire(LOCK, token, "doctor", TTL)])
    change = await listener.wait(change, 0)
    began = time.perf_counter()
    listening = asyncio.create_task(listener.wait(change, LATE))
    await asyncio.sleep(0)
    await writer.apply([ReleaseLock(LOCK, token)])
    notified = await listening > change
    seconds = time.perf_counter() - began
    return make_finding(
        "wake-up",
        f"heard from another client within {milliseconds(seconds)}"
        if notified
        else f"not heard within {LATE:g} s",
        warn=not notified,
        why="idle workers would find new runs only when they look by themselves",
        fix="look at what stands between here and the server; on Redis the user's ACL must allow "
        "the channel",
    )


# --- the runs -------------------------------------------------------------------------------------


async def runs(store: Store, *, has_bus: bool, now: float) -> Findings:
    counts = await store.count(RunFilter())
    listed = ", ".join(f"{number:,} {state}" for state, number in counts.items() if number)
    yield make_finding("runs", listed or "none yet")
    yield await _claimed(store, counts, now)
    for lane in await store.lanes():
        if lane.order == "fifo":
            yield _lane(lane)
    yield await _letters(store, now)
    if has_bus:
        yield await _outbox(store, now)
    for cursor in await cursors.registered(StoreRecords(store)):
        if cursor.state.failing:
            yield _failing(cursor, now)


async def _claimed(store: Store, counts: dict[str, int], now: float) -> Finding:
    """Nobody takes a run that is due and nothing is running: then nobody works."""
    due = [
        run for run in await store.runs(RunFilter(state="queued"), limit=PAGE) if _is_due(run, now)
    ]
    waits = max((now - (run.available or run.created) for run in due), default=0.0)
    idle = waits > WAITING and not counts.get("running")
    pipelines = ", ".join(sorted({run.pipeline for run in due}))
    return make_finding(
        "workers",
        f"nobody takes what is queued: {len(due):,} runs of {pipelines} are due, one for "
        f"{humanise(waits)}"
        if idle
        else "queued runs are being taken"
        if counts.get("running") or due
        else "nothing waits for one",
        warn=idle,
        why="no worker is alive, none knows these pipelines, or their lanes are blocked",
        fix="start a worker with the app that declares them: `holdfast --app … worker`",
    )


def _is_due(run: Run, now: float) -> bool:
    return run.available is None or run.available <= now


def _lane(lane: LaneInfo) -> Finding:
    waiting = f"{lane.queued:,} queued"
    is_stuck = lane.blocked_by is not None or (lane.queued > 0 and lane.leader is None)
    return make_finding(
        f"lane {lane.name}",
        f"{waiting}, blocked by failed run {lane.blocked_by}"
        if lane.blocked_by
        else f"{waiting}, led by {lane.leader}"
        if lane.leader
        else f"{waiting}, no leader",
        warn=is_stuck,
        why="a fifo lane goes on only with its head, and only by its leader",
        fix=f"`holdfast runs resume {lane.blocked_by}`, or `holdfast dlq discard` its dead letter"
        if lane.blocked_by
        else "start a worker that knows the lane's pipelines: it becomes the leader",
    )


async def _letters(store: Store, now: float) -> Finding:
    letters = await store.dead_letters(limit=PAGE)
    oldest = humanise(now - min((letter.created for letter in letters), default=now))
    many = f"{PAGE:,} or more" if len(letters) == PAGE else f"{len(letters):,}"
    return make_finding(
        "dead letters",
        f"{many} open, the oldest for {oldest}" if letters else "none open",
        warn=bool(letters),
        why="each is a run or a message that somebody still waits for",
        fix="`holdfast dlq list`, then `holdfast dlq redrive` or `holdfast dlq discard`",
    )


async def _outbox(store: Store, now: float) -> Finding:
    events = await store.outbox(await cursors.slowest(StoreRecords(store)) or 0, limit=1)
    waits = max(0.0, now - events[0].at) if events else 0.0
    return make_finding(
        "outbox",
        f"the oldest event waits for {humanise(waits)}" if events else "all is sent",
        warn=waits > WAITING,
        why="other systems do not hear what has happened: no worker relays it, or the bus can't "
        "be reached",
        fix="start a worker with the same bus, and look at the findings about the bus",
    )


def _failing(cursor: Cursor, now: float) -> Finding:
    since = humanise(max(0.0, now - (cursor.state.failed or now)))
    return make_finding(
        f"projection {cursor.name}",
        f"can't go on for {since}: {cursor.state.error}",
        warn=True,
        why="its readers hear nothing new, and no event behind its position is deleted",
        fix="bring back what it writes to; if nobody needs it any more, run its processes without "
        f"it, then `holdfast projections drop {cursor.name}`",
    )
