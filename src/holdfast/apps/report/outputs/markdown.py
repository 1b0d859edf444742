"""`report.md`: the whole report as text that reads well as it is and renders everywhere, in the
words of the page.

Names, statements and summaries that a model wrote are marked ◆; quotes are people's own words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from holdfast.apps.report.figures import header_figures
from holdfast.apps.report.headline import LISTED, headline, unmarked_splits
from holdfast.apps.report.model.document import (
    Quote,
    Report,
    ReportClaim,
    ReportCrux,
    ReportSubtopic,
    ReportTopic,
)
from holdfast.apps.report.model.opinion import VotedComment
from holdfast.apps.report.model.stance import Stance
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.outputs.markdown_method import method
from holdfast.apps.report.outputs.markdown_text import anchor, capitalised, escape, listed
from holdfast.apps.report.outputs.traversal import claim_positions, topic_names
from holdfast.apps.report.translations import Translations

SHOWN_QUOTES = 3


def markdown(report: Report) -> str:
    """The report as Markdown."""
    say = Translations(report.language)
    numbers = {position.claim.id: position.claim.number for position in claim_positions(report)}
    content, groups = _Content(report, say, numbers), _Groups(report, say)
    blocks = [
        *_header(report, say),
        *groups.headline(),
        *content.findings(),
        *groups.statements(),
        *content.overview(),
        *content.topics(),
        *content.cruxes(),
        *method(report, say, numbers),
    ]
    return "\n\n".join(blocks) + "\n"


def _header(report: Report, say: Translations) -> Iterator[str]:
    yield f"# {escape(report.title)}"
    if report.question:
        yield f"*{escape(report.question)}*"
    if report.description:
        yield escape(report.description)
    yield " · ".join(
        f"{capitalised(say(f'figure.{name}'))}: **{say.number(getattr(report.counts, name))}**"
        for name in header_figures(report.counts)
    )
    if report.method.generated:
        yield f"◆ {say('notice.generated')}"
    yield from (f"> ⚠ {escape(warning)}" for warning in report.warnings)


class _Groups:
    """The opinion groups: a headline, and the statements behind it. Nothing without groups."""

    def __init__(self, report: Report, say: Translations) -> None:
        self._opinions = report.opinions
        self._say = say
        self._voted = {voted.comment: voted for voted in report.opinions.comments}
        self._comments = {comment.id: comment for comment in report.comments}
        self._claims: dict[str, str] = {}
        for position in claim_positions(report):
            for quote in position.claim.quotes:
                self._claims.setdefault(quote.comment, position.claim.id)

    def headline(self) -> Iterator[str]:
        if self._opinions.groups:
            yield escape(self._say("groups.count", n=len(self._opinions.groups)))
            yield listed(self._headlines())

    def _headlines(self) -> Iterator[str]:
        say = self._say
        for line in headline(self._opinions, self._comments):
            if line.kind == "splits" and not self._opinions.shared:
                yield f"**{say('groups.all.agree')}**: {say('groups.nothing_shared')}"
            if line.group is not None:
                called = self._name(self._opinions.groups[line.group].id)
            else:
                called = say(
                    f"groups.all.{line.stance}" if line.kind == "shared" else "groups.part"
                )
            yield f"**{called}**: {self._statement(line.comment, line.stance)}"

    def statements(self) -> Iterator[str]:
        say, opinions = self._say, self._opinions
        if not opinions.groups:
            return
        yield f"## {say('groups')}"
        for group in opinions.groups:
            yield f"### {self._name(group.id)} ({say('n.people', n=group.people)})"
            marks = [(mark.comment, mark.stance) for mark in group.marks]
            yield self._statements(marks) if marks else say("groups.unmarked")
        if opinions.shared:
            yield f"### {say('groups.shared')}"
            yield self._statements([(shared.comment, shared.stance) for shared in opinions.shared])
        if splits := unmarked_splits(opinions):
            yield f"### {say('groups.splits')}"
            yield self._statements([(comment, Stance.AGREE) for comment in splits])

    def _name(self, group: str) -> str:
        return escape(self._say("groups.name", group=group))

    def _statements(self, statements: Sequence[tuple[str, Stance]]) -> str:
        return listed(self._statement(comment, stance) for comment, stance in statements[:LISTED])

    def _statement(self, comment: str, stance: Stance) -> str:
        text = f"“{escape(self._comments[comment].text)}”"
        if claim := self._claims.get(comment):
            text = f"[{text}](#{anchor(claim)})"
        return f"{text} ({self._shares(self._voted[comment], stance)})"

    def _shares(self, voted: VotedComment, stance: Stance) -> str:
        shares = (
            f"{escape(group.id)} "
            + self._say(f"groups.{stance}", share=self._say.percent(tally.share(stance)))
            for group, tally in zip(self._opinions.groups, voted.groups, strict=True)
        )
        return " · ".join(shares)


class _Content:
    """Findings, topics, claims and what divides people."""

    def __init__(self, report: Report, say: Translations, numbers: dict[str, int]) -> None:
        self._report = report
        self._say = say
        self._numbers = numbers
        self._mark = " ◆" if report.method.generated else ""

    def findings(self) -> Iterator[str]:
        if self._report.findings:
            yield f"## {self._say('findings')}{self._mark}"
            yield listed(map(self._sentence, self._report.findings))

    def overview(self) -> Iterator[str]:
        say = self._say
        if self._report.topics:
            yield f"## {say('glance')}"
            figures = (say(f"figure.{name}") for name in ("people", "claims", "comments"))
            counted = " | ".join(map(capitalised, figures))
            lines = (
                f"| [{escape(topic.name)}](#{anchor(topic.id)}) | {say.number(topic.people)} | "
                f"{say.number(topic.claims)} | {say.number(topic.comments)} |"
                for topic in self._report.topics
            )
            yield "\n".join([f"| {say('topic')} | {counted} |", "|:--|--:|--:|--:|", *lines])

    def topics(self) -> Iterator[str]:
        """All topics, under their questions where people were asked several."""
        question = ""
        for topic in self._report.topics:
            if topic.question and topic.question != question:
                question = topic.question
                yield f"## *{escape(question)}*"
            yield from self._topic(topic)

    def _topic(self, topic: ReportTopic) -> Iterator[str]:
        say = self._say
        yield f'## <a id="{anchor(topic.id)}"></a>{escape(topic.name)}{self._mark}'
        everybody = self._report.counts.people
        facts = say(
            "topic.facts",
            claims=say("n.claims", n=topic.claims),
            people=say("n.people", n=topic.people),
            share=say.percent(topic.people / everybody if everybody else 0.0),
        )
        divided = "" if topic.controversy is None else f" · {self._controversy(topic.controversy)}"
        yield escape(facts + divided)
        if topic.shown_description:
            yield escape(topic.shown_description) + self._mark
        if topic.summary:
            yield " ".join(map(self._sentence, topic.summary)) + self._mark
        for subtopic in topic.subtopics:
            yield from self._subtopic(subtopic)

    def _controversy(self, score: float) -> str:
        return self._say("controversy.score", score=self._say.percent(score))

    def _subtopic(self, subtopic: ReportSubtopic) -> Iterator[str]:
        say = self._say
        yield f"### {escape(subtopic.name)}{self._mark}"
        yield escape(
            say(
                "subtopic.facts",
                claims=say("n.claims", n=len(subtopic.claims)),
                people=say("n.people", n=subtopic.people),
            )
        )
        if subtopic.description:
            yield escape(subtopic.description) + self._mark
        yield from map(self._claim, subtopic.claims)

    def _claim(self, claim: ReportClaim) -> str:
        """Statement, support and the first quotes, in one list item."""
        head = (
            f'- <a id="{anchor(claim.id)}"></a>**{claim.number}. {escape(claim.statement)}** '
            f"({self._support(claim)})"
        )
        quotes = "\n  >\n".join(
            f"  > {self._quote(quote)}" for quote in claim.quotes[:SHOWN_QUOTES]
        )
        lines = [head, quotes]
        if (more := len(claim.quotes) - SHOWN_QUOTES) > 0:
            lines += ["", f"  … {self._say('quotes.in_file', n=more)}"]
        return "\n".join(lines)

    def _quote(self, quote: Quote) -> str:
        who, where = self._say.person(quote.speaker), self._say("row.number", n=str(quote.row))
        return f"“{escape(quote.text)}” — {escape(who)}, {where}"

    def _support(self, claim: ReportClaim) -> str:
        parts = [self._say("n.people", n=claim.people)]
        if len(claim.quotes) > 1:
            parts.append(self._say("n.quotes", n=len(claim.quotes)))
        if votes := claim.votes:
            parts.append(self._sides(votes.agrees, votes.disagrees, votes.passes))
        return " · ".join(parts)

    def _sides(self, agree: int, disagree: int, unsure: int) -> str:
        say = self._say
        sides = [say("agree", n=agree), say("disagree", n=disagree)]
        return " · ".join([*sides, say("unsure", n=unsure)] if unsure else sides)

    def cruxes(self) -> Iterator[str]:
        cruxes = self._report.cruxes
        if not cruxes:
            return
        hints = all(crux.basis == "tension" for crux in cruxes)
        yield f"## {self._say('tensions' if hints else 'cruxes')}"
        called = topic_names(self._report)
        for basis in dict.fromkeys(crux.basis for crux in cruxes):
            yield escape(self._say.named("basis", basis))
            yield from (self._crux(crux, called) for crux in cruxes if crux.basis == basis)

    def _crux(self, crux: ReportCrux, called: dict[str, str]) -> str:
        mark = "" if crux.basis == "votes" else self._mark
        position = " › ".join(
            dict.fromkeys(escape(called.get(id, id)) for id in (crux.topic, crux.subtopic))
        )
        counts = self._sides(crux.agree, crux.disagree, crux.unclear)
        lines = [
            f'- <a id="{anchor(crux.id)}"></a>**{escape(crux.statement)}**{mark}'
            f"{self._citations(crux.cites)}  ",
            f"  {position} · {counts} · {self._controversy(crux.controversy)}",
        ]
        if crux.explanation:
            lines += ["", f"  {escape(crux.explanation)}{mark}"]
        return "\n".join(lines)

    def _sentence(self, sentence: Sentence) -> str:
        return escape(sentence.text) + self._citations(sentence.cites)

    def _citations(self, cites: Iterable[str]) -> str:
        numbers = self._numbers
        links = (f"[\\[{numbers[id]}\\]](#{anchor(id)})" for id in cites if id in numbers)
        return "".join(f" {link}" for link in links)
