"""Which database: `firestore://project`, or `firestore://project/database?timeout=10s`.

Credentials are those in `FIREBASE_CREDENTIALS_ENCODED`, else in `GOOGLE_CREDENTIALS_ENCODED`, else
application default ones. `FIRESTORE_EMULATOR_HOST` names an emulator, which wants none."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from msgspec import Struct

from holdfast.adapters.url_parameters import duration, read_all
from holdfast.errors import ConfigurationError

PROJECT = re.compile(r"[a-z][a-z0-9.:-]{2,60}")
DATABASE = re.compile(r"[a-z][a-z0-9-]{2,62}")
TIMEOUT = 10.0
SYNTAX = "firestore://project or firestore://project/database"


class Address(Struct, frozen=True):
    project: str
    database: str | None = None
    """None: the default one."""
    timeout: float = TIMEOUT
    """Seconds that a request may take."""

    def __str__(self) -> str:
        return f"firestore://{self.project}" + (f"/{self.database}" if self.database else "")


def parse(url: str) -> Address:
    """Raises ConfigurationError with the part that is wrong."""
    parts = urlsplit(url)
    database = parts.path.strip("/") or None
    if not PROJECT.fullmatch(parts.netloc):
        raise ConfigurationError(f"{parts.netloc!r} is no project of Google Cloud: write {SYNTAX}")
    if database is not None and not DATABASE.fullmatch(database):
        raise ConfigurationError(f"{database!r} is no database of Firestore: write {SYNTAX}")
    parameters = read_all({"timeout": duration}, parts.query, "the Firestore parameter")
    return Address(parts.netloc, database, **parameters)
