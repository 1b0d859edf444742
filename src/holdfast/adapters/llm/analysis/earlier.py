"""Taxonomies of earlier reports: a file with a few new comments keeps its topics, and pays for the
new ones only."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from itertools import count

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from holdfast.adapters.llm.analysis.questions import digest
from holdfast.adapters.llm.answers import Answers
from holdfast.model.report.taxonomy import Topic

ENOUGH = 0.8
"""The share of the present comments that an earlier report must have had."""
LOOK_BACK = 20


@dataclass(frozen=True)
class Known:
    """Topics, and where each comment was placed: fingerprint of the text → ids of subtopics."""

    topics: tuple[Topic, ...] = ()
    placed: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def among(self, comments: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Where those comments were placed that it knows."""
        return {each: self.placed[each] for each in comments if each in self.placed}


_known = TypeAdapter(Known)


class Earlier:
    """What was found before for one tenant, oldest first, by what was asked for. Entries are never
    changed."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    async def find(self, tenant: str, wishes: str, comments: Collection[str]) -> Known | None:
        """The newest one that knows most of these comments."""
        if not comments:
            return None
        for entry in reversed((await self._entries(tenant, wishes))[-LOOK_BACK:]):
            known = await self._read(tenant, entry)
            if known is not None and len(known.among(comments)) >= ENOUGH * len(comments):
                return known
        return None

    async def keep(self, tenant: str, wishes: str, known: Known) -> None:
        text = _known.dump_json(known).decode()
        entry = digest(text)
        entries = await self._entries(tenant, wishes)
        if entries[-1:] != [entry]:
            await self._answers.put(tenant, ("taxonomy", entry), text)
            await self._answers.put(tenant, _place(wishes, len(entries)), entry)

    async def _entries(self, tenant: str, wishes: str) -> list[str]:
        entries: list[str] = []
        for number in count():
            entry = await self._answers.get(tenant, _place(wishes, number))
            if entry is None:
                break
            entries.append(entry)
        return entries

    async def _read(self, tenant: str, entry: str) -> Known | None:
        text = await self._answers.get(tenant, ("taxonomy", entry))
        try:
            return None if text is None else _known.validate_json(text)
        except ValidationError:
            return None


def _place(wishes: str, number: int) -> tuple[str, ...]:
    return "taxonomies", wishes, str(number)
