"""A brain for the fake server: rules that answer the questions of a report, always the same way.

It is an honest model of modest talent: it looks for frequent words, takes sentences for claims, and
now and then spoils a quote, as real models do. What it says about a comment depends on nothing but
that comment and the topics."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any

from holdfast.apps.report.testing.brain_topics import (
    best_subtopics,
    frequent_topics,
    names_and_words,
    topics_of,
    wanted_topics,
)
from holdfast.apps.report.testing.brain_words import sentences, stated, words
from holdfast.testing.fakellm.brains import smallest

DATA = re.compile(r"<data>\n(.*)\n</data>", re.DOTALL)
NUMBER = re.compile(r"exactly (\d+) topics")
NEGATIVE = re.compile(
    r"\b(?:not|no|never|against|less|stop|ban|nicht|kein\w*)\b|n['’]t\b|不|沒|没|反對|反对"
)
MOST_CLAIMS = 4


class ReportBrain:
    """Answers every question of a report.

    One in `altered` quotes has another spacing or case than the comment, one in `invented` is not
    in it at all; which ones is decided by their words. 0 means never."""

    def __init__(self, *, altered: int = 20, invented: int = 50) -> None:
        self.altered = altered
        self.invented = invented
        self._tasks: dict[str, Callable[[Any, str], Any]] = {
            "clustering": self.clustering,
            "merging": self.merging,
            "extending": self.extending,
            "assignment": self.assignment,
            "extraction": self.extraction,
            "requote": self.requote,
            "dedup": self.dedup,
            "summaries": self.summaries,
            "overview": self.overview,
            "crux": self.crux,
            "review_names": self.review_names,
            "review_findings": self.review_findings,
        }

    def answer(self, task: str, system: str, text: str, schema: dict[str, Any]) -> Any:
        """What the model says, as data that fits the schema."""
        block = DATA.search(text)
        if block is None or task not in self._tasks:
            return smallest(schema)
        return self._tasks[task](json.loads(block[1]), system)

    # --- topics -----------------------------------------------------------------------------------

    def clustering(self, data: Any, system: str) -> Any:
        match = NUMBER.search(system)
        comments = [words(text) for text in data["comments"]]
        number = int(match[1]) if match else max(2, min(8, len(comments) // 6))
        return {
            "topics": [
                *wanted_topics(system),
                *frequent_topics(comments, number, names_and_words(wanted_topics(system))),
            ][:number]
        }

    def merging(self, data: Any, system: str) -> Any:
        """Topics by how much stands behind them, those of the same name as one."""
        weights: Counter[str] = Counter()
        topics: dict[str, Any] = {}
        for proposal in data["proposals"]:
            for topic in proposal["topics"]:
                weights[topic["name"]] += proposal["weight"]
                merged = topics.setdefault(topic["name"], {**topic, "subtopics": []})
                names = {subtopic["name"] for subtopic in merged["subtopics"]}
                merged["subtopics"] += [
                    subtopic for subtopic in topic["subtopics"] if subtopic["name"] not in names
                ]
        for topic in topics.values():
            topic["subtopics"] = topic["subtopics"][:4]
        number = NUMBER.search(system)
        best = sorted(weights, key=lambda name: (-weights[name], name))[
            : int(number[1]) if number else 10
        ]
        return {
            "topics": [
                *wanted_topics(system),
                *(
                    topics[name]
                    for name in best
                    if name not in names_and_words(wanted_topics(system))
                ),
            ]
        }

    def extending(self, data: Any, system: str) -> Any:
        return {
            "topics": frequent_topics(
                [words(text) for text in data["comments"]], 2, names_and_words(topics_of(system))
            )
        }

    def assignment(self, data: Any, system: str) -> Any:
        topics = topics_of(system)
        return {
            "comments": [
                {"id": comment["id"], "subtopics": best_subtopics(comment["text"], topics)}
                for comment in data["comments"]
            ]
        }

    # --- claims -----------------------------------------------------------------------------------

    def extraction(self, data: Any, system: str) -> Any:
        keywords = {
            subtopic["id"]: set(words(subtopic["name"]))
            for topic in topics_of(system)
            for subtopic in topic["subtopics"]
        }
        return {
            "comments": [
                {"id": comment["id"], "claims": self.claims(comment, keywords)}
                for comment in data["comments"]
            ]
        }

    def claims(self, comment: Any, keywords: dict[str, set[str]]) -> list[Any]:
        def about(quote: str) -> str:
            quoted_words = set(words(quote))
            return max(
                comment["subtopics"], key=lambda id: len(quoted_words & keywords.get(id, set()))
            )

        parts = [comment["text"]] if comment.get("voted") else sentences(comment["text"])
        quotes = [quote for quote in parts if len(quote) > 8][:MOST_CLAIMS]
        return [
            {"statement": stated(quote), "quote": self.spoiled(quote), "subtopic": about(quote)}
            for quote in quotes
        ]

    def spoiled(self, quote: str) -> str:
        """The quote, or what a careless model makes of it."""
        chance = _chance(quote)
        if self.invented and chance % self.invented == 0:
            return "Nobody has ever said this in so many words."
        if self.altered and chance % self.altered == 1 % self.altered:
            return quote.upper() if chance % 2 else quote.replace(" ", "  ")
        return quote

    def requote(self, data: Any, system: str) -> Any:
        return {
            "quotes": [{"id": entry["id"], "quote": _passage(entry)} for entry in data["comments"]]
        }

    def dedup(self, data: Any, system: str) -> Any:
        """Claims of the same words are the same claim, in whatever order; one that denies something
        is another."""
        groups: dict[Any, list[Any]] = {}
        for claim in data["claims"]:
            statement = claim["statement"]
            denied = NEGATIVE.search(statement.lower()) is not None
            groups.setdefault((frozenset(words(statement)) or claim["id"], denied), []).append(
                claim
            )
        listed = [
            {"statement": same[0]["statement"], "claims": [claim["id"] for claim in same]}
            for same in groups.values()
        ]
        return {"groups": listed}

    # --- sentences --------------------------------------------------------------------------------

    def summaries(self, data: Any, system: str) -> Any:
        return {"sentences": [_cited(pair) for pair in _pairs(data["claims"][:10])]}

    def overview(self, data: Any, system: str) -> Any:
        by_topic = [topic["claims"][:2] for topic in data["topics"] if topic["claims"]]
        return {"sentences": [_cited(claims) for claims in by_topic[:8]]}

    def review_names(self, data: Any, system: str) -> Any:
        """A name fits if one of its words is in a claim under it."""
        return {"groups": [_judged(group, "fits", group["name"]) for group in data["groups"]]}

    def review_findings(self, data: Any, system: str) -> Any:
        return {
            "findings": [_judged(finding, "holds", finding["text"]) for finding in data["findings"]]
        }

    def crux(self, data: Any, system: str) -> Any:
        """The first claim; who denies something disagrees, who made it agrees."""
        claim = data["claims"][0]
        denials = {
            other["number"]
            for other in data["claims"][1:]
            if NEGATIVE.search(other["statement"].lower())
        }
        speakers = data["speakers"]
        agree = [who["number"] for who in speakers if claim["number"] in who["claims"]]
        disagree = [
            who["number"]
            for who in speakers
            if denials & set(who["claims"]) and who["number"] not in agree
        ]
        if not agree or not disagree:
            return {
                "divided": False,
                "statement": "",
                "explanation": "",
                "agree": [],
                "disagree": [],
                "claims": [],
            }
        return {
            "divided": True,
            "statement": claim["statement"],
            "explanation": (
                "Some say so and give their reasons; others deny it or want something else instead."
            ),
            "agree": agree,
            "disagree": disagree,
            "claims": [claim["number"], *sorted(denials)[:3]],
        }


def _passage(entry: Any) -> str:
    """The sentence of a comment that has most words of a claim, if it has half of them."""
    claim = set(words(entry["claim"]))
    best = max(
        sentences(entry["text"]), key=lambda sentence: len(claim & set(words(sentence))), default=""
    )
    return best if len(claim & set(words(best))) * 2 >= len(claim) else ""


def _pairs(claims: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (claims[start : start + 2] for start in range(0, len(claims), 2))


def _cited(claims: Sequence[Any]) -> Any:
    statements = "; others add: ".join(claim["statement"].rstrip(".。!?") for claim in claims)
    return {"text": f"People say: {statements}.", "claims": [claim["number"] for claim in claims]}


def _judged(entry: Any, verdict: str, text: str) -> Any:
    claim_words = {word for claim in entry["claims"] for word in words(claim["statement"])}
    right = bool(claim_words & set(words(text)))
    numbers = [] if right else [claim["number"] for claim in entry["claims"]]
    why = "" if right else "None of its words is in the claims."
    return {"id": entry["id"], "claims": numbers, "why": why, verdict: right}


def _chance(text: str) -> int:
    return int(sha256(text.encode("utf-8", "replace")).hexdigest()[:8], 16)
