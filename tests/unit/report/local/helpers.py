"""What the tests of the local analyst share: comments, a context that only notes progress, and a
whole analysis."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast.apps.report.local.analyst import LocalAnalyst
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.claim import (
    ClaimDraft,
    ClaimGroup,
    ProposedGroup,
    QuotedClaim,
    claim_id,
    group_id,
)
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.crux import CruxDraft
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.model.taxonomy import OTHER, Clustering, Subtopic

DATA = Path(__file__).parents[4] / ".." / "shared" / "data"
FILES = {
    "seattle": "polis_seattle15_54.csv",
    "taiwan": "polis_vtaiwan_uberx_zh_197.csv",
    "football": "polis_football_messy_298.csv",
    "marchon": "polis_marchon_2162.csv",
    "hard": "t3c_hard_cases_messy_22.csv",
    "interviews": "t3c_interviews_video_128.csv",
    "duplicates": "t3c_very_duplicates_8.csv",
}


class Progress:
    """A context that keeps what it was told."""

    def __init__(self) -> None:
        self.reports: list[tuple[int, int | None]] = []

    def progress(self, done: int, total: int | None = None) -> None:
        self.reports.append((done, total))


def comments(*texts: str) -> list[Comment]:
    return [Comment(str(at), at + 1, text, f"person {at}") for at, text in enumerate(texts)]


def claims(*statements: str, subtopic: str = "t1.1") -> list[QuotedClaim]:
    """One claim for each statement, each by another person."""
    return [
        QuotedClaim(f"c-{at}", str(at), f"person {at}", subtopic, text, text, 0, len(text))
        for at, text in enumerate(statements)
    ]


def groups(
    *statements: str, people: Sequence[int] = (), subtopic: str = "t1.1"
) -> list[ClaimGroup]:
    """One group for each statement, made by as many people as said, or by one."""
    made_groups, speaker = [], 0
    for at, text in enumerate(statements):
        count = people[at] if people else 1
        members = tuple(
            QuotedClaim(
                f"c-{at}-{n}",
                f"{at}-{n}",
                f"person {speaker + n}",
                subtopic,
                text,
                text,
                0,
                len(text),
            )
            for n in range(count)
        )
        speaker += count
        made_groups.append(ClaimGroup(group_id(members), subtopic, text, members))
    return made_groups


@dataclass
class Analysis:
    """Everything that came out of one analysis."""

    clustering: Clustering
    drafts: dict[str, list[ClaimDraft]]
    claims: list[QuotedClaim]
    groups: dict[str, list[ClaimGroup]]
    summaries: dict[str, list[Sentence]]
    findings: list[Sentence]
    cruxes: dict[str, CruxDraft | None]
    progress: Progress = field(default_factory=Progress)

    def coverage(self) -> float:
        """The share of the comments with a claim that are in a topic."""
        speaking = {claim.comment for claim in self.claims}
        placed = {p.comment for p in self.clustering.placements if p.subtopic != OTHER}
        return len(placed & speaking) / max(1, len(speaking))


def analyse(sources: Sequence[Comment], brief: Brief | None = None) -> Analysis:
    return asyncio.run(_analyse(sources, brief or Brief()))


async def _analyse(sources: Sequence[Comment], brief: Brief) -> Analysis:
    analyst, ctx = LocalAnalyst(), Progress()
    context: Any = ctx
    clustering = await analyst.cluster(sources, brief, context)
    by_comment: dict[str, list[Any]] = {}
    for placement in clustering.placements:
        by_comment.setdefault(placement.comment, []).append(placement)
    drafts = {
        c.id: await analyst.extract(c, by_comment[c.id], clustering.topics, brief, context)
        for c in sources
    }
    claims = [_claim(comment, draft) for comment in sources for draft in drafts[comment.id]]
    by_id = {claim.id: claim for claim in claims}
    grouped: dict[str, list[ClaimGroup]] = {}
    for subtopic in sorted({claim.subtopic for claim in claims}):
        inside = [claim for claim in claims if claim.subtopic == subtopic]
        groups = await analyst.group(Subtopic(subtopic, subtopic), inside, brief, context)
        grouped[subtopic] = sorted(
            (_group(g, subtopic, by_id) for g in groups), key=lambda g: -len(g.speakers)
        )
    of_topic = {
        t.id: sorted(
            (g for s in t.subtopics for g in grouped.get(s.id, [])), key=lambda g: -len(g.speakers)
        )
        for t in clustering.topics
    }
    return Analysis(
        clustering,
        drafts,
        claims,
        grouped,
        {
            t.id: await analyst.summarise(t, of_topic[t.id], brief, context)
            for t in clustering.topics
        },
        await analyst.overview(clustering.topics, [], of_topic, brief, context),
        {
            s.id: await analyst.crux(s, grouped.get(s.id, []), brief, context)
            for t in clustering.topics
            for s in t.subtopics
        },
        ctx,
    )


def _claim(comment: Comment, draft: ClaimDraft) -> QuotedClaim:
    assert draft.start is not None
    end = draft.start + len(draft.quote)
    id = claim_id(comment.id, draft.start, end, draft.statement)
    return QuotedClaim(
        id,
        comment.id,
        comment.speaker,
        draft.subtopic,
        draft.statement,
        draft.quote,
        draft.start,
        end,
    )


def _group(grouping: ProposedGroup, subtopic: str, by_id: dict[str, QuotedClaim]) -> ClaimGroup:
    members = tuple(by_id[member] for member in grouping.members)
    return ClaimGroup(group_id(members), subtopic, grouping.statement, members)


def real(name: str) -> list[Comment]:
    """The comments of a real file that moderators let stand and that have a letter or digit."""
    path = DATA / FILES[name]
    if not path.exists():
        pytest.skip(f"the real files are not here: {path.resolve()}")
    analyses = []
    with path.open(newline="", encoding="utf-8-sig") as file:
        for at, row in enumerate(csv.DictReader(file)):
            text = row.get("comment-body") or row.get("comment") or ""
            if any(map(str.isalnum, text)) and row.get("moderated") != "-1":
                speaker = row.get("author-id") or row.get("interview") or f"Anonymous {at}"
                analyses.append(
                    Comment(
                        row.get("comment-id") or row.get("id") or str(at), at + 1, text, speaker
                    )
                )
    return analyses
