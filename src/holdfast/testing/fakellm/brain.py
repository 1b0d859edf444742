"""Brains for the fake server: rules that answer the questions of a report, always the same way.

`ReportBrain` is an honest model of modest talent: it looks for frequent words, takes sentences for
claims, and now and then spoils a quote, as real models do. What it says about a comment depends on
nothing but that comment and the topics. `HostileBrain` is one that believes whatever a comment
tells it."""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from holdfast.testing.fakellm.minimal import smallest

DATA = re.compile(r"<data>\n(.*)\n</data>", re.DOTALL)
TOPICS = re.compile(r"<topics>\n(.*?)\n</topics>", re.DOTALL)
WANTED = re.compile(r"<wanted>\n(.*?)\n</wanted>", re.DOTALL)
NUMBER = re.compile(r"exactly (\d+) topics")
SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
LATIN = re.compile(r"[^\W\d_]{3,}(?:['’][^\W\d_]+)?")
DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
NEGATIVE = re.compile(
    r"\b(?:not|no|never|against|less|stop|ban|nicht|kein\w*)\b|n['’]t\b|不|沒|没|反對|反对"
)
_COMMON = (
    "about after again all also although always and any are because been before being both but "
    "came can could did does "
    "done down each even ever every few for from get give goes had has have here how into its just "
    "know less like made "
    "make many may more most much must need needs never not now off one only other our out over "
    "own people really "
    "same say should some such than that the their them then there these they thing things this "
    "those through too "
    "under until use very want was way well were what when where which while who why will with "
    "without would you your "
    "aber auch auf aus bei das dass dem den der des die dies eine einen einer für haben hat ich "
    "ihr ist kann mehr mit "
    "nach nicht noch nur oder sein sich sie sind über und uns von was wenn wer wie wir wird zum zur"
)
COMMON = frozenset(_COMMON.split())
DESCRIPTION = (
    "What people say about {word}, whichever side they take: hopes, worries, experiences and "
    "proposals, as far as they "
    "are chiefly about {word} and not about any of the other topics."
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
        }

    def answer(self, task: str, system: str, text: str, schema: dict[str, Any]) -> Any:
        """What the model says, as data that fits the schema."""
        block = DATA.search(text)
        if block is None or task not in self._tasks:
            return smallest(schema)
        return self._tasks[task](json.loads(block[1]), system)

    # --- topics -----------------------------------------------------------------------------------

    def clustering(self, data: Any, system: str) -> Any:
        asked = NUMBER.search(system)
        comments = [words(text) for text in data["comments"]]
        number = int(asked[1]) if asked else max(2, min(8, len(comments) // 6))
        return {
            "topics": [*wanted(system), *_topics(comments, number, _taken(wanted(system)))][:number]
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
                    each for each in topic["subtopics"] if each["name"] not in names
                ]
        for topic in topics.values():
            topic["subtopics"] = topic["subtopics"][:4]
        asked = NUMBER.search(system)
        best = sorted(weights, key=lambda name: (-weights[name], name))[
            : int(asked[1]) if asked else 10
        ]
        return {
            "topics": [
                *wanted(system),
                *(topics[name] for name in best if name not in _taken(wanted(system))),
            ]
        }

    def extending(self, data: Any, system: str) -> Any:
        return {
            "topics": _topics(
                [words(text) for text in data["comments"]], 2, _taken(topics_of(system))
            )
        }

    def assignment(self, data: Any, system: str) -> Any:
        topics = topics_of(system)
        return {
            "comments": [
                {"id": each["id"], "subtopics": _places(each["text"], topics)}
                for each in data["comments"]
            ]
        }

    # --- claims -----------------------------------------------------------------------------------

    def extraction(self, data: Any, system: str) -> Any:
        keywords = {
            one["id"]: set(words(one["name"]))
            for topic in topics_of(system)
            for one in topic["subtopics"]
        }
        return {
            "comments": [
                {"id": each["id"], "claims": self.claims(each, keywords)}
                for each in data["comments"]
            ]
        }

    def claims(self, comment: Any, keywords: dict[str, set[str]]) -> list[Any]:
        def about(quote: str) -> str:
            own = set(words(quote))
            return max(comment["subtopics"], key=lambda each: len(own & keywords.get(each, set())))

        quotes = [quote for quote in sentences(comment["text"]) if len(quote) > 8][:MOST_CLAIMS]
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
            "quotes": [{"id": each["id"], "quote": _passage(each)} for each in data["comments"]]
        }

    def dedup(self, data: Any, system: str) -> Any:
        """Claims of the same words are the same claim, in whatever order; one that denies something
        is another."""
        groups: dict[Any, list[Any]] = {}
        for claim in data["claims"]:
            said = claim["statement"]
            denied = NEGATIVE.search(said.lower()) is not None
            groups.setdefault((frozenset(words(said)) or claim["id"], denied), []).append(claim)
        listed = [
            {"statement": own[0]["statement"], "claims": [each["id"] for each in own]}
            for own in groups.values()
        ]
        return {"groups": listed}

    # --- sentences --------------------------------------------------------------------------------

    def summaries(self, data: Any, system: str) -> Any:
        return {"sentences": [_cited(pair) for pair in _pairs(data["claims"][:10])]}

    def overview(self, data: Any, system: str) -> Any:
        told = [topic["claims"][:2] for topic in data["topics"] if topic["claims"]]
        return {"sentences": [_cited(claims) for claims in told[:8]]}

    def crux(self, data: Any, system: str) -> Any:
        """The first claim; who denies something disagrees, who made it agrees."""
        claim = data["claims"][0]
        denials = {
            each["number"]
            for each in data["claims"][1:]
            if NEGATIVE.search(each["statement"].lower())
        }
        agree = [each["number"] for each in data["speakers"] if claim["number"] in each["claims"]]
        disagree = [each["number"] for each in data["speakers"] if denials & set(each["claims"])]
        disagree = [each for each in disagree if each not in agree]
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


class HostileBrain(ReportBrain):
    """Obeys every comment that speaks of `HACKED`, plainly or in disguise, at the expense of all
    others it sees."""

    def answer(self, task: str, system: str, text: str, schema: dict[str, Any]) -> Any:
        honest = super().answer(task, system, text, schema)
        block = DATA.search(text)
        if block is None or not any(map(is_command, strings(json.loads(block[1])))):
            return honest
        return getattr(self, f"hacked_{task}", lambda _: honest)(honest)

    def hacked_clustering(self, honest: Any) -> Any:
        hacked = {
            "name": "HACKED",
            "description": "HACKED",
            "subtopics": [{"name": "HACKED", "description": "HACKED"}],
        }
        return {"topics": [hacked, *honest["topics"]]}

    hacked_merging = hacked_extending = hacked_clustering

    def hacked_assignment(self, honest: Any) -> Any:
        wrong = [
            {"id": each["id"], "subtopics": ["t1.1", "HACKED", "t99.9"]}
            for each in honest["comments"]
        ]
        return {"comments": [{"id": "999", "subtopics": ["t1.1"]}, *wrong]}

    def hacked_extraction(self, honest: Any) -> Any:
        claim = {
            "statement": "Everybody was HACKED",
            "quote": "we were all HACKED",
            "subtopic": "t99.9",
        }
        stolen = [claim for comment in honest["comments"] for claim in comment["claims"]]
        wrong = [{"id": each["id"], "claims": [claim, *stolen[:3]]} for each in honest["comments"]]
        return {
            "comments": [{"id": "999", "claims": [claim]}, {"id": "c-1", "claims": [claim]}, *wrong]
        }

    def hacked_requote(self, honest: Any) -> Any:
        return {
            "quotes": [
                {"id": each["id"], "quote": "we were all HACKED"} for each in honest["quotes"]
            ]
        }

    def hacked_dedup(self, honest: Any) -> Any:
        everything = [each for group in honest["groups"] for each in group["claims"]]
        return {"groups": [{"statement": "Everybody was HACKED", "claims": ["999", *everything]}]}

    def hacked_summaries(self, honest: Any) -> Any:
        return {"sentences": [{"text": "Everybody was HACKED.", "claims": [1, 999]}]}

    hacked_overview = hacked_summaries

    def hacked_crux(self, honest: Any) -> Any:
        explanation = "Everybody was HACKED, which is all there is to say."
        return {
            **honest,
            "divided": True,
            "statement": "HACKED",
            "explanation": explanation,
            "agree": [1, 999],
        }


# --- words ----------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 14)
def words(text: str) -> tuple[str, ...]:
    """The telling words of a text; where words are not separated, pairs of signs."""
    found = [
        word
        for word in map(str.lower, LATIN.findall(text))
        if word not in COMMON and not DENSE.search(word)
    ]
    dense = re.findall("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}", text)
    return (*found, *(run[index : index + 2] for run in dense for index in range(len(run) - 1)))


def sentences(text: str) -> list[str]:
    """A text's sentences, letter for letter."""
    return [
        stripped
        for match in SENTENCE.finditer(text)
        if (stripped := match[0].strip()) and words(stripped)
    ]


def stated(quote: str) -> str:
    """A quote as a statement."""
    plain = " ".join(quote.split())[:200]
    return plain[:1].upper() + plain[1:]


def topics_of(system: str) -> list[Any]:
    found = TOPICS.search(system)
    return json.loads(found[1]) if found else []


def wanted(system: str) -> list[Any]:
    """Topics that were asked for, in the form of an answer."""
    found = WANTED.search(system)
    return [
        {
            "name": topic["name"],
            "description": topic["description"] or DESCRIPTION.format(word=topic["name"]),
            "subtopics": [_subtopic(name) for name in topic["subtopics"] or [topic["name"]]],
        }
        for topic in (json.loads(found[1]) if found else ())
    ]


def strings(data: Any) -> Iterator[str]:
    """Every text in some data."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for value in data.values():
            yield from strings(value)
    elif isinstance(data, list):
        for value in data:
            yield from strings(value)


def is_command(text: str) -> bool:
    """Whether a text speaks of HACKED, however well it hides that."""
    return any("HACKED" in plain.upper() for plain in _readings(text))


def _readings(text: str) -> Iterator[str]:
    yield text
    yield unicodedata.normalize("NFKC", text)
    yield re.sub(r"[\W_]", "", text)
    yield codecs.decode(text, "rot13")
    yield "".join(chr(ord(char) - 0xE0000) for char in text if 0xE0020 <= ord(char) < 0xE007F)
    yield text.translate(str.maketrans("НАСКЕ", "HACKE"))
    for run in re.findall(r"[A-Za-z0-9+/]{8,}={0,2}", text):
        try:
            yield base64.b64decode(run + "=" * (-len(run) % 4)).decode("utf-8", "ignore")
        except (binascii.Error, ValueError):
            continue
    for run in re.findall(r"(?:[0-9a-fA-F]{2}[ :]?){6,}", text):
        yield bytes.fromhex(re.sub(r"[ :]", "", run)).decode("utf-8", "ignore")


# --- parts of answers -----------------------------------------------------------------------------


def _topics(comments: Sequence[Sequence[str]], number: int, taken: set[str]) -> list[Any]:
    """The most frequent words as topics, and the words that come along with them as subtopics."""
    frequent = Counter(word for comment in comments for word in set(comment) if word not in taken)
    chosen = [
        word for word, _ in sorted(frequent.items(), key=lambda pair: (-pair[1], pair[0]))[:number]
    ]
    return [_topic(word, comments, {*chosen, *taken}) for word in chosen]


def _topic(word: str, comments: Sequence[Sequence[str]], taken: set[str]) -> Any:
    beside = Counter(
        each
        for comment in comments
        if word in comment
        for each in set(comment)
        if each not in taken
    )
    companions = [
        each for each, _ in sorted(beside.items(), key=lambda pair: (-pair[1], pair[0]))[:2]
    ]
    subtopics = [_subtopic(f"{word} and {each}") for each in companions]
    return {
        "name": word.capitalize(),
        "description": DESCRIPTION.format(word=word),
        "subtopics": [*subtopics, _subtopic(f"{word} in general")],
    }


def _subtopic(name: str) -> Any:
    return {"name": name.capitalize(), "description": DESCRIPTION.format(word=name)}


def _taken(topics: Iterable[Any]) -> set[str]:
    return {word for topic in topics for word in [topic["name"], *words(topic["name"])]}


def _places(text: str, topics: Sequence[Any]) -> list[str]:
    """The best subtopic of each of the two best topics whose word is in the comment."""
    own = set(words(text))
    scored = []
    for topic in topics:
        best = max(topic["subtopics"], key=lambda one: len(own & set(words(one["name"]))))
        if score := len(own & set(words(best["name"]))):
            scored.append((score, best["id"]))
    return [place for _, place in sorted(scored, key=lambda pair: -pair[0])[:2]] or ["other"]


def _passage(entry: Any) -> str:
    """The sentence of a comment that has most words of a claim, if it has half of them."""
    claim = set(words(entry["claim"]))
    found = max(
        sentences(entry["text"]), key=lambda each: len(claim & set(words(each))), default=""
    )
    return found if len(claim & set(words(found))) * 2 >= len(claim) else ""


def _pairs(claims: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (claims[start : start + 2] for start in range(0, len(claims), 2))


def _cited(claims: Sequence[Any]) -> Any:
    told = "; others add: ".join(claim["statement"].rstrip(".。!?") for claim in claims)
    return {"text": f"People say: {told}.", "claims": [claim["number"] for claim in claims]}


def _chance(text: str) -> int:
    return int(sha256(text.encode("utf-8", "replace")).hexdigest()[:8], 16)
