"""Sentences that rest on evidence: one that cites nothing is not printed."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.apps.report.model.remark import Remark


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence and the groups (claims of the report) that it rests on, by id."""

    text: str
    cites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicSummary:
    topic: str
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Summaries:
    """`findings` are about everything. `unfounded` counts sentences that cited nothing and were
    left out."""

    findings: tuple[Sentence, ...]
    topics: tuple[TopicSummary, ...]
    unfounded: int = 0
    remarks: tuple[Remark, ...] = ()
    """Where a second model disagrees."""
