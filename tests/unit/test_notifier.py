"""After which batches somebody in the same process is woken."""

from __future__ import annotations

import asyncio
from pathlib import Path

from holdfast.adapters.notifier import Notifier, wake_after
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.model.commands import (
    Acquire,
    Acquired,
    Cancel,
    Claim,
    Claimed,
    ReleaseLock,
    SaveProgress,
    Settle,
    Submit,
    Submitted,
    Wake,
)

A, B = (Submit(id, "acme", "p", "default", "1", "f") for id in ("a", "b"))
NEW = Submitted("a", True, "queued")
CLAIM = Claim("w", "default", ["p"], 5, 30.0)


def claimed(id: str) -> Claimed:
    return Claimed(id, "acme", "p", "default", 1, 1, 5, "1", "{}", False, "f1")


def test_a_run_that_waits_wakes_workers() -> None:
    assert wake_after([A], [NEW]) is Wake.WORKERS
    assert wake_after([A, CLAIM], [NEW, []]) is Wake.WORKERS
    assert wake_after([A, B, CLAIM], [NEW, NEW, [claimed("a")]]) is Wake.WORKERS


def test_a_run_that_was_claimed_in_the_same_batch_wakes_nobody() -> None:
    assert wake_after([A, CLAIM], [NEW, [claimed("a")]]) is Wake.NOBODY
    assert (
        wake_after([A, B, CLAIM, CLAIM], [NEW, NEW, [claimed("b")], [claimed("a")]]) is Wake.NOBODY
    )


def test_a_run_that_succeeds_wakes_waiters_and_every_other_end_workers() -> None:
    good, bad = Settle("c", 1, "succeeded"), Settle("d", 1, "retry")
    assert wake_after([good], [None]) is Wake.WAITERS
    assert wake_after([A, CLAIM, good], [NEW, [claimed("a")], None]) is Wake.WAITERS
    assert wake_after([A, CLAIM, good], [NEW, [], None]) is Wake.WORKERS
    assert wake_after([good, bad], [None, None]) is Wake.WORKERS
    assert wake_after([ReleaseLock("l", "t")], [True]) is Wake.WORKERS


def test_looking_wakes_nobody() -> None:
    commands = [CLAIM, Acquire("l", "t", "me", 5.0), SaveProgress("a", 1, "{}")]
    assert wake_after(commands, [[], Acquired(1), None]) is Wake.NOBODY


def test_who_waits_for_work_is_not_woken_by_a_success() -> None:
    async def story() -> None:
        notifier = Notifier()
        for_any, for_work = (
            asyncio.create_task(notifier.wait(0, 60.0, wake=wake))
            for wake in (Wake.WAITERS, Wake.WORKERS)
        )
        await asyncio.sleep(0)
        notifier.notify(Wake.WAITERS)
        assert await for_any == 1
        assert await notifier.wait(0, 60.0) == 1
        await asyncio.sleep(0)
        assert not for_work.done()
        notifier.notify()
        assert await for_work == 2
        assert await notifier.wait(1, 60.0, wake=Wake.WORKERS) == 2
        notifier.notify(Wake.WAITERS)
        assert (
            await notifier.wait(2, 0.0, wake=Wake.WORKERS) == 3
        )  # it has waited, and passes on what it may forget

    asyncio.run(story())


def test_who_holds_a_lease_is_woken_only_when_one_is_taken_away(tmp_path: Path) -> None:
    """Also by another process, whose other commits are nobody's business here."""

    async def story() -> None:
        ours, remote = SqliteStore(tmp_path / "runs.db"), SqliteStore(tmp_path / "runs.db")
        await ours.open()
        await remote.open()
        holder = asyncio.create_task(ours.wait(0, 60.0, wake=Wake.HOLDERS))
        change = 0
        for command in (A, B, CLAIM, Settle("a", 1, "succeeded")):
            await remote.apply([command])
            change = await ours.wait(change, 60.0)
            assert not holder.done()
        await remote.apply([Cancel("b", "ann")])
        assert await holder > change
        await ours.close()
        await remote.close()

    asyncio.run(story())
