"""Topics as the fake model finds them: frequent words, and the words that come along with them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.apps.report.testing.brain_words import words

TOPICS = re.compile(r"<topics>\n(.*?)\n</topics>", re.DOTALL)
WANTED = re.compile(r"<wanted>\n(.*?)\n</wanted>", re.DOTALL)
DESCRIPTION = (
    "What people say about {word}, whichever side they take: hopes, worries, experiences and "
    "proposals, as far as they are chiefly about {word} and not about any of the other topics."
)


def topics_of(system: str) -> list[Any]:
    match = TOPICS.search(system)
    return json.loads(match[1]) if match else []


def wanted_topics(system: str) -> list[Any]:
    """Topics that were asked for, in the form of an answer."""
    match = WANTED.search(system)
    return [
        {
            "name": topic["name"],
            "description": topic["description"] or DESCRIPTION.format(word=topic["name"]),
            "subtopics": [_subtopic(name) for name in topic["subtopics"] or [topic["name"]]],
        }
        for topic in (json.loads(match[1]) if match else ())
    ]


def frequent_topics(comments: Sequence[Sequence[str]], number: int, taken: set[str]) -> list[Any]:
    """The most frequent words as topics, and the words that come along with them as subtopics."""
    frequent = Counter(word for comment in comments for word in set(comment) if word not in taken)
    chosen = [
        word for word, _ in sorted(frequent.items(), key=lambda pair: (-pair[1], pair[0]))[:number]
    ]
    return [_topic(word, comments, {*chosen, *taken}) for word in chosen]


def _topic(word: str, comments: Sequence[Sequence[str]], taken: set[str]) -> Any:
    beside = Counter(
        other
        for comment in comments
        if word in comment
        for other in set(comment)
        if other not in taken
    )
    companions = [
        other for other, _ in sorted(beside.items(), key=lambda pair: (-pair[1], pair[0]))[:2]
    ]
    subtopics = [_subtopic(f"{word} and {other}") for other in companions]
    return {
        "name": word.capitalize(),
        "description": DESCRIPTION.format(word=word),
        "subtopics": [*subtopics, _subtopic(f"{word} in general")],
    }


def _subtopic(name: str) -> Any:
    return {"name": name.capitalize(), "description": DESCRIPTION.format(word=name)}


def names_and_words(topics: Iterable[Any]) -> set[str]:
    return {word for topic in topics for word in [topic["name"], *words(topic["name"])]}


def best_subtopics(text: str, topics: Sequence[Any]) -> list[str]:
    """The best subtopic of each of the two best topics whose word is in the comment."""
    words_of_comment = set(words(text))
    scored = []
    for topic in topics:
        best = max(
            topic["subtopics"],
            key=lambda subtopic: len(words_of_comment & set(words(subtopic["name"]))),
        )
        if score := len(words_of_comment & set(words(best["name"]))):
            scored.append((score, best["id"]))
    return [id for _, id in sorted(scored, key=lambda pair: -pair[0])[:2]] or ["other"]
