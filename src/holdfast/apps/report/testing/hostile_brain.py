"""A brain for the fake server that believes whatever a comment tells it."""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from holdfast.apps.report.testing.brain import DATA, ReportBrain


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
            {"id": comment["id"], "subtopics": ["t1.1", "HACKED", "t99.9"]}
            for comment in honest["comments"]
        ]
        return {"comments": [{"id": "999", "subtopics": ["t1.1"]}, *wrong]}

    def hacked_extraction(self, honest: Any) -> Any:
        claim = {
            "statement": "Everybody was HACKED",
            "quote": "we were all HACKED",
            "subtopic": "t99.9",
        }
        stolen = [claim for comment in honest["comments"] for claim in comment["claims"]]
        wrong = [
            {"id": comment["id"], "claims": [claim, *stolen[:3]]} for comment in honest["comments"]
        ]
        return {
            "comments": [{"id": "999", "claims": [claim]}, {"id": "c-1", "claims": [claim]}, *wrong]
        }

    def hacked_requote(self, honest: Any) -> Any:
        return {
            "quotes": [
                {"id": entry["id"], "quote": "we were all HACKED"} for entry in honest["quotes"]
            ]
        }

    def hacked_dedup(self, honest: Any) -> Any:
        everything = [id for group in honest["groups"] for id in group["claims"]]
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
