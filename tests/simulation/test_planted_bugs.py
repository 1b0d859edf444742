"""Each guard is taken away once, and the simulation or the contract has to notice: otherwise their
silence would prove nothing. `docs/explanation/proof.md` lists the bugs."""

from __future__ import annotations

import pytest

from holdfast.testing.contracts.store_topics import notifications

from .noticing import (
    CONTRACT_BUGS,
    MAX_WORLDS,
    PAGE,
    STORY_BUGS,
    Bug,
    contract_test,
    worlds_until_noticed,
)


@pytest.mark.timeout(600)  # half a minute of processor time, on a machine that others use
@pytest.mark.parametrize("bug", STORY_BUGS, ids=lambda bug: bug.__name__)
def test_a_missing_guard_is_noticed(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = worlds_until_noticed(bug, monkeypatch)
    assert worlds is not None, f"{MAX_WORLDS} worlds and nobody noticed: {bug.__doc__}"


@pytest.mark.parametrize("bug", CONTRACT_BUGS, ids=lambda bug: bug.__name__)
def test_a_broken_rule_breaks_the_contract(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    test = contract_test(CONTRACT_BUGS[bug])
    test()
    bug(monkeypatch)
    monkeypatch.setattr(notifications, "SOON", 0.05)  # what is never notified is not waited for
    with pytest.raises((AssertionError, TimeoutError)):
        test()


def test_every_bug_is_in_the_documentation() -> None:
    page = PAGE.read_text()
    bugs = [*STORY_BUGS, *CONTRACT_BUGS]
    assert len(bugs) >= 30
    assert [bug.__name__ for bug in bugs if (bug.__doc__ or "?").rstrip(".") not in page] == []
