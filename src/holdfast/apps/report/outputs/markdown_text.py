"""Other people's words inside Markdown: always shown as written, never understood as Markdown, HTML
or a link.

`report.md` is for reading; exact text is in `report.json` and the tables. White space becomes
single spaces, control characters and marks that turn the direction of writing are left out, and an
invisible word joiner keeps addresses and names from becoming links or mentions where a renderer
looks for them by itself."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_JOINER = "\u2060"
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SPECIAL = re.compile(r"([\\`*_\[\]|~$^#{}])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_LINKS = re.compile(r"@|(?<=:)(?=//)|(?i:(?<=www)(?=\.))|(?i:(?<=mailto:)|(?<=xmpp:))")
_BLOCK = re.compile(r"[-+=:]|\d{1,9}(?=[.)])")
_ANCHOR = re.compile(r"[^A-Za-z0-9_-]")


def escape(text: str) -> str:
    """The text on one line, for any place in a paragraph, list item, quotation, heading or
    table."""
    plain = " ".join("".join(char for char in text if not _dropped(char)).split())
    escaped = _SPECIAL.sub(r"\\\1", plain.translate(_ENTITIES))
    return _unlinked(_not_a_block(escaped))


def listed(lines: Iterable[str]) -> str:
    """Lines that are escaped already, as a list."""
    return "\n".join(f"- {line}" for line in lines)


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def anchor(identifier: str) -> str:
    """An id that can stand in a link and in an HTML attribute."""
    return _ANCHOR.sub("", identifier)


def _dropped(char: str) -> bool:
    return char in _TURNING or (unicodedata.category(char) in ("Cc", "Cs") and not char.isspace())


def _not_a_block(text: str) -> str:
    """At the beginning of a line these would start a list, a heading or a definition."""
    match = _BLOCK.match(text)
    if match is None:
        return text
    return (
        text[: match.end()] + "\\" + text[match.end() :] if match[0][0].isdigit() else "\\" + text
    )


def _unlinked(text: str) -> str:
    return _LINKS.sub(lambda match: match[0] + _JOINER, text)
