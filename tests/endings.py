"""What the tests of this process share and have to end: when they are over, and not when the
interpreter exits.

A worker of pytest-xdist may be killed while it is on its way out, and what it has not ended by then
goes on for ever."""

from __future__ import annotations

import atexit
from collections.abc import Callable

_endings: list[Callable[[], None]] = []


def at_the_end(end: Callable[[], None]) -> None:
    _endings.append(end)


def end_all() -> None:
    while _endings:
        _endings.pop()()


atexit.register(end_all)  # for whoever uses the servers without pytest
