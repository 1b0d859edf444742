"""How often messages were delivered.

Pub/Sub counts deliveries only for subscriptions that have a dead-letter topic. For the others this
process counts what it has seen itself."""

from __future__ import annotations

from collections import OrderedDict

MOST = 10_000
"""Messages whose deliveries are remembered."""


class Attempts:
    """Of messages of one subscription that have not been acknowledged."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, int] = OrderedDict()

    def count(self, message_id: str, counted: int) -> int:
        """The number of this delivery; `counted` is what Pub/Sub says, 0 if it does not count."""
        if counted:
            return counted
        attempt = self._counts.pop(message_id, 0) + 1
        self._counts[message_id] = attempt
        if len(self._counts) > MOST:
            self._counts.popitem(last=False)
        return attempt

    def forget(self, message_id: str) -> None:
        self._counts.pop(message_id, None)
