"""Which programs can use which stores.

A store notes its format when it is made, and with every migration the oldest schema whose programs
can still use it. So a program of the version before restarts beside newer ones, and one that is too
old is refused. Stores of pre-releases have a lower format, or none: they are not upgraded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.errors import ConfigurationError

FORMAT: Final = 2
"""Of stores that this program makes and uses. Those of pre-releases have a lower one, or none."""

FORMAT_NAME: Final = "format"
OLDEST_NAME: Final = "oldest_usable_schema"
"""The names under which a store notes them."""


def refuse_other_format(stored: str | bytes | None, where: str) -> None:
    """Raise ConfigurationError for a store that only another program can use."""
    if stored is not None and int(stored) > FORMAT:
        raise ConfigurationError(
            f"{where} was written by a newer holdfast (format {int(stored)}, here {FORMAT}): "
            "upgrade holdfast"
        )
    if stored is None or int(stored) < FORMAT:
        raise ConfigurationError(
            f"{where} was written by a pre-release of holdfast, whose stores can't be upgraded; "
            "nothing was changed. Let its runs end with the version that wrote it, then begin "
            "with a new store"
        )


def refuse_newer_schema(stored: int, oldest: str | bytes | None, newest: int, where: str) -> None:
    """Raise ConfigurationError if a store has a newer schema than this program knows, and does not
    say that this one may use it all the same."""
    if stored > newest and (oldest is None or int(oldest) > newest):
        raise ConfigurationError(
            f"{where} was written by a newer holdfast (schema {stored}, here {newest}): upgrade "
            "holdfast"
        )


def refuse_unusable(noted: Mapping[str, str], stored: int, newest: int, where: str) -> None:
    """Both, by what a store has noted under these names."""
    refuse_other_format(noted.get(FORMAT_NAME), where)
    refuse_newer_schema(stored, noted.get(OLDEST_NAME), newest, where)
