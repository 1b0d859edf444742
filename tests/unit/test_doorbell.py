"""After which batches somebody in the same process is woken."""

from __future__ import annotations

import asyncio

from holdfast.adapters.doorbell import Doorbell, what_it_leaves
from holdfast.model.commands import (
    Acquire,
    Acquired,
    Claim,
    Claimed,
    ReleaseLock,
    SaveProgress,
    Settle,
    Submit,
    Submitted,
)

A, B = (Submit(id, "acme", "p", "default", "1", "f") for id in ("a", "b"))
NEW = Submitted("a", True, "queued")
CLAIM = Claim("w", "default", ["p"], 5, 30.0)


def claimed(id: str) -> Claimed:
    return Claimed(id, "acme", "p", "default", 1, 1, 5, "1", "{}", False)


def test_a_run_that_waits_is_work() -> None:
    assert what_it_leaves([A], [NEW]) == "work"
    assert what_it_leaves([A, CLAIM], [NEW, []]) == "work"
    assert what_it_leaves([A, B, CLAIM], [NEW, NEW, [claimed("a")]]) == "work"


def test_a_run_that_was_claimed_in_the_same_batch_is_none() -> None:
    assert what_it_leaves([A, CLAIM], [NEW, [claimed("a")]]) is None
    assert what_it_leaves([A, B, CLAIM, CLAIM], [NEW, NEW, [claimed("b")], [claimed("a")]]) is None


def test_a_run_that_succeeds_is_news_and_every_other_end_is_work() -> None:
    good, bad = Settle("c", 1, "succeeded"), Settle("d", 1, "retry")
    assert what_it_leaves([good], [None]) == "news"
    assert what_it_leaves([A, CLAIM, good], [NEW, [claimed("a")], None]) == "news"
    assert what_it_leaves([A, CLAIM, good], [NEW, [], None]) == "work"
    assert what_it_leaves([good, bad], [None, None]) == "work"
    assert what_it_leaves([ReleaseLock("l", "t")], [True]) == "work"


def test_asking_rings_no_bell() -> None:
    asked = [CLAIM, Acquire("l", "t", "me", 5.0), SaveProgress("a", 1, "{}")]
    assert what_it_leaves(asked, [[], Acquired(1), None]) is None


def test_who_waits_for_work_sleeps_through_news() -> None:
    async def play() -> None:
        bell = Doorbell()
        for_news, for_work = (
            asyncio.create_task(bell.wait(0, 60.0, work=work)) for work in (False, True)
        )
        await asyncio.sleep(0)
        bell.ring(work=False)
        assert await for_news == 1
        assert await bell.wait(0, 60.0) == 1
        await asyncio.sleep(0)
        assert not for_work.done()
        bell.ring()
        assert await for_work == 2
        assert await bell.wait(1, 60.0, work=True) == 2
        bell.ring(work=False)
        assert (
            await bell.wait(2, 0.0, work=True) == 3
        )  # it has waited, and passes on what it may forget

    asyncio.run(play())
