"""After which batches somebody in the same process is woken."""

from __future__ import annotations

from holdfast.adapters.doorbell import leaves_work
from holdfast.ports.commands import (
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
    assert leaves_work([A], [NEW])
    assert leaves_work([A, CLAIM], [NEW, []])
    assert leaves_work([A, B, CLAIM], [NEW, NEW, [claimed("a")]])


def test_a_run_that_was_claimed_in_the_same_batch_is_none() -> None:
    assert not leaves_work([A, CLAIM], [NEW, [claimed("a")]])
    assert not leaves_work([A, B, CLAIM, CLAIM], [NEW, NEW, [claimed("b")], [claimed("a")]])


def test_an_end_is_always_heard() -> None:
    assert leaves_work([A, CLAIM, Settle("c", 1, "succeeded")], [NEW, [claimed("a")], None])
    assert leaves_work([ReleaseLock("l", "t")], [True])


def test_asking_rings_no_bell() -> None:
    assert not leaves_work([CLAIM, Acquire("l", "t", "me", 5.0), SaveProgress("a", 1, "{}")], [[], Acquired(1), None])
