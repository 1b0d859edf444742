"""Reports for tests, put together from plain values: small, large, hostile, empty, and in other
scripts."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

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

GIVEN, FAMILY = (
    "Ada Ben Cleo Dov Edda Finn Gus Hilda Ivo June Kofi Lin",
    "Ash Bell Cruz Dunn Egan Frey Gill Holt",
)


@dataclass
class Writer:
    """Puts a report together, comment by comment, and keeps count."""

    facets: dict[str, list[str]] = field(default_factory=dict)
    seed: int = 7
    comments: dict[tuple[str, str], Comment] = field(default_factory=dict)
    claims: list[ReportClaim] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.traits: dict[str, dict[str, str]] = {}

    def comment(self, speaker: str, text: str, **more: Any) -> Comment:
        if (speaker, text) not in self.comments:
            row = len(self.comments) + 1
            traits = self.traits.setdefault(
                speaker, {name: self.random.choice(values) for name, values in self.facets.items()}
            )
            anonymous = speaker.startswith("Anonymous")
            self.comments[speaker, text] = Comment(
                str(row), row, text, speaker, anonymous=anonymous, facets=traits, **more
            )
        return self.comments[speaker, text]

    def quote(self, statement: str, speaker: str, marked: str, **more: Any) -> Quote:
        """`marked` is the comment with the quoted words between [[ and ]]."""
        before, quoted, after = marked.replace("]]", "[[").split("[[")
        comment = self.comment(speaker, before + quoted + after, **more)
        start, end = len(before), len(before) + len(quoted)
        claim = claim_id(comment.id, start, end, statement)
        return Quote(
            quote_id(claim), claim, comment.id, comment.row, speaker, start, end, quoted, statement
        )

    def claim(
        self, statement: str, quotes: Sequence[Quote], votes: Sequence[int] | None = None
    ) -> ReportClaim:
        people = len({quote.speaker for quote in quotes})
        counted = (
            VoteCount(votes[0], votes[1], votes[2], controversy(votes[0], votes[1], sum(votes)))
            if votes
            else None
        )
        report_claim = ReportClaim(
            "g-" + quotes[0].claim.removeprefix("c-"),
            len(self.claims) + 1,
            statement,
            people,
            tuple(quotes),
            counted,
        )
        self.claims.append(report_claim)
        return report_claim

    def report(self, topics: Sequence[ReportTopic], **more: Any) -> Report:
        comments = tuple(self.comments.values())
        people = len({comment.speaker for comment in comments})
        quotes = sum(len(claim.quotes) for claim in self.claims)
        counts = Counts(
            rows=len(comments),
            comments=len(comments),
            people=people,
            claims=len(self.claims),
            extracted=quotes,
            quotes=quotes,
            topics=len(topics),
            subtopics=sum(len(topic.subtopics) for topic in topics),
        )
        defaults: dict[str, Any] = {"counts": counts, "topics": tuple(topics), "comments": comments}
        return replace(bare(), **defaults | {"facets": self.told_facets()} | more)

    def told_facets(self) -> tuple[Facet, ...]:
        return tuple(
            Facet(
                name,
                tuple(
                    (value, sum(c.facets.get(name) == value for c in self.comments.values()))
                    for value in values
                ),
            )
            for name, values in self.facets.items()
        )


def subtopic(id: str, name: str, description: str, claims: Iterable[ReportClaim]) -> ReportSubtopic:
    claims = tuple(claims)
    return ReportSubtopic(id, name, description, len(_speakers(claims)), claims)


def topic(
    id: str, name: str, description: str, subtopics: Iterable[ReportSubtopic], **more: Any
) -> ReportTopic:
    subtopics = tuple(subtopics)
    claims = [claim for part in subtopics for claim in part.claims]
    comments = {quote.comment for claim in claims for quote in claim.quotes}
    return ReportTopic(
        id,
        name,
        description,
        len(_speakers(claims)),
        len(claims),
        len(comments),
        more.get("summary", ()),
        subtopics,
        more.get("controversy"),
    )


def _speakers(claims: Iterable[ReportClaim]) -> set[str]:
    return {quote.speaker for claim in claims for quote in claim.quotes}


def bare(**more: Any) -> Report:
    """A report about nothing, made of a file without a single comment."""
    report = Report(
        schema=SCHEMA,
        id="r-4be1d0c2a9",
        title="",
        question="",
        description="",
        language="en",
        counts=Counts(0, 0, 0, 0, 0, 0, 0, 0),
        coverage=Coverage(0.0, 0.0, 0.0),
        findings=(),
        topics=(),
        cruxes=(),
        matrix=Matrix(),
        facets=(),
        funnel=(Stage("rows", 0), Stage("comments", 0)),
        comments=(),
        left_out=(),
        map=(),
        source=Source(
            "comments.csv", "9f" * 32, 48_211, "csv", "utf-8", ",", {"comment": "answer"}, ()
        ),
        method=Method("local", False, False, "people", {}, (), ()),
        made=Made("2026-05-28T14:05:31Z", "holdfast 0.1.0", 4.2, (), 0.0),
    )
    return replace(report, **more)


# --- the town -------------------------------------------------------------------------------------


@cache
def town_texts() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("town.json").read_text("utf-8"))


@cache
def small(generated: bool = True, votes: bool = True, basis: str = "votes") -> Report:
    """Alderport: everything that a page can show, with votes and facets."""
    texts = town_texts()
    writer = Writer(texts["facets"])
    names = [f"{first} {family}" for family in FAMILY.split() for first in GIVEN.split()]
    topics = [
        _town_topic(writer, at, text, votes, names) for at, text in enumerate(texts["topics"])
    ]
    ids = [claim.id for claim in writer.claims]
    topics = [
        replace(topic, summary=_sentences(text["summary"], ids))
        for topic, text in zip(topics, texts["topics"], strict=True)
    ]
    cruxes = tuple(_crux(at, text, topics, ids, basis) for at, text in enumerate(texts["cruxes"]))
    report = writer.report(
        topics,
        title=texts["title"],
        question=texts["question"],
        description=texts["description"],
        findings=_sentences(texts["findings"], ids),
        cruxes=cruxes,
        matrix=_matrix(writer, cruxes),
        coverage=Coverage(0.978, 0.961, 0.634),
        map=_map(writer, topics),
    )
    return _account(report, generated, votes)


def _town_topic(
    writer: Writer, at: int, description: dict[str, Any], votes: bool, names: list[str]
) -> ReportTopic:
    parts = []
    for number, part in enumerate(description["subtopics"]):
        claims = []
        for claim in part["claims"]:
            quotes = [
                writer.quote(claim["statement"], speaker, text) for speaker, text in claim["said"]
            ]
            more = (claim["votes"] or [0])[0] // 28
            quotes += [
                writer.quote(
                    claim["statement"], writer.random.choice(names), f"[[{claim['statement']}]]"
                )
                for _ in range(more)
            ]
            quotes = list({quote.id: quote for quote in quotes}.values())
            claims.append(
                writer.claim(claim["statement"], quotes, claim["votes"] if votes else None)
            )
        other = description["name"] == "Other"
        parts.append(
            subtopic(
                "other" if other else f"s-{at}{number}", part["name"], part["description"], claims
            )
        )
    id = "other" if description["name"] == "Other" else f"t-{at}"
    return topic(
        id,
        description["name"],
        description["description"],
        parts,
        controversy=0.5 if at < 3 else None,
    )


def _sentences(texts: list[dict[str, Any]], ids: list[str]) -> tuple[Sentence, ...]:
    return tuple(
        Sentence(entry["text"], tuple(ids[at] for at in entry["cites"])) for entry in texts
    )


def _crux(
    at: int, text: dict[str, Any], topics: list[ReportTopic], ids: list[str], basis: str
) -> ReportCrux:
    topic = topics[text["topic"]]
    agree, disagree, unclear = text["agree"], text["disagree"], text["unclear"]
    people = agree + disagree + unclear
    speakers = sorted(_speakers(claim for part in topic.subtopics for claim in part.claims))
    score = controversy(agree, disagree, people)
    return ReportCrux(
        id=f"x-{at}",
        topic=topic.id,
        subtopic=topic.subtopics[text["subtopic"]].id,
        statement=text["statement"],
        explanation=text["explanation"],
        basis=basis,
        agree=agree,
        disagree=disagree,
        unclear=unclear,
        agreeing=tuple(speakers[0::3]),
        disagreeing=tuple(speakers[1::3]),
        undecided=tuple(speakers[2::9]),
        agreement=agree / people,
        disagreement=disagree / people,
        controversy=score,
        level=level(score),
        cites=tuple(ids[cite] for cite in text["cites"]),
    )


def _matrix(writer: Writer, cruxes: Sequence[ReportCrux]) -> Matrix:
    speakers = tuple(dict.fromkeys(comment.speaker for comment in writer.comments.values()))
    cells = []
    for speaker in speakers:
        lean = writer.random.random()
        cells.append(tuple(_stance(writer.random, crux, speaker, lean) for crux in cruxes))
    return Matrix(speakers, tuple(crux.id for crux in cruxes), tuple(cells))


def _stance(random: random.Random, crux: ReportCrux, speaker: str, lean: float) -> str:
    if random.random() < 0.45:
        return ""
    stance = random.gauss(lean, 0.25)
    return "agree" if stance > 0.55 else "disagree" if stance < 0.45 else "unclear"


def _map(writer: Writer, topics: Sequence[ReportTopic]) -> tuple[tuple[str, float, float], ...]:
    points = {}
    for at, topic in enumerate(topics):
        x, y = (at * 0.37 + 0.15) % 0.8 + 0.1, (at * 0.53 + 0.2) % 0.75 + 0.12
        for part in topic.subtopics:
            dx, dy = writer.random.gauss(0, 0.06), writer.random.gauss(0, 0.06)
            for quote in (quote for claim in part.claims for quote in claim.quotes):
                spot = x + dx + writer.random.gauss(0, 0.03), y + dy + writer.random.gauss(0, 0.03)
                points.setdefault(quote.comment, tuple(min(max(v, 0.0), 1.0) for v in spot))
    return tuple((comment, x, y) for comment, (x, y) in points.items())


PROMPTS = (
    PromptUsed(
        "system",
        "You are an experienced researcher of public consultations.\nYou never invent.",
        False,
    ),
    PromptUsed(
        "extraction",
        "List what the comment claims, one thought at a time.\n<comment>{comment}</comment>",
        True,
    ),
)

NOTES = (
    "Who answers such a question decides for themselves: the figures count the people who took "
    "part, not the town.",
    "A claim counts once for each person, however often they repeat it.",
)


def _account(report: Report, generated: bool, votes: bool) -> Report:
    """How it was made: the funnel, the losses, the cost."""
    left_out = (
        Row(203, "203", Fate.EMPTY, "no text"),
        Row(204, "204", Fate.EMPTY, "no text"),
        Row(207, "207", Fate.JUNK, "no words", "???"),
        Row(209, "209", Fate.DUPLICATE, "said before, in row 3", "Every ten minutes, please"),
        Row(211, "211", Fate.MODERATED, "moderated out", "Buy cheap watches at"),
    )
    counts = replace(report.counts, rows=report.counts.comments + len(left_out))
    funnel = (
        Stage("rows", counts.rows),
        Stage(
            "comments",
            counts.comments,
            (
                LossReason("empty", 2),
                LossReason("junk", 1, (LossExample("row 207", "???"),)),
                LossReason("duplicate", 1, (LossExample("row 209", "Every ten minutes, please"),)),
                LossReason("moderated out", 1, (LossExample("row 211", "Buy cheap watches at"),)),
            ),
        ),
        Stage(
            "speaking",
            counts.comments - 4,
            (LossReason("no claim found", 4, (LossExample("row 40", "Thank you!"),)),),
        ),
        Stage("drafts", counts.extracted + 6),
        Stage(
            "extracted",
            counts.extracted,
            (
                LossReason(
                    "quote not found",
                    4,
                    (LossExample("row 12", "Buses are essential infrastructure"),),
                ),
                LossReason("repeated", 2),
            ),
        ),
        Stage(
            "claims",
            counts.claims,
            (LossReason("merged with the same claim", counts.extracted - counts.claims),),
        ),
    )
    steps = (
        StepCost("reading", 0.2, 0, 0, 0, None if generated else 0.0),
        StepCost("clustering", 14.1, 5, 41_220, 3_180, 0.0081),
        StepCost("claims", 62.9, 48, 188_400, 40_112, 0.0523),
        StepCost("sort_and_deduplicate", 11.4, 14, 30_511, 9_004, None),
        StepCost("summaries", 6.3, 7, 18_020, 2_240, 0.004),
        StepCost("cruxes", 7.7, 11, 20_312, 3_480, 0.0051),
    )
    steps = (
        steps
        if generated
        else tuple(replace(s, calls=0, input_tokens=0, output_tokens=0, cost=0.0) for s in steps)
    )
    method = Method(
        analyst="openai:gpt-4o-mini" if generated else "local",
        generated=generated,
        votes=votes,
        sort="people",
        options={"cruxes": "yes", "topics": "as many as fit", "pii": "masked"},
        prompts=PROMPTS if generated else (),
        notes=NOTES,
        failed=(("17", "the model refused twice"),) if generated else (),
    )
    return replace(
        report,
        counts=counts,
        funnel=funnel,
        left_out=left_out,
        method=method,
        made=replace(report.made, seconds=103.4, steps=steps, cost=None if generated else 0.0),
        warnings=("Row 88 was read as Windows-1252; the rest of the file is UTF-8.",),
        source=replace(report.source, facets=tuple(f.name for f in report.facets)),
    )


# --- large ----------------------------------------------------------------------------------------

WORDS = (
    "buses trams lanes kerbs benches trees squares stops lights paths tickets bridges schools "
    "clinics ferries",
    "need deserve lack promise lose gain miss keep",
    "attention money light shade time space people patience repair signs trust care",
)
NOUNS, VERBS, THINGS = (words.split() for words in WORDS)


@cache
def large(claims: int = 2000, quotes: int = 6000, topics: int = 12, subtopics: int = 5) -> Report:
    """Many claims and quotes, of made-up sentences, as numerous as asked."""
    writer = Writer(
        {"district": [f"District {n}" for n in range(1, 9)], "age": ["young", "middle", "old"]},
        seed=11,
    )
    chance = writer.random
    people = [f"Person {n}" for n in range(1, quotes // 3 + 2)]
    sizes = [quotes // claims + (at < quotes % claims) for at in range(claims)]
    slots = [(a, b) for a in range(topics) for b in range(subtopics)]
    filled: dict[tuple[int, int], list[ReportClaim]] = {slot: [] for slot in slots}
    for at in range(claims):
        statement = _sentence(chance, 7) + "."
        comments = [
            writer.quote(
                statement, chance.choice(people), _padded(chance), **_sometimes_voted(chance)
            )
            for _ in range(sizes[at])
        ]
        votes = (
            (chance.randrange(90), chance.randrange(90), chance.randrange(30))
            if at % 9 == 0
            else None
        )
        filled[slots[at * len(slots) // claims]].append(writer.claim(statement, comments, votes))
    large_topics = [
        topic(
            f"t-{a}",
            f"{NOUNS[a].title()} and {NOUNS[-a - 1]}",
            _sentence(chance, 14) + ".",
            [
                subtopic(f"s-{a}-{b}", _sentence(chance, 3), _sentence(chance, 12), filled[a, b])
                for b in range(subtopics)
            ],
        )
        for a in range(topics)
    ]
    ids = [claim.id for claim in writer.claims]
    large_topics = [
        replace(t, summary=(Sentence(_sentence(chance, 20) + ".", tuple(chance.sample(ids, 3))),))
        for t in large_topics
    ]
    return writer.report(
        large_topics,
        title="A large consultation",
        question="What does the town need?",
        findings=tuple(
            Sentence(_sentence(chance, 18) + ".", tuple(chance.sample(ids, 2))) for _ in range(7)
        ),
        map=_map(writer, large_topics),
    )


def _sentence(chance: random.Random, words: int) -> str:
    picked = [chance.choice((NOUNS, VERBS, THINGS)[at % 3]) for at in range(words)]
    return " ".join(picked).capitalize()


def _padded(chance: random.Random) -> str:
    return f"{_sentence(chance, 9)}. [[{_sentence(chance, 12)}.]] {_sentence(chance, 10)}."


def _sometimes_voted(chance: random.Random) -> dict[str, int]:
    return (
        {"agrees": chance.randrange(40), "disagrees": chance.randrange(40)}
        if chance.random() < 0.1
        else {}
    )
