"""Taxonomies of earlier reports: a file with a few new comments keeps its topics, and pays for the
new ones only."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import count

from holdfast.apps.report.llm.questions import digest
from holdfast.apps.report.model.taxonomy import Topic
from holdfast.model.codec import plain_json
from holdfast.ports.context import Context
from holdfast.ports.language_model import CacheKey, LanguageModel

ENOUGH = 0.8
"""The share of the present comments that an earlier report must have had."""
LOOK_BACK = 20


@dataclass(frozen=True)
class KnownTaxonomy:
    """Topics, and where each comment was placed: fingerprint of the text → ids of subtopics."""

    topics: tuple[Topic, ...] = ()
    placed: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def among(self, comments: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Where those comments were placed that it knows."""
        return {comment: self.placed[comment] for comment in comments if comment in self.placed}


class TaxonomyCache:
    """What was found before for one tenant, oldest first, by all that decides it apart from the
    comments. Entries are never changed."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    async def find(
        self, cache_key: str, comments: Collection[str], ctx: Context
    ) -> KnownTaxonomy | None:
        """The newest one that knows most of these comments."""
        if not comments:
            return None
        for entry in reversed((await self._entries(cache_key, ctx))[-LOOK_BACK:]):
            known = await self._model.recall(("taxonomy", entry), KnownTaxonomy, ctx)
            if known is not None and len(known.among(comments)) >= ENOUGH * len(comments):
                return known
        return None

    async def keep(self, cache_key: str, known: KnownTaxonomy, ctx: Context) -> None:
        entry = digest(plain_json(known))
        entries = await self._entries(cache_key, ctx)
        if entries[-1:] != [entry]:
            await self._model.remember(("taxonomy", entry), known, ctx)
            await self._model.remember(_entry_key(cache_key, len(entries)), entry, ctx)

    async def _entries(self, cache_key: str, ctx: Context) -> list[str]:
        entries: list[str] = []
        for number in count():
            entry = await self._model.recall(_entry_key(cache_key, number), str, ctx)
            if entry is None:
                break
            entries.append(entry)
        return entries


def _entry_key(cache_key: str, number: int) -> CacheKey:
    return "taxonomies", cache_key, str(number)
