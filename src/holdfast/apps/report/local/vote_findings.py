"""Key findings from votes: what all agree with, what parts them, what leaves them unsure, each with
its figures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from holdfast.apps.report.local.messages import listed, message
from holdfast.apps.report.local.statements import shortened
from holdfast.apps.report.model.opinion import VotedStatement, VoteEvidence
from holdfast.apps.report.model.stance import Stance, VoteTally
from holdfast.apps.report.model.summary import Sentence

_SHARED, _SPLITS, _UNSURE = 3, 3, 2
_LONGEST = 200


def vote_findings(votes: VoteEvidence, language: str) -> list[Sentence]:
    """Up to eight findings that go on from the headline; a statement is the subject of one of
    them."""
    writer = _Writer(votes, language)
    said = set(votes.headline)
    findings: list[Sentence] = []

    def add(written: Iterator[Sentence], most: int) -> None:
        fresh = (finding for finding in written if said.isdisjoint(finding.cites))
        for finding in islice(fresh, most):
            said.update(finding.cites)
            findings.append(finding)

    add((writer.shared(statement, stance) for statement, stance in votes.shared), _SHARED)
    add((writer.split(statement) for statement in votes.splits), _SPLITS)
    add((writer.unsure(statement) for statement in votes.unsure), _UNSURE)
    return findings


class _Writer:
    def __init__(self, votes: VoteEvidence, language: str) -> None:
        self._groups = [group.id for group in votes.groups]
        self._language = language

    def shared(self, statement: VotedStatement, stance: Stance) -> Sentence:
        key = "shared" if stance == Stance.AGREE else "rejected"
        return self._written(f"{key} by groups" if self._groups else key, statement, stance)

    def split(self, statement: VotedStatement) -> Sentence:
        return self._written("splits groups" if self._groups else "splits", statement, Stance.AGREE)

    def unsure(self, statement: VotedStatement) -> Sentence:
        return self._written("unsure", statement, Stance.UNCLEAR)

    def _written(self, key: str, statement: VotedStatement, stance: Stance) -> Sentence:
        tally = statement.everybody
        text = message(
            self._language,
            key,
            claim=shortened(statement.text, _LONGEST).rstrip(" .。"),
            agrees=tally.agrees,
            disagrees=tally.disagrees,
            passes=tally.passes,
            cast=tally.cast,
            shares=self._shares(statement.groups, stance),
        )
        return Sentence(text, (statement.claim,))

    def _shares(self, groups: tuple[VoteTally, ...], stance: Stance) -> str:
        shares = [
            message(
                self._language, "group share", group=id, share=self._percent(tally.share(stance))
            )
            for id, tally in zip(self._groups, groups, strict=True)
        ]
        return listed(self._language, shares)

    def _percent(self, share: float) -> str:
        return message(self._language, "percent", value=round(100 * share))
