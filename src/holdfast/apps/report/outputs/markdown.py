"""`report.md`: the whole report as text that reads well as it is and renders everywhere.

Names, statements and summaries that a model wrote are marked ◆; quotes are people's own words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.apps.report.model.document import (
    Quote,
    Report,
    ReportClaim,
    ReportCrux,
    ReportSubtopic,
    ReportTopic,
)
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.outputs.markdown_text import anchor, escape
from holdfast.apps.report.outputs.traversal import claim_positions, topic_names

SHOWN_QUOTES = 3
BASES = {
    "votes": "people voted on it",
    "claims": "from what people said",
    "tension": "a possible tension: two claims that seem to contradict each other, not a finding",
}

STAGES = {
    "rows": "rows of the input",
    "comments": "comments that were analysed",
    "speaking": "comments with at least one claim",
    "drafts": "claims proposed",
    "extracted": "claims with a verified quote",
    "claims": "claims after merging",
}


def markdown(report: Report) -> str:
    """The report as Markdown."""
    numbers = {position.claim.id: position.claim.number for position in claim_positions(report)}
    blocks = [
        *_header(report),
        *_findings(report, numbers),
        *_contents(report),
        *_topics(report, numbers),
        *_cruxes(report, numbers),
        *_method(report),
    ]
    return "\n\n".join(blocks) + "\n"


def _header(report: Report) -> Iterator[str]:
    counts = report.counts
    yield f"# {escape(report.title)}"
    if report.question:
        yield f"*{escape(report.question)}*"
    if report.description:
        yield escape(report.description)
    yield (
        f"**{_number(counts.people)}** people · **{_number(counts.comments)}** comments · "
        f"**{_number(counts.claims)}** claims · **{_number(counts.quotes)}** quotes · "
        f"**{_number(counts.topics)}** topics · **{_number(counts.subtopics)}** subtopics"
    )
    if report.method.generated:
        yield "Text marked ◆ was written by a model. Quotes are people's own words."
    yield from (f"> ⚠ {escape(warning)}" for warning in report.warnings)


def _findings(report: Report, numbers: dict[str, int]) -> Iterator[str]:
    if report.findings:
        yield "## Key findings" + _mark(report)
        yield "\n".join(f"- {_sentence(sentence, numbers)}" for sentence in report.findings)


def _contents(report: Report) -> Iterator[str]:
    if report.topics:
        yield "## At a glance"
        head = ["| Topic | People | Claims | Comments |", "|:--|--:|--:|--:|"]
        lines = (
            f"| [{escape(topic.name)}](#{anchor(topic.id)}) | {topic.people} | {topic.claims} | "
            f"{topic.comments} |"
            for topic in report.topics
        )
        yield "\n".join([*head, *lines])


# --- topics and claims ----------------------------------------------------------------------------


def _topics(report: Report, numbers: dict[str, int]) -> Iterator[str]:
    """All topics, under their questions where people were asked several."""
    question = ""
    for topic in report.topics:
        if topic.question and topic.question != question:
            question = topic.question
            yield f"## *{escape(question)}*"
        yield from _topic(topic, report, numbers)


def _topic(topic: ReportTopic, report: Report, numbers: dict[str, int]) -> Iterator[str]:
    yield f'## <a id="{anchor(topic.id)}"></a>{escape(topic.name)}{_mark(report)}'
    share = f" ({_percent(topic.people / report.counts.people)})" if report.counts.people else ""
    divided = "" if topic.controversy is None else f" · controversy {_percent(topic.controversy)}"
    yield f"{_plural(topic.claims, 'claim')} by {_people(topic.people)}{share}{divided}"
    if topic.description:
        yield escape(topic.description)
    if topic.summary:
        yield " ".join(_sentence(sentence, numbers) for sentence in topic.summary) + _mark(report)
    for subtopic in topic.subtopics:
        yield from _subtopic(subtopic, report)


def _subtopic(subtopic: ReportSubtopic, report: Report) -> Iterator[str]:
    yield f"### {escape(subtopic.name)}{_mark(report)}"
    yield f"{_plural(len(subtopic.claims), 'claim')} by {_people(subtopic.people)}"
    if subtopic.description:
        yield escape(subtopic.description)
    yield from (_claim(claim) for claim in subtopic.claims)


def _claim(claim: ReportClaim) -> str:
    """Statement, support and the first quotes, in one list item."""
    head = (
        f'- <a id="{anchor(claim.id)}"></a>**{claim.number}. {escape(claim.statement)}** '
        f"({_support(claim)})"
    )
    quotes = "\n  >\n".join(f"  > {_quote(quote)}" for quote in claim.quotes[:SHOWN_QUOTES])
    lines = [head, quotes]
    if (more := len(claim.quotes) - SHOWN_QUOTES) > 0:
        lines += ["", f"  … and {more} more"]
    return "\n".join(lines)


def _quote(quote: Quote) -> str:
    return f"“{escape(quote.text)}” — {escape(quote.speaker)}, row {quote.row}"


def _support(claim: ReportClaim) -> str:
    parts = [_people(claim.people)]
    if len(claim.quotes) > 1:
        parts.append(_plural(len(claim.quotes), "quote"))
    if claim.votes:
        votes = claim.votes
        parts.append(
            f"votes: {votes.agrees} agree, {votes.disagrees} disagree, {votes.passes} pass"
        )
    return " · ".join(parts)


# --- cruxes ---------------------------------------------------------------------------------------


def _cruxes(report: Report, numbers: dict[str, int]) -> Iterator[str]:
    if report.cruxes:
        tensions = all(crux.basis == "tension" for crux in report.cruxes)
        yield "## Possible tensions" if tensions else "## What divides people"
        called = topic_names(report)
        yield from (_crux(crux, called, numbers, report) for crux in report.cruxes)


def _crux(crux: ReportCrux, called: dict[str, str], numbers: dict[str, int], report: Report) -> str:
    position = " → ".join(escape(called.get(id, id)) for id in (crux.topic, crux.subtopic))
    voted = crux.basis == "votes"
    mark = "" if voted else _mark(report)
    undecided = "pass" if voted else "unclear"
    counts = f"{crux.agree} agree, {crux.disagree} disagree, {crux.unclear} {undecided}"
    divided = f"controversy {_percent(crux.controversy)} ({escape(crux.level)})"
    lines = [
        f'- <a id="{anchor(crux.id)}"></a>**{escape(crux.statement)}**{mark}'
        f"{_citations(crux.cites, numbers)}  ",
        f"  {position} · {counts} · {divided} · {BASES.get(crux.basis, escape(crux.basis))}",
    ]
    if crux.explanation:
        lines += ["", f"  {escape(crux.explanation)}{mark}"]
    return "\n".join(lines)


# --- how it was made ------------------------------------------------------------------------------


def _method(report: Report) -> Iterator[str]:
    method, source, made, coverage = report.method, report.source, report.made, report.coverage
    yield "## How this was made"
    yield _list(
        [
            f"Analysed by: {escape(method.analyst)}",
            f"Input: {escape(source.filename)} ({_number(source.bytes)} bytes, sha256 "
            f"{escape(source.sha256)})",
            f"Comments placed in a topic: {_percent(coverage.placed)}; with at least one claim: "
            f"{_percent(coverage.speaking)}; characters inside a quote: "
            f"{_percent(coverage.quoted_characters)}",
            f"Made {escape(made.at)} by {escape(made.software)} in {made.seconds:.0f} s; cost: "
            f"{_cost(made.cost)}",
            *(f"Option {escape(name)}: {escape(value)}" for name, value in method.options.items()),
        ]
    )
    if report.funnel:
        yield "### From rows to claims"
        yield _list(_stages(report))
    if method.failed:
        yield "### Comments that could not be analysed"
        yield _list(f"{escape(comment)}: {escape(why)}" for comment, why in method.failed)
    if method.notes:
        yield "### Limits"
        yield _list(escape(note) for note in method.notes)
    if report.reviewer:
        yield "### Second opinion"
        yield _second_opinion(report)
    if method.prompts:
        yield "### Prompts"
        changed = {True: "customised", False: "default"}
        yield _list(
            f"{escape(prompt.name)} ({changed[prompt.customised]}): {escape(prompt.text)}"
            for prompt in method.prompts
        )


def _second_opinion(report: Report) -> str:
    reviewer = escape(report.reviewer)
    if not report.remarks:
        return f"{reviewer} reviewed names and findings and disagrees with none."
    numbers = {position.claim.id: position.claim.number for position in claim_positions(report)}
    remarks = [
        f"“{escape(remark.text)}”: {escape(remark.why)}"
        + "".join(f" [{numbers[id]}]" for id in remark.cites if id in numbers)
        for remark in report.remarks
    ]
    return f"{reviewer} disagrees here; a person should read:\n\n{_list(remarks)}"


def _stages(report: Report) -> Iterator[str]:
    for stage in report.funnel:
        lost = ", ".join(
            f"{_number(loss.count)} {escape(loss.reason)}" for loss in stage.lost if loss.count
        )
        yield f"{STAGES.get(stage.name, escape(stage.name))}: {_number(stage.count)}" + (
            f" (lost: {lost})" if lost else ""
        )


# --- small words ----------------------------------------------------------------------------------


def _sentence(sentence: Sentence, numbers: dict[str, int]) -> str:
    return escape(sentence.text) + _citations(sentence.cites, numbers)


def _citations(cites: Iterable[str], numbers: dict[str, int]) -> str:
    links = (f"[\\[{numbers[id]}\\]](#{anchor(id)})" for id in cites if id in numbers)
    return "".join(f" {link}" for link in links)


def _mark(report: Report) -> str:
    return " ◆" if report.method.generated else ""


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _plural(count: int, noun: str) -> str:
    return f"{_number(count)} {noun}" if count == 1 else f"{_number(count)} {noun}s"


def _people(count: int) -> str:
    return f"{_number(count)} person" if count == 1 else f"{_number(count)} people"


def _number(count: int) -> str:
    return f"{count:,}"


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _cost(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:.4f}" if cost else "nothing"
