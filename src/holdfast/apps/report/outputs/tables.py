"""The report as tables: topics, claims, quotes, cruxes, the matrix, opinion groups, and what became
of every row.

`claim_id` is the id of the claim in the report, after merging, in every table, so that quotes join
with claims; the claim extracted from one comment alone is in `report.json`. `comment_id` is the
file's own. Offsets count characters (Unicode code points) of the comment as given:
`comment[start:end]` is the quote. How text is kept from being calculated, and how to read it back
exactly, is documented in `cells`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.apps.report.model.comment import Fate, Row
from holdfast.apps.report.model.document import Report
from holdfast.apps.report.model.stance import Stance
from holdfast.apps.report.outputs.cells import Cell, is_guarded, table
from holdfast.apps.report.outputs.traversal import claim_positions, quotes_of, topic_names

BEGINNING = 200
"""Characters of a comment that `rows.csv` shows."""

TOPICS = (
    "level", "topic_id", "topic", "subtopic_id", "subtopic", "description", "people", "claims",
    "quotes", "comments", "controversy", "summary", "question",
)  # fmt: skip
CLAIMS = (
    "claim_id", "number", "claim", "topic_id", "topic", "subtopic_id", "subtopic", "people",
    "quotes", "agrees", "disagrees", "passes", "controversy",
)  # fmt: skip
QUOTES = (
    "quote_id", "claim_id", "comment_id", "row", "speaker", "start", "end", "text", "topic",
    "subtopic", "claim", "guarded",
)  # fmt: skip
CRUXES = (
    "crux_id", "crux", "topic", "subtopic", "basis", "agree", "disagree", "unclear", "agreement",
    "disagreement", "controversy", "level", "explanation", "claim_ids", "agreeing", "disagreeing",
    "undecided",
)  # fmt: skip
GROUPS = (
    "comment_id", "claim_id", "comment", "group", "people", "agrees", "disagrees", "passes",
    "agreement", "gap", "marks", "shared",
)  # fmt: skip
ROWS = ("row", "comment_id", "fate", "reason", "topics", "claims", "quotes", "text")


def csv_files(report: Report, rows: Iterable[Row]) -> dict[str, bytes]:
    """File name → content. `rows` are all rows of the input, kept or not."""
    return {
        "topics.csv": table(TOPICS, _topics(report)),
        "claims.csv": table(CLAIMS, _claims(report)),
        "quotes.csv": table(QUOTES, _quotes(report)),
        "cruxes.csv": table(CRUXES, _cruxes(report)),
        "crux_matrix.csv": table(("speaker", *report.matrix.cruxes), _matrix(report)),
        "groups.csv": table(GROUPS, _groups(report)),
        "rows.csv": table(ROWS, _rows(report, rows)),
    }


def _topics(report: Report) -> Iterator[list[Cell]]:
    """A row for each topic, and after it one for each of its subtopics. Only topics have comments
    and a summary."""
    for topic in report.topics:
        summary = " ".join(sentence.text for sentence in topic.summary)
        counts = [
            topic.people,
            topic.claims,
            _count(quotes_of(topic)),
            topic.comments,
            topic.controversy,
        ]
        yield [
            "topic",
            topic.id,
            topic.name,
            "",
            "",
            topic.description,
            *counts,
            summary,
            topic.question,
        ]
        for subtopic in topic.subtopics:
            counts = [
                subtopic.people,
                len(subtopic.claims),
                _count(quotes_of(subtopic)),
                None,
                None,
            ]
            yield [
                "subtopic",
                topic.id,
                topic.name,
                subtopic.id,
                subtopic.name,
                subtopic.description,
                *counts,
                "",
                topic.question,
            ]


def _claims(report: Report) -> Iterator[list[Cell]]:
    for position in claim_positions(report):
        topic, subtopic, claim = position.topic, position.subtopic, position.claim
        votes = claim.votes
        yield [
            claim.id,
            claim.number,
            claim.statement,
            topic.id,
            topic.name,
            subtopic.id,
            subtopic.name,
            claim.people,
            len(claim.quotes),
            *(
                (votes.agrees, votes.disagrees, votes.passes, votes.controversy)
                if votes
                else (None,) * 4
            ),
        ]


def _quotes(report: Report) -> Iterator[list[Cell]]:
    for position in claim_positions(report):
        path = (position.topic.name, position.subtopic.name, position.claim.statement)
        for quote in position.claim.quotes:
            span = (quote.start, quote.end, quote.text)
            yield [
                quote.id,
                position.claim.id,
                quote.comment,
                quote.row,
                quote.speaker,
                *span,
                *path,
                "yes" if is_guarded(quote.text) else "",
            ]


def _cruxes(report: Report) -> Iterator[list[Cell]]:
    called = topic_names(report)
    for crux in report.cruxes:
        yield [
            crux.id,
            crux.statement,
            called.get(crux.topic, crux.topic),
            called.get(crux.subtopic, crux.subtopic),
            crux.basis,
            crux.agree,
            crux.disagree,
            crux.unclear,
            crux.agreement,
            crux.disagreement,
            crux.controversy,
            crux.level,
            crux.explanation,
            *(
                "; ".join(names_or_ids)
                for names_or_ids in (crux.cites, crux.agreeing, crux.disagreeing, crux.undecided)
            ),
        ]


def _matrix(report: Report) -> Iterator[list[Cell]]:
    """One row for each speaker, one column for each crux (by id): agree, disagree, unclear, or
    empty."""
    for speaker, stances in zip(report.matrix.speakers, report.matrix.cells, strict=True):
        yield [speaker, *stances]


def _groups(report: Report) -> Iterator[list[Cell]]:
    """How each opinion group voted on each comment; `marks` and `shared` hold the stance of a
    comment that tells the group from the others, or that all groups share."""
    opinions, texts = report.opinions, {comment.id: comment.text for comment in report.comments}
    claims = {
        quote.comment: position.claim.id
        for position in claim_positions(report)
        for quote in position.claim.quotes
    }
    shared = {position.comment: str(position.stance) for position in opinions.shared}
    marks = [{mark.comment: str(mark.stance) for mark in group.marks} for group in opinions.groups]
    for voted in opinions.comments:
        for at, (group, tally) in enumerate(zip(opinions.groups, voted.groups, strict=True)):
            yield [
                voted.comment,
                claims.get(voted.comment, ""),
                texts.get(voted.comment, ""),
                group.id,
                group.people,
                tally.agrees,
                tally.disagrees,
                tally.passes,
                round(tally.share(Stance.AGREE), 4),
                voted.gap,
                marks[at].get(voted.comment, ""),
                shared.get(voted.comment, ""),
            ]


def _rows(report: Report, rows: Iterable[Row]) -> Iterator[list[Cell]]:
    texts = {comment.id: comment.text for comment in report.comments}
    failed = dict(report.method.failed)
    figures = _figures_by_comment(report)
    for row in rows:
        topics, claims, quotes = figures.get(row.id, ((), 0, 0))
        reason = row.reason
        if row.fate == Fate.KEPT and not quotes:
            reason = (
                f"could not be analysed: {failed[row.id]}"
                if row.id in failed
                else "no claim was found in it"
            )
        text = _beginning(texts.get(row.id, row.text))
        yield [row.row, row.id, str(row.fate), reason, "; ".join(topics), claims, quotes, text]


def _figures_by_comment(report: Report) -> dict[str, tuple[tuple[str, ...], int, int]]:
    """Comment → the topics that quote it, and how many claims and quotes rest on it."""
    topics: dict[str, dict[str, None]] = {}
    claims: dict[str, set[str]] = {}
    quotes: dict[str, int] = {}
    for position in claim_positions(report):
        for quote in position.claim.quotes:
            topics.setdefault(quote.comment, {})[position.topic.name] = None
            claims.setdefault(quote.comment, set()).add(position.claim.id)
            quotes[quote.comment] = quotes.get(quote.comment, 0) + 1
    return {id: (tuple(topics[id]), len(claims[id]), count) for id, count in quotes.items()}


def _beginning(text: str) -> str:
    return text if len(text) <= BEGINNING else text[:BEGINNING] + "…"


def _count(items: Iterable[object]) -> int:
    return sum(1 for _ in items)
