"""Groups the commands of a batch that go to the server together; the result is the same as one by
one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from holdfast.model.commands import Command, Subject

K = TypeVar("K")


class Group(Generic[K]):
    """Commands of one kind, with their indexes in the batch."""

    __slots__ = ("commands", "identities", "indexes", "kind")

    def __init__(self, kind: K) -> None:
        self.kind = kind
        self.commands: list[Any] = []
        self.indexes: list[int] = []
        self.identities: set[Hashable] = set()

    def add(self, index: int, command: Command[Any], identity: Hashable) -> None:
        self.commands.append(command)
        self.indexes.append(index)
        if identity is not None:
            self.identities.add(identity)


def arrange(commands: Sequence[Command[Any]], kind_of: Callable[[Any], K]) -> list[Group[K]]:
    """Collect commands of a kind. A command is moved forward only past commands that concern other
    subjects, and never past one that may concern anything."""
    groups: list[Group[K]] = []
    latest: dict[K, int] = {}
    touched: dict[Subject, int] = {}
    barrier = 0
    for index, command in enumerate(commands):
        kind, subjects, identity = kind_of(command), command.subjects, command.identity
        at = -1 if subjects is None else latest.get(kind, -1)
        earliest = barrier
        for subject in subjects or ():
            earliest = max(earliest, touched.get(subject, 0))
        if at < earliest or identity in groups[at].identities:
            at = latest[kind] = len(groups)
            groups.append(Group(kind))
        groups[at].add(index, command, identity)
        for subject in subjects or ():
            touched[subject] = at
        if subjects is None:
            barrier = len(groups)
    return groups
