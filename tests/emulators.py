"""Google's emulators of the tests: a skip on a laptop that has none, a failure in CI."""

from __future__ import annotations

import os
from functools import cache
from itertools import count

from holdfast.testing.servers import emulators
from tests.endings import at_the_end
from tests.missing import or_skip

_numbers = count(1)


class PubSubEmulator(emulators.PubSubEmulator):
    def command(self) -> list[str]:
        or_skip(lambda: " ".join(emulators.PubSubEmulator.command(self)))
        return super().command()


class FirestoreEmulator(emulators.FirestoreEmulator):
    def command(self) -> list[str]:
        or_skip(lambda: " ".join(emulators.FirestoreEmulator.command(self)))
        return super().command()


@cache
def shared_pubsub() -> PubSubEmulator:
    """One for all tests of this process; each takes a project of its own."""
    server = PubSubEmulator()
    at_the_end(server.end)
    server.start()
    return server


@cache
def shared_firestore() -> FirestoreEmulator:
    """One for all tests of this process; each takes a project of its own."""
    server = FirestoreEmulator()
    at_the_end(server.end)
    server.start()
    return server


def fresh_project() -> str:
    return f"test-{os.getpid()}-{next(_numbers)}"


def fresh_firestore() -> str:
    """The URL of an empty database. The client finds the emulator by a variable."""
    os.environ.update(shared_firestore().environment)
    return f"firestore://{fresh_project()}"
