"""Keep a model's words in order: no markup, no links, nothing invisible, and not longer than
agreed."""

from __future__ import annotations

import re
import unicodedata

_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)|<\s*(?:img|iframe|script|style)[^>]*>", re.IGNORECASE)
_LINK = re.compile(r"\[([^\]]*)\]\((?:[^)]*)\)")
_ADDRESS = re.compile(r"\b(?:https?|ftp|file)://\S+|\bjavascript:\S+|\bdata:\w+/\S+", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_MARKUP = re.compile(r"^\s*(?:#{1,6}|[*•-])\s+|\*\*|__|`", re.MULTILINE)
_JOINERS = "\u200c\u200d"
"""Invisible, and part of how Persian, Hindi and emoji are written."""
_CITATION = re.compile(r"\s*\[\s*\d+(?:\s*[,;–-]\s*\d+)*\s*\]")
_SPACE = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")


def plain_text(text: str) -> str:
    """Plain words on one line."""
    if not text.isascii():
        text = "".join(filter(_is_visible, text))
    text = _LINK.sub(r"\1", _IMAGE.sub("", text))
    text = _MARKUP.sub("", _TAG.sub("", _ADDRESS.sub("", text)))
    return _SPACE.sub(" ", text).strip()


def _is_visible(char: str) -> bool:
    return (
        char.isspace()
        or char in _JOINERS
        or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co")
    )


def without_citations(text: str) -> str:
    """Plain words without citations: those we print ourselves, after checking them."""
    return plain_text(_CITATION.sub("", text))


def truncate(text: str, most: int) -> str:
    """At most so many characters: whole sentences if they hold half of it, else whole words and an
    ellipsis."""
    text = plain_text(text)
    if len(text) <= most:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, most)]
    if ends and ends[-1] >= most // 2:
        return text[: ends[-1]]
    cut = text[: most - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > most // 2 else cut).rstrip(" ,;:.-") + "…"


def truncate_words(text: str, most: int) -> str:
    """At most so many words, for a text with spaces; about as much, for one without."""
    words = plain_text(text).split(" ")
    short = " ".join(words[:most])
    return truncate(short + "…" if len(words) > most else short, most * 10)
