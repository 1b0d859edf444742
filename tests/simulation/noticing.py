"""How a planted bug is noticed, and the table of `docs/explanation/proof.md`, written anew by

python -m tests.simulation.noticing"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from holdfast.adapters.memory.store import MemoryStore
from holdfast.ports.records import Records
from holdfast.ports.store import Store
from holdfast.testing.clock import ManualClock
from holdfast.testing.contracts.records import RecordsContract, records_of
from holdfast.testing.contracts.store import StoreContract
from holdfast.testing.crash import quiet

from . import bugs_of_stores, bugs_of_stories, bugs_of_the_engine
from .story import Story

Bug = Callable[[pytest.MonkeyPatch], None]

STORY_BUGS: list[Bug] = [*bugs_of_stories.BUGS, *bugs_of_the_engine.BUGS]
CONTRACT_BUGS: dict[Bug, str] = bugs_of_stores.NOTICED_BY
MAX_WORLDS = 200
CALM_SEEDS = range(2, 2 + 5 * MAX_WORLDS, 5)
"""Of the worlds in which nothing goes wrong."""
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "proof.md"


class StoreInMemory(StoreContract):
    def make_store(self, clock: ManualClock) -> Store:
        return MemoryStore(clock)


class RecordsInMemory(RecordsContract):
    def make_records(self, clock: ManualClock) -> AbstractAsyncContextManager[Records]:
        return records_of(MemoryStore(clock))


def worlds_until_noticed(bug: Bug, patch: pytest.MonkeyPatch) -> int | None:
    """The number of worlds run until one of them fails."""
    seeds = CALM_SEEDS if bug in bugs_of_the_engine.ABOUT_TIME else range(MAX_WORLDS)
    bug(patch)
    with quiet():
        for count, seed in enumerate(seeds, start=1):
            try:
                Story(seed, MemoryStore).tell()
            except AssertionError:
                return count
    return None


def contract_test(name: str) -> Callable[[], object]:
    """The test of this name, of the store's contract or of that of records, in memory."""
    contract = RecordsInMemory() if hasattr(RecordsContract, name) else StoreInMemory()
    return getattr(contract, name)


def table() -> str:
    """Bugs that need the most worlds come first."""
    needed: dict[Bug, int] = {}
    for bug in STORY_BUGS:
        with pytest.MonkeyPatch.context() as patch:
            needed[bug] = worlds_until_noticed(bug, patch) or 0
    rows = ["| the bug | worlds run until one failed |", "|---|---|"]
    rows += [
        f"| {_first_line(bug)} | {needed[bug]} |"
        for bug in sorted(needed, key=lambda bug: -needed[bug])
    ]
    rows += ["", "| the bug | the test of the contract that fails |", "|---|---|"]
    rows += [f"| {_first_line(bug)} | `{name}` |" for bug, name in CONTRACT_BUGS.items()]
    return "\n".join(rows)


def _first_line(bug: Bug) -> str:
    return (bug.__doc__ or "?").rstrip(".")


if __name__ == "__main__":
    text = PAGE.read_text()
    begin, end = "<!-- planted bugs -->\n", "\n<!-- end of planted bugs -->"
    pattern = re.compile(f"(?<={re.escape(begin)}).*?(?={re.escape(end)})", re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: table(), text))
