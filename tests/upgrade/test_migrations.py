"""From the first release on, migrations are only added."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.adapters.migrations import Migration
from holdfast.adapters.postgres import database as postgres
from holdfast.adapters.sqlite import database as sqlite

from .migrations import hashes, released

HOW = "`python -m tests.upgrade.migrations` adds it to tests/upgrade/released.txt"


def test_no_released_migration_was_changed_or_removed() -> None:
    now = hashes()
    changed = [name for name, digest in released().items() if now.get(name) != digest]
    assert changed == [], "a released migration stays as it is: add another one for what changes"


def test_every_migration_is_noted() -> None:
    assert [name for name in hashes() if name not in released()] == [], HOW


@pytest.mark.parametrize(
    ("migrations", "oldest"),
    [
        (sqlite.migrations, sqlite.OLDEST_USABLE_SCHEMA),
        (postgres.migrations, postgres.OLDEST_USABLE_SCHEMA),
    ],
    ids=["sqlite", "postgres"],
)
def test_migrations_are_numbered_without_gaps(
    migrations: Callable[[], list[Migration]], oldest: int
) -> None:
    numbers = [migration.number for migration in migrations()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 1 <= oldest <= numbers[-1]
