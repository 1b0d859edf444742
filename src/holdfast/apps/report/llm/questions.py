"""How a question is put: what many share comes first and can be cached, the data comes last and is
fenced in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from holdfast.apps.report.llm.prompts import prompt
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.taxonomy import OTHER, Topic

OPENING, CLOSING = "<data>", "</data>"


def system_prompt(brief: Brief, task: str, *more: str) -> str:
    """Role, rules, what was asked, what this kind of question needs besides, and the task
    itself."""
    parts = [
        prompt("system", brief),
        prompt("rules", brief),
        _language(brief),
        _asked(brief),
        *more,
        prompt(task, brief),
    ]
    return "\n\n".join(part for part in parts if part)


def data_block(payload: Any) -> str:
    """The payload as JSON in its block, which no text inside can close: `</` is written `<\\/`, the
    same in JSON."""
    return f"{OPENING}\n{compact_json(payload)}\n{CLOSING}"


def compact_json(payload: Any) -> str:
    """JSON without ornaments, the same for the same payload."""
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")


def taxonomy_block(topics: Sequence[Topic]) -> str:
    """The taxonomy, as it stands in the part that is cached."""
    listed = [
        {
            "name": topic.name,
            "description": topic.description,
            "subtopics": [
                {"id": subtopic.id, "name": subtopic.name, "description": subtopic.description}
                for subtopic in topic.subtopics
            ],
        }
        for topic in topics
    ]
    return (
        f'The topics and their subtopics, and "{OTHER}" for what fits '
        f"none:\n<topics>\n{compact_json(listed)}\n</topics>"
    )


def digest(*parts: str) -> str:
    """What identifies a content: the same parts, the same digest."""
    return sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _language(brief: Brief) -> str:
    language = (
        "the language in which most of the comments are written"
        if brief.language in ("", "und")
        else f'the language with the code "{brief.language}" (BCP 47)'
    )
    return (
        f"Write all names, descriptions, statements and sentences in {language}. Quotes stay in "
        "their own language."
    )


def _asked(brief: Brief) -> str:
    """The question; the title stands in for it, and does not come on top: a new title is no new
    question."""
    question = brief.question or brief.title
    lines = [f"The question that people answered: {question}"] if question else []
    if brief.description:
        lines.append(f"About the consultation: {brief.description}")
    return "\n".join(lines)
