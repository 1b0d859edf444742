"""A report made ready for the page: what is shown of it, where each thing is, and in which
colour."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from markupsafe import Markup

from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.crux import Basis
from holdfast.apps.report.model.document import (
    Quote,
    Report,
    ReportClaim,
    ReportSubtopic,
    ReportTopic,
)
from holdfast.apps.report.model.remark import RemarkKind
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.model.taxonomy import OTHER
from holdfast.apps.report.page.anchors import Anchors
from holdfast.apps.report.translations import Translations

COLOURS = 12
QUOTES_INLINE = 6_000
"""With more quotes than this, only the first of each claim are in the page."""
QUOTES_EACH = 20
LARGE = 1_500
"""With more quotes than this, the browser lays out only what is near the part in view."""
COMMENTS_INLINE = 20_000
"""With more comments than this, only those that are quoted are in the page."""
QUOTES_SHOWN = 3
"""Quotes of a claim that are seen without opening anything."""

CLAIMS_BESIDE = 2
CARDS_SHOWN = 12
"""Cruxes that are seen without opening anything."""
VOICES_FROM = 6
"""How many of a topic's claims are looked at for a quote that stands beside it."""
_SENTENCE = re.compile(r"\w.{24,128}[.!?。！？؟]", re.DOTALL)
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
_SPACE = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class PlacedClaim:
    """A claim and where it stands."""

    claim: ReportClaim
    subtopic: ReportSubtopic
    topic: ReportTopic
    anchor: str
    colour: int


class PageContent:
    """What the templates ask about a report."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.translations = Translations(report.language)
        self.anchor = Anchors()
        self.comments = {comment.id: comment for comment in report.comments}
        self.topics = report.topics
        self._colours = self._coloured()
        self.claims = {placed.claim.id: placed for placed in self._placed()}
        self.is_shortened = report.counts.quotes > QUOTES_INLINE
        self.large = report.counts.quotes > LARGE

    @property
    def title(self) -> str:
        return (
            self.report.title.strip()
            or self.report.question.strip()
            or self.translations("untitled")
        )

    @property
    def generated(self) -> bool:
        return self.report.method.generated

    @cached_property
    def language(self) -> str:
        """The language of what people said, where it differs from that of the page's own words."""
        return self._code if self._code.lower().split("-")[0] != self.translations.code else ""

    @property
    def page_language(self) -> str:
        return self._code if self._code and not self.language else self.translations.code

    @property
    def _code(self) -> str:
        """The report's language, if it is a code that a page may carry."""
        language = self.report.language
        return language if _LANGUAGE.fullmatch(language) and language.lower() != "und" else ""

    @cached_property
    def lang_attribute(self) -> Markup:
        """The attribute for an element with people's words, where their language is not that of the
        page."""
        return Markup(' lang="{}"').format(self.language) if self.language else Markup()

    @property
    def cruxes_title(self) -> str:
        """The word for what divides people: hints are not called findings."""
        return (
            "tensions"
            if all(crux.basis == Basis.TENSION for crux in self.report.cruxes)
            else "cruxes"
        )

    def colour(self, topic: str) -> int:
        """1 to 12 for topics, by their order; 0 for what fits nowhere."""
        return self._colours.get(topic, 0)

    def cited(self, claims: Iterable[str]) -> list[PlacedClaim]:
        return [self.claims[id] for id in dict.fromkeys(claims) if id in self.claims]

    def topics_by_question(self) -> list[tuple[str, list[ReportTopic]]]:
        """The topics in sections: one for each question, or one for all."""
        sections: dict[str, list[ReportTopic]] = {}
        for topic in self.topics:
            sections.setdefault(topic.question, []).append(topic)
        return list(sections.items())

    def is_disputed(self, finding: int) -> bool:
        """Whether a second model disagrees with a finding, by its number from 1."""
        return any(
            remark.kind == RemarkKind.FINDING and remark.about == str(finding)
            for remark in self.report.remarks
        )

    def claims_beside(self, finding: Sentence) -> list[PlacedClaim]:
        """The claims that are shown beside a finding that a model wrote: the first ones it rests on
        and does not repeat itself. Without a model, a finding says itself what it says."""
        if not self.generated:
            return []
        cited = (
            placed
            for placed in self.cited(finding.cites)
            if placed.claim.statement.strip(" .。") not in finding.text
        )
        return list(islice(cited, CLAIMS_BESIDE))

    def topic_of(self, id: str) -> ReportTopic | None:
        return next((topic for topic in self.topics if topic.id == id), None)

    def subtopic_of(self, topic: str, id: str) -> ReportSubtopic | None:
        containing = self.topic_of(topic)
        return (
            next((part for part in containing.subtopics if part.id == id), None)
            if containing
            else None
        )

    def quotes(self, claim: ReportClaim) -> tuple[Quote, ...]:
        """The quotes of a claim that are in the page."""
        return claim.quotes[:QUOTES_EACH] if self.is_shortened else claim.quotes

    def shown_quotes(self, claim: ReportClaim) -> tuple[Quote, ...]:
        return self.quotes(claim)[:QUOTES_SHOWN]

    def folded_quotes(self, claim: ReportClaim) -> tuple[Quote, ...]:
        return self.quotes(claim)[QUOTES_SHOWN:]

    @cached_property
    def quoted(self) -> dict[str, list[Quote]]:
        """The quotes that are in the page, by comment."""
        quotes_by_comment: dict[str, list[Quote]] = {}
        for placed in self.claims.values():
            for quote in self.quotes(placed.claim):
                quotes_by_comment.setdefault(quote.comment, []).append(quote)
        return quotes_by_comment

    @cached_property
    def shown_comments(self) -> list[Comment]:
        """The comments that are in the page, whole."""
        if len(self.comments) <= COMMENTS_INLINE:
            return list(self.comments.values())
        return [comment for comment in self.comments.values() if comment.id in self.quoted]

    def representative_quote(self, topic: ReportTopic) -> Quote | None:
        """A short quote that speaks for a topic: from the claims that most people made, a sentence
        on its own."""
        claims = sorted(
            (claim for part in topic.subtopics for claim in part.claims),
            key=lambda claim: -claim.people,
        )
        quotes = (
            quote
            for claim in claims[:VOICES_FROM]
            for quote in self.shown_quotes(claim)
            if not alike(quote.text, claim.statement)
        )
        return next((quote for quote in quotes if _SENTENCE.fullmatch(quote.text)), None)

    @cached_property
    def most_people(self) -> int:
        """Behind the claim that most people made."""
        return max((placed.claim.people for placed in self.claims.values()), default=1) or 1

    def share(self, people: int) -> float:
        return people / self.report.counts.people if self.report.counts.people else 0.0

    def _coloured(self) -> dict[str, int]:
        named = [topic.id for topic in self.topics if topic.id != OTHER]
        return {id: at % COLOURS + 1 for at, id in enumerate(named)}

    def _placed(self) -> Iterable[PlacedClaim]:
        for topic in self.topics:
            for part in topic.subtopics:
                for claim in part.claims:
                    yield PlacedClaim(
                        claim, part, topic, self.anchor("g", claim.id), self.colour(topic.id)
                    )


def alike(text: str, other: str) -> bool:
    """Whether two texts are the same but for case, spaces and punctuation."""
    return _SPACE.sub(" ", text).strip().casefold() == _SPACE.sub(" ", other).strip().casefold()
