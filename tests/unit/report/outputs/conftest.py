"""A small report, put together by hand: two topics and the rest, merged claims, votes, cruxes, and
hostile comments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from holdfast.apps.report.model.claim import claim_id, quote_id
from holdfast.apps.report.model.comment import Comment, Fate, Row, Source
from holdfast.apps.report.model.crux import controversy, level
from holdfast.apps.report.model.document import (
    SCHEMA,
    Counts,
    Coverage,
    Facet,
    LossExample,
    LossReason,
    Made,
    Matrix,
    Method,
    PromptUsed,
    Quote,
    Report,
    ReportClaim,
    ReportCrux,
    ReportSubtopic,
    ReportTopic,
    Stage,
    StepCost,
    VoteCount,
)
from holdfast.apps.report.model.summary import Sentence


@dataclass(frozen=True)
class CommentWithClaims:
    """A comment and the quotes taken from it: (subtopic, claim, quoted words)."""

    speaker: str
    text: str
    claims: tuple[tuple[str, str, str], ...] = ()
    video: str = ""


SAMPLE = (
    CommentWithClaims(
        "Ann",
        "Close the street 🚲🚲, and plant trees!",
        (
            ("cars", "Close the street", "Close the street 🚲🚲"),
            ("trees", "Plant trees", "plant trees!"),
        ),
    ),
    CommentWithClaims(
        "Bo", "Please close it to cars.", (("cars", "Close the street", "close it to cars"),)
    ),
    CommentWithClaims(
        "Cy",
        "Keep the street open; we need it.",
        (("cars", "Keep the street open", "Keep the street open"),),
    ),
    CommentWithClaims(
        "Dee",
        "More trees 🌳 please",
        (("trees", "Plant trees", "More trees 🌳"),),
        "https://example.org/v/1",
    ),
    CommentWithClaims(
        "Eve",
        '=HYPERLINK("http://example.org") <script>alert(1)</script> ![x](http://example.org/p.png)',
        (("other", "=SUM(1;-2)", "<script>alert(1)</script>"),),
    ),
    CommentWithClaims("Fay", "idk"),
)
TREE = {
    "traffic": ("Traffic", ("cars",)),
    "green": ("Green spaces", ("trees",)),
    "other": ("Other", ("other",)),
}
NAMES = {"cars": "Cars", "trees": "Trees", "other": "Other"}
LEFT_OUT = (
    Row(7, "7", Fate.EMPTY, "The cell is empty."),
    Row(
        8,
        "8",
        Fate.DUPLICATE,
        "Ann said exactly the same in row 1.",
        "Close the street 🚲🚲, and plant trees!",
    ),
)

Build = Callable[..., Report]


def build_report(
    sample: Sequence[CommentWithClaims] = SAMPLE, left_out: Sequence[Row] = LEFT_OUT
) -> Report:
    comments = tuple(
        Comment(
            str(at),
            at,
            first.text,
            first.speaker,
            video=first.video,
            timestamp="0:01:02" if first.video else "",
        )
        for at, first in enumerate(sample, 1)
    )
    left_out = [
        replace(row, row=len(comments) + at, id=str(len(comments) + at))
        for at, row in enumerate(left_out, 1)
    ]
    topics = _topics(sample, comments)
    claims = [
        claim for topic in topics for subtopic in topic.subtopics for claim in subtopic.claims
    ]
    cruxes = _cruxes(topics)
    quotes = [quote for claim in claims for quote in claim.quotes]
    named_topics = [topic for topic in topics if topic.id != "other"]
    counts = Counts(
        rows=len(comments) + len(left_out),
        comments=len(comments),
        people=len({comment.speaker for comment in comments}),
        claims=len(claims),
        extracted=len(quotes),
        quotes=len(quotes),
        topics=len(named_topics),
        subtopics=sum(len(topic.subtopics) for topic in named_topics),
    )
    return Report(
        schema=SCHEMA,
        id="r-1",
        title="The street",
        question="What should become of the street?",
        description="",
        language="en",
        counts=counts,
        coverage=_coverage(comments, topics),
        findings=(Sentence("Most people want to close the street.", (claims[0].id,)),)
        if claims
        else (),
        topics=topics,
        cruxes=cruxes,
        matrix=_matrix(cruxes),
        facets=(Facet("age", (("25-44", 2),)),),
        funnel=_funnel(counts, left_out, len({quote.comment for quote in quotes})),
        comments=comments,
        left_out=tuple(left_out),
        map=(("1", 0.25, 0.5),),
        source=Source(
            "street.csv", "ab" * 32, 1234, "csv", "utf-8", ",", {"comment": "comment"}, ("age",)
        ),
        method=Method(
            "openai:gpt-4o-mini",
            True,
            True,
            "people",
            {"cruxes": "True"},
            tuple(
                PromptUsed(name, f"Do {name}.", name == "dedup")
                for name in ("system", "clustering", "extraction", "dedup", "summaries", "crux")
            ),
            ("Short comments are hard to place.",),
        ),
        made=Made(
            "2026-01-02T03:04:05+00:00",
            "holdfast 0.1.0",
            12.5,
            (StepCost("claims", 10.0, 6, 100, 50, 0.01),),
            0.01,
        ),
        warnings=("Two rows were left out.",),
    )


def _topics(
    sample: Sequence[CommentWithClaims], comments: Sequence[Comment]
) -> tuple[ReportTopic, ...]:
    """By hand what the pipeline does: the same statement in the same subtopic is one claim."""
    by_topic: dict[str, dict[str, list[Quote]]] = {}
    for first, comment in zip(sample, comments, strict=True):
        for subtopic, statement, words in first.claims:
            start = comment.text.index(words)
            end = start + len(words)
            own = f"{statement}, says {first.speaker}"
            extracted = claim_id(comment.id, start, end, own)
            span = (start, end, words, own)
            quote = Quote(
                quote_id(extracted), extracted, comment.id, comment.row, first.speaker, *span
            )
            by_topic.setdefault(subtopic, {}).setdefault(statement, []).append(quote)
    number = 0
    topics = []
    for topic, (name, subtopics) in TREE.items():
        parts = []
        for subtopic in subtopics:
            claims = []
            for statement, quotes in by_topic.get(subtopic, {}).items():
                number += 1
                people = len({quote.speaker for quote in quotes})
                votes = VoteCount(3, 2, 1, round(controversy(3, 2, 6), 4)) if number == 1 else None
                claims.append(
                    ReportClaim(f"g-{number}", number, statement, people, tuple(quotes), votes)
                )
            if claims:
                people = len({quote.speaker for claim in claims for quote in claim.quotes})
                parts.append(
                    ReportSubtopic(
                        subtopic, NAMES[subtopic], f"About {subtopic}.", people, tuple(claims)
                    )
                )
        if parts:
            topics.append(_topic(topic, name, parts))
    return tuple(topics)


def _topic(topic: str, name: str, parts: list[ReportSubtopic]) -> ReportTopic:
    quotes = [quote for part in parts for claim in part.claims for quote in claim.quotes]
    return ReportTopic(
        topic,
        name,
        f"All about {name}.",
        len({quote.speaker for quote in quotes}),
        sum(len(part.claims) for part in parts),
        len({quote.comment for quote in quotes}),
        (Sentence(f"People speak about {name}.", (parts[0].claims[0].id,)),),
        tuple(parts),
        round(controversy(2, 1, 4), 4) if topic == "traffic" and _divided(parts) else None,
    )


def _divided(parts: list[ReportSubtopic]) -> bool:
    return len(parts[0].claims) > 1


def _cruxes(topics: Sequence[ReportTopic]) -> tuple[ReportCrux, ...]:
    if not any(topic.id == "traffic" and topic.controversy is not None for topic in topics):
        return ()
    score = round(controversy(2, 1, 4), 4)
    sides = (("Ann", "Bo"), ("Cy",), ("Vic",))
    shares = (0.5, 0.25, score, level(score))
    words = ("Close the street to cars", "Some need to drive.", "claims")
    return (ReportCrux("x-1", "traffic", "cars", *words, 2, 1, 1, *sides, *shares, ("g-1",)),)


def _matrix(cruxes: Sequence[ReportCrux]) -> Matrix:
    if not cruxes:
        return Matrix()
    return Matrix(
        ("Ann", "Bo", "Cy", "Vic"), ("x-1",), (("agree",), ("agree",), ("disagree",), ("unclear",))
    )


def _coverage(comments: Sequence[Comment], topics: Sequence[ReportTopic]) -> Coverage:
    quoted: dict[str, set[int]] = {}
    placed = set()
    for topic in topics:
        for quote in (
            quote for part in topic.subtopics for claim in part.claims for quote in claim.quotes
        ):
            quoted.setdefault(quote.comment, set()).update(range(quote.start, quote.end))
            placed |= {quote.comment} if topic.id != "other" else set()
    total = sum(len(comment.text) for comment in comments) or 1
    everybody = len(comments) or 1
    inside = sum(map(len, quoted.values()))
    return Coverage(
        round(len(placed) / everybody, 4),
        round(len(quoted) / everybody, 4),
        round(inside / total, 4),
    )


def _funnel(counts: Counts, left_out: Sequence[Row], speaking: int) -> tuple[Stage, ...]:
    fates = {
        fate: [row for row in left_out if row.fate == fate]
        for fate in {row.fate for row in left_out}
    }
    lost = tuple(
        LossReason(fate, len(rows), (LossExample(f"row {rows[0].row}", rows[0].text),))
        for fate, rows in fates.items()
    )
    silent, merged = counts.comments - speaking, counts.extracted - counts.claims
    return (
        Stage("rows", counts.rows),
        Stage("comments", counts.comments, tuple(sorted(lost, key=lambda entry: entry.reason))),
        Stage("speaking", speaking, (LossReason("no claim found", silent),)),
        Stage("drafts", counts.extracted + 1),
        Stage("extracted", counts.extracted, (LossReason("quote not found", 1),)),
        Stage("claims", counts.claims, (LossReason("merged with the same claim", merged),)),
    )


def build_rows(report: Report) -> list[Row]:
    rows = [Row(comment.row, comment.id, Fate.KEPT) for comment in report.comments]
    return sorted([*rows, *report.left_out], key=lambda row: row.row)


@pytest.fixture(scope="session")
def build() -> Build:
    return build_report


@pytest.fixture(scope="session")
def a_comment() -> type[CommentWithClaims]:
    return CommentWithClaims


@pytest.fixture(scope="session")
def rows_of() -> Callable[[Report], list[Row]]:
    return build_rows


@pytest.fixture(scope="session")
def report() -> Report:
    return build_report()


@pytest.fixture(scope="session")
def rows(report: Report) -> list[Row]:
    return build_rows(report)
