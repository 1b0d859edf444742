"""Migrations that were released never change. Their hashes are kept in `released.txt`; a new
migration is added, and before the first release all are replaced, by

python -m tests.upgrade.migrations"""

from __future__ import annotations

from hashlib import sha256
from importlib import resources
from pathlib import Path

RELEASED = Path(__file__).with_name("released.txt")
STORES = ("sqlite", "postgres")
"""Those that have migrations. The scripts of Redis come with the program."""


def hashes() -> dict[str, str]:
    """Of every migration that there is, by its name."""
    found: dict[str, str] = {}
    for store in STORES:
        folder = resources.files(f"holdfast.adapters.{store}").joinpath("schema")
        for script in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if script.name.endswith(".sql"):
                found[f"{store}/{script.name}"] = sha256(script.read_bytes()).hexdigest()
    return found


def released() -> dict[str, str]:
    lines = RELEASED.read_text().splitlines() if RELEASED.exists() else []
    return {name: digest for digest, name in (line.split() for line in lines)}


if __name__ == "__main__":
    lines = [f"{digest}  {name}\n" for name, digest in hashes().items()]
    RELEASED.write_text("".join(lines))
