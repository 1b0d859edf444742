"""Migrations that were released never change. Their hashes are kept in `released.txt`, where a new
one is added by

python -m tests.upgrade.migrations"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from holdfast.adapters.postgres import database as postgres
from holdfast.adapters.sqlite import database as sqlite

RELEASED = Path(__file__).with_name("released.txt")
STORES = {"sqlite": sqlite.migrations, "postgres": postgres.migrations}
"""Those that have migrations. The scripts of Redis come with the program."""


def hashes() -> dict[str, str]:
    """Of every migration that there is, by its name."""
    return {
        f"{store}/{name}": sha256(sql.encode()).hexdigest()
        for store, migrations in STORES.items()
        for _, name, sql in migrations()
    }


def released() -> dict[str, str]:
    lines = RELEASED.read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


if __name__ == "__main__":
    known = released() if RELEASED.exists() else {}
    new = {name: digest for name, digest in hashes().items() if name not in known}
    lines = [f"{digest}  {name}\n" for name, digest in sorted({**known, **new}.items())]
    RELEASED.write_text("".join(lines))
