"""The report in the format of Talk to the City (`PipelineOutput` v0.2), so that its own viewer
opens it.

What the format leaves open, and how we fill it:
- Its viewer is JavaScript, so `startIdx` and `endIdx` count UTF-16 code units; `endIdx` is
  exclusive, as in
  `text.slice(startIdx, endIdx)`. Our own files count characters.
- A claim holds all of its quotes. `similarClaims` holds the other wordings that were merged into
  it, without quotes:
  the viewer adds the quotes of similar claims to those of the claim, and nobody should be quoted
  twice.
- `topicColor` is one of the nine names its viewer knows.
- Speakers are written `id:name`, ids counted in order of appearance.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.document import (
    Quote,
    Report,
    ReportClaim,
    ReportSubtopic,
    ReportTopic,
)
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.outputs.t3c_audit import audit_log
from holdfast.apps.report.outputs.t3c_cruxes import add_ons
from holdfast.apps.report.outputs.traversal import claim_positions, quotes_of

VERSION = "v0.2"
COLOURS = (
    "violet",
    "blueSea",
    "blueSky",
    "greenLeaf",
    "greenLime",
    "yellow",
    "red",
    "purple",
    "brown",
)
PROMPTS = {
    "systemInstructions": "system",
    "clusteringInstructions": "clustering",
    "extractionInstructions": "extraction",
    "dedupInstructions": "dedup",
    "summariesInstructions": "summaries",
}
"""Its viewer needs all of these, or none."""
CRUX_PROMPT = "cruxInstructions"

Json = dict[str, Any]


def t3c(report: Report) -> bytes:
    """The report as its `{reportId}.json`."""
    document: Json = {
        "data": [VERSION, _data(report)],
        "metadata": [VERSION, _metadata(report)],
        "auditLog": audit_log(report),
    }
    if (prompts := _prompts(report)) is not None:
        document["promptsUsed"] = prompts
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def _data(report: Report) -> Json:
    numbers = {position.claim.id: position.claim.number for position in claim_positions(report)}
    comments = {comment.id: comment for comment in report.comments}
    topics = sorted(
        report.topics, key=lambda topic: -len({quote.speaker for quote in quotes_of(topic)})
    )
    data: Json = {
        "title": report.title,
        "description": report.description or report.question,
        "date": report.made.at,
        "topics": [_topic(topic, at, comments, numbers) for at, topic in enumerate(topics)],
        "sources": [_source(comment) for comment in report.comments],
    }
    if report.findings:
        question = report.question or "What did people say?"
        data["questionAnswers"] = [
            {"question": question, "answer": _text(report.findings, numbers)}
        ]
    if report.cruxes:
        data["addOns"] = add_ons(report)
    return data


# --- topics, claims, quotes -----------------------------------------------------------------------


def _topic(
    topic: ReportTopic, at: int, comments: dict[str, Comment], numbers: dict[str, int]
) -> Json:
    document: Json = {
        "id": topic.id,
        "title": topic.name,
        "description": topic.description,
        "topicColor": COLOURS[at % len(COLOURS)],
        "subtopics": [_subtopic(subtopic, comments) for subtopic in topic.subtopics],
    }
    if topic.summary:
        document["summary"] = _text(topic.summary, numbers)
    return document


def _subtopic(subtopic: ReportSubtopic, comments: dict[str, Comment]) -> Json:
    return {
        "id": subtopic.id,
        "title": subtopic.name,
        "description": subtopic.description,
        "claims": [_claim(claim, comments) for claim in subtopic.claims],
    }


def _claim(claim: ReportClaim, comments: dict[str, Comment]) -> Json:
    wordings = {
        quote.statement: quote.claim
        for quote in reversed(claim.quotes)
        if quote.statement != claim.statement
    }
    return {
        "id": claim.id,
        "title": claim.statement,
        "number": claim.number,
        "quotes": [_quote(quote, comments[quote.comment]) for quote in claim.quotes],
        "similarClaims": [
            {"id": claim_id, "title": wording, "number": 0, "quotes": [], "similarClaims": []}
            for wording, claim_id in reversed(wordings.items())
        ],
    }


def _quote(quote: Quote, comment: Comment) -> Json:
    return {
        "id": quote.id,
        "text": quote.text,
        "reference": {
            "id": f"r-{quote.id}",
            "sourceId": comment.id,
            "interview": comment.speaker,
            "data": _reference(quote, comment),
        },
    }


def _reference(quote: Quote, comment: Comment) -> list[Any]:
    if _is_video(comment):
        return ["video", {"link": comment.video, "beginTimestamp": _timestamp(comment)}]
    return [
        "text",
        {"startIdx": utf16(comment.text, quote.start), "endIdx": utf16(comment.text, quote.end)},
    ]


def _source(comment: Comment) -> Json:
    data: list[Any] = ["text", {"text": comment.text}]
    if _is_video(comment):
        data = [
            "video",
            {"text": comment.text, "link": comment.video, "timestamp": _timestamp(comment)},
        ]
    return {"id": comment.id, "interview": comment.speaker, "data": data}


def _is_video(comment: Comment) -> bool:
    """Only links that a browser opens as pages: the viewer follows them."""
    return comment.video.lower().startswith(("http://", "https://"))


def _timestamp(comment: Comment) -> str:
    return comment.timestamp or "0:00:00"


def utf16(text: str, index: int) -> int:
    """The index of the same character where strings are counted in UTF-16 code units."""
    return index + sum(char > "\uffff" for char in text[:index])


# --- about the report -----------------------------------------------------------------------------


def _text(sentences: Iterable[Sentence], numbers: dict[str, int]) -> str:
    """Sentences with the numbers of the claims they rest on."""
    return " ".join(
        " ".join([sentence.text, *(f"[{numbers[id]}]" for id in sentence.cites if id in numbers)])
        for sentence in sentences
    )


def _metadata(report: Report) -> Json:
    duration = round(report.made.seconds * 1000)
    cost = report.made.cost
    return {
        "startTimestamp": _milliseconds(report.made.at) - duration,
        "duration": duration,
        "totalCost": "unknown" if cost is None else f"${cost:.4f}",
        "author": report.made.software,
        "organization": "",
    }


def _milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)


def _prompts(report: Report) -> Json | None:
    used = {prompt.name: prompt.text for prompt in report.method.prompts}
    if not set(PROMPTS.values()) <= used.keys():
        return None
    prompts: Json = {theirs: used[ours] for theirs, ours in PROMPTS.items()}
    return {**prompts, CRUX_PROMPT: used["crux"]} if "crux" in used else prompts
