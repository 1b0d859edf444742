"""Allowance: calls to a vendor that allows so many a minute, counted over all processes."""

from __future__ import annotations

from typing import Protocol


class Allowance(Protocol):
    """How many requests and tokens a minute all processes together may send.

    How long a call may block: until the allowance has room, which may be minutes. Order: first
    come, first served in one process; processes compete. Errors: StoreUnavailable when the counts
    can't be read or written: then nothing may be sent."""

    async def take(self, tokens: int) -> None:
        """Return when a request of about so many tokens may be sent. It is counted then, whether it
        is sent or not."""
        ...

    def correct(self, tokens: int) -> None:
        """A request took so many more tokens than it was thought, or fewer."""
        ...
