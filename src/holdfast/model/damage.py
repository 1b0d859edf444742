"""Reading what was stored as JSON and may be damaged: it costs what is damaged, and nothing
else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

T = TypeVar("T")


def unless_damaged(decode: Callable[[str], T], text: str) -> T | None:
    """What a text says; None if it can't be read."""
    try:
        return decode(text)
    except (msgspec.MsgspecError, ValueError):
        return None
