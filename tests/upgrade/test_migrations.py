"""From the first release on, migrations are only added."""

from __future__ import annotations

import pytest

from holdfast.adapters.compatibility import FORMAT
from holdfast.adapters.postgres import database as postgres
from holdfast.adapters.sqlite import database as sqlite

from .migrations import hashes, released

HOW = "`python -m tests.upgrade.migrations` writes tests/upgrade/released.txt anew"


def test_no_released_migration_was_changed_or_removed() -> None:
    now = hashes()
    changed = [name for name, digest in released().items() if now.get(name) != digest]
    assert changed == [], (
        f"a released migration must stay as it is: add another one for what changes. {HOW}, "
        "which is right only before they are released"
    )


def test_every_migration_is_noted_from_the_first_release_on() -> None:
    if FORMAT == 0:
        assert released() == {}, "nothing is released yet"
        return
    assert sorted(hashes()) == sorted(released()), HOW
    assert {name for name in released() if "/0001_" in name} == {
        "sqlite/0001_initial.sql",
        "postgres/0001_initial.sql",
    }, "the first release begins with one migration for each store"


@pytest.mark.parametrize("database", [sqlite, postgres])
def test_migrations_are_numbered_without_gaps(database: object) -> None:
    numbers = [number for number, _ in database.scripts()]  # type: ignore[attr-defined]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 1 <= database.OLDEST_USABLE_SCHEMA <= numbers[-1]  # type: ignore[attr-defined]
