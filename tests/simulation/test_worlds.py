"""Thousands of small stories in which everything goes wrong, and the contract holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256

import pytest

from holdfast.adapters.memory.store import MemoryStore
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.model.clock import Clock
from holdfast.ports.store import Store
from holdfast.testing.crash import quiet

from .story import Story

SCALE = int(os.environ.get("HOLDFAST_SIMULATION_SCALE", "1"))
BLOCK = 20


def sqlite(clock: Clock) -> Store:
    return SqliteStore(":memory:", clock, threads=False)


def tell_all(first: int, make_store: Callable[[Clock], Store]) -> None:
    with quiet():
        for seed in range(first, first + BLOCK):
            Story(seed, make_store).tell()


@pytest.mark.parametrize("first", range(0, 600 * SCALE, BLOCK))
def test_the_contract_holds_in_memory(first: int) -> None:
    tell_all(first, MemoryStore)


@pytest.mark.parametrize("first", range(10_000, 10_000 + 200 * SCALE, BLOCK))
def test_the_contract_holds_on_sqlite(first: int) -> None:
    tell_all(first, sqlite)


def test_the_faults_have_effects() -> None:
    """A simulation in which no stale write was ever refused would prove nothing."""
    with quiet():
        refused = 0
        for seed in range(30):
            story = Story(seed, MemoryStore)
            story.tell()
            refused += story.refused
    assert refused > 0


def test_the_same_seed_gives_the_same_run() -> None:
    def trace(seed: int) -> str:
        story = Story(seed, MemoryStore)
        story.tell()
        return sha256("\n".join(story.trace).encode()).hexdigest()

    with quiet():
        assert [trace(seed) for seed in range(5)] == [trace(seed) for seed in range(5)]
