"""Which commands of a batch go to the server together, without anybody being able to tell the
difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        self.identities: set[Any] = set()

    def add(self, index: int, command: Command[Any]) -> None:
        self.commands.append(command)
        self.indexes.append(index)
        if command.identity is not None:
            self.identities.add(command.identity)


def arrange(commands: Sequence[Command[Any]], kind_of: Callable[[Any], K]) -> list[Group[K]]:
    """Collect commands of a kind. A command is moved forward only past commands that concern other
    subjects, and never past one that may concern anything."""
    groups: list[Group[K]] = []
    latest: dict[K, int] = {}
    touched: dict[Subject, int] = {}
    barrier = 0
    for index, command in enumerate(commands):
        kind, subjects = kind_of(command), command.subjects
        if subjects is None:
            earliest = barrier = len(groups)
        else:
            earliest = max((touched.get(subject, 0) for subject in subjects), default=0)
            earliest = max(earliest, barrier)
        at = latest.get(kind, -1)
        if at < earliest or subjects is None or command.identity in groups[at].identities:
            at = latest[kind] = len(groups)
            groups.append(Group(kind))
        groups[at].add(index, command)
        if subjects is None:
            barrier = len(groups)
        for subject in subjects or ():
            touched[subject] = at
    return groups
