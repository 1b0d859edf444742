"""What brings a store's schema up to date, step by step. From the first release on migrations are
only added: a test keeps the hashes of those that there are."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple


class Migration(NamedTuple):
    number: int
    name: str
    sql: str


def load(package: str) -> list[Migration]:
    """Those of the package's folder `schema`, oldest first: `0002_name.sql`, or a folder of that
    name whose files belong together, in their order."""
    entries = [
        entry
        for entry in resources.files(package).joinpath("schema").iterdir()
        if entry.name[:4].isdecimal()
    ]
    return [
        Migration(int(entry.name[:4]), entry.name, _text(entry))
        for entry in sorted(entries, key=lambda entry: entry.name)
    ]


def _text(entry: Traversable) -> str:
    if entry.is_file():
        return entry.read_text(encoding="utf-8")
    files = sorted(entry.iterdir(), key=lambda file: file.name)
    return "\n".join(file.read_text(encoding="utf-8") for file in files)
