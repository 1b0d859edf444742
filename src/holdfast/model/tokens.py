"""How many tokens a text is, roughly and rather too many than too few: nobody's tokenizer is needed
for a guess."""

from __future__ import annotations

import re

DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U0001f000-\U0003ffff]+"
)
"""Writing in which a character is about a token: Chinese, Japanese, Korean, Thai, Lao, Burmese,
Khmer, emoji."""
BEYOND_LATIN = re.compile("[^\u0000-\u024f\u2000-\u206f]+")
LATIN_CHARACTERS = 3.6
OTHER_CHARACTERS = 2.0
"""Characters per token: Cyrillic, Greek, Arabic, Hebrew, Devanagari and the like are cut into
smaller pieces."""
DENSE_TOKENS = 1.1
"""Tokens per character."""
OVERHEAD = 12
"""For roles, separators and the like around a call's text."""


def estimate_tokens(text: str) -> int:
    """Tokens of a text."""
    if text.isascii():
        return _ceil(len(text) / LATIN_CHARACTERS)
    dense = sum(map(len, DENSE.findall(text)))
    other = sum(map(len, BEYOND_LATIN.findall(text))) - dense
    latin = len(text) - dense - other
    return _ceil(latin / LATIN_CHARACTERS + other / OTHER_CHARACTERS + dense * DENSE_TOKENS)


def estimate_call(*texts: str) -> int:
    """Tokens that a call's texts come to as input."""
    return OVERHEAD + sum(estimate_tokens(text) for text in texts)


def _ceil(number: float) -> int:
    return -int(-number // 1)
