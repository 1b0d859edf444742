"""Everything that must hold for a report that people can trust, said in words where it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from holdfast.apps.report.model.document import Report
from holdfast.apps.report.model.remark import RemarkKind
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.model.taxonomy import OTHER
from holdfast.apps.report.outputs.traversal import claim_positions, quotes
from holdfast.apps.report.outputs.validation_cruxes import crux_problems
from holdfast.apps.report.outputs.validation_figures import (
    count_problems,
    coverage_problems,
    funnel_problems,
)
from holdfast.apps.report.outputs.validation_opinions import opinion_problems


def problems(report: Report) -> list[str]:
    """What is wrong with a report, in the order in which a reader would meet it. None: it holds
    together."""
    return [problem for check in CHECKS for problem in check(report)]


def _ids(report: Report) -> Iterator[str]:
    """An id means one thing."""
    kinds = {
        "comment": (comment.id for comment in report.comments),
        "topic": (topic.id for topic in report.topics),
        "subtopic": (subtopic.id for topic in report.topics for subtopic in topic.subtopics),
        "claim": (position.claim.id for position in claim_positions(report)),
        "quote": (quote.id for quote in quotes(report)),
        "crux": (crux.id for crux in report.cruxes),
    }
    for kind, ids in kinds.items():
        for id in _repeated(ids):
            yield f"The {kind} id {id!r} is used more than once."


def _quotes(report: Report) -> Iterator[str]:
    """Every quote is in its comment, letter by letter, where it says it is."""
    comments = {comment.id: comment for comment in report.comments}
    for quote in quotes(report):
        comment = comments.get(quote.comment)
        if comment is None:
            yield f"Quote {quote.id} is from comment {quote.comment!r}, which is not in the report."
        elif (
            not quote.text or comment.text[quote.start : quote.end] != quote.text or quote.start < 0
        ):
            yield (
                f"Quote {quote.id} is not what comment {quote.comment!r} says "
                f"at characters {quote.start} to {quote.end}: {_short(quote.text)}."
            )
        elif (comment.speaker, comment.row) != (quote.speaker, quote.row):
            yield (
                f"Quote {quote.id} names another speaker or row than its comment {quote.comment!r}."
            )


def _claims(report: Report) -> Iterator[str]:
    """Every extracted claim is in exactly one claim of the report, and every claim of the report
    rests on one."""
    for id in _repeated(quote.claim for quote in quotes(report)):
        yield f"The extracted claim {id!r} is in more than one place of the report."
    for at, position in enumerate(claim_positions(report), 1):
        claim = position.claim
        if claim.number != at:
            yield f"Claim {claim.id} has the number {claim.number} but is claim {at} in the report."
        if not claim.quotes:
            yield f"Claim {claim.number} ({_short(claim.statement)}) rests on no quote."
        if not claim.statement.strip():
            yield f"Claim {claim.number} says nothing."


def _sentences(report: Report) -> Iterator[str]:
    """Every sentence rests on claims that are in the report: those of its topic, if it is about
    one."""
    everywhere = {position.claim.id for position in claim_positions(report)}
    yield from _unfounded("the findings", report.findings, everywhere)
    for topic in report.topics:
        of_topic = {claim.id for subtopic in topic.subtopics for claim in subtopic.claims}
        yield from _unfounded(f"the summary of topic {topic.id}", topic.summary, of_topic)


def _unfounded(text_name: str, sentences: Iterable[Sentence], known: set[str]) -> Iterator[str]:
    for sentence in sentences:
        if not sentence.cites:
            yield f"A sentence of {text_name} rests on nothing: {_short(sentence.text)}."
        for id in sentence.cites:
            if id not in known:
                yield (
                    f"A sentence of {text_name} cites claim {id!r}, which is not there: "
                    f"{_short(sentence.text)}."
                )


def _remarks(report: Report) -> Iterator[str]:
    """A remark is about a name or a finding that is there, and cites claims that are."""
    claims = {position.claim.id for position in claim_positions(report)}
    known = {
        *(topic.id for topic in report.topics),
        *(subtopic.id for topic in report.topics for subtopic in topic.subtopics),
    }
    for remark in report.remarks:
        is_finding = remark.kind == RemarkKind.FINDING
        numbers = {str(number) for number in range(1, len(report.findings) + 1)}
        if remark.about not in (numbers if is_finding else known):
            yield f"A remark is about the {remark.kind} {remark.about!r}, which is not there."
        for id in set(remark.cites) - claims:
            yield f"The remark on {_short(remark.text)} cites claim {id!r}, which is not there."


def _order(report: Report) -> Iterator[str]:
    """The topic for the rest is last."""
    if any(topic.id == OTHER for topic in report.topics[:-1]):
        yield "The topic for everything else is not the last one."


def _repeated(ids: Iterable[str]) -> list[str]:
    return [id for id, count in Counter(ids).items() if count > 1]


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")


CHECKS: tuple[Callable[[Report], Iterable[str]], ...] = (
    _ids,
    _quotes,
    _claims,
    _sentences,
    _remarks,
    _order,
    count_problems,
    funnel_problems,
    coverage_problems,
    crux_problems,
    opinion_problems,
)
