"""What makes text from strangers harmless: characters a page can't hold, links that may lead
anywhere, JSON in HTML."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote, urlsplit

from markupsafe import Markup

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_RETURN = re.compile("\r(\n?)")
_CLOCK = re.compile(r"(?:(\d{1,2}):)?(\d{1,3}):(\d{2})(?:[.,]\d+)?")
_IN_LINKS = "%/:=&?~#+!$,;'@()*[]"
_IN_HTML = str.maketrans({letter: f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"})


def cleaned(value: Any) -> Any:
    """Text without characters that a parser would drop or change. It keeps its length, so offsets
    stay right."""
    if type(value) is not str:
        return value
    value = _UNPRINTABLE.sub("\ufffd", value)
    return _RETURN.sub(lambda match: " \n" if match[1] else "\n", value) if "\r" in value else value


def web_link(address: str) -> str:
    """The address if it is one of the web, else nothing: no scripts, no files, no data."""
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return ""
    return (
        quote(parts.geturl(), safe=_IN_LINKS)
        if parts.scheme in ("http", "https") and parts.netloc
        else ""
    )


def moment(video: str, timestamp: str) -> str:
    """A link to a video, at the moment of which a comment speaks."""
    link, seconds = web_link(video), _seconds(timestamp)
    if not link or not seconds or "#" in link:
        return link
    host = urlsplit(link).hostname or ""
    if host.endswith(("youtube.com", "youtu.be")):
        return f"{link}{'&' if '?' in link else '?'}t={seconds}"
    return f"{link}#t={seconds}s" if host.endswith("vimeo.com") else f"{link}#t={seconds}"


def _seconds(timestamp: str) -> int:
    clock = _CLOCK.fullmatch(timestamp.strip())
    if not clock:
        return 0
    hours, minutes, seconds = (int(part or 0) for part in clock.groups())
    return hours * 3600 + minutes * 60 + seconds


def json_block(value: Any) -> Markup:
    """JSON for a script element: nothing in it can end the element, or be read as HTML."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(cleaned(text).translate(_IN_HTML))  # noqa: S704 - no character that HTML reads is left
