"""One page that plays the recording and follows the words; a click on a word goes there. It needs
nothing but the recording beside it, and runs no script but its own."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlsplit

from holdfast.model.duration import humanise

VIDEO = (".mp4", ".m4v", ".webm", ".mov", ".mkv", ".ogv")


def render_page(document: dict[str, Any], source: str | None = None) -> str:
    """`source` is what the page plays; None: what the job names, if a browser can reach that."""
    media = document["mediaResource"]
    source = media_link(media.get("url") or media.get("path") or "") if source is None else source
    style, script = _file("page.css"), _file("page.js")
    policy = (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; "
        "media-src * data: blob: 'self'; base-uri 'none'; form-action 'none'"
    )
    title = escape(document["title"])
    language = escape(document["language"], quote=True)
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header>\n<h1>{title}</h1>\n<p>{_summary(document)}</p>\n{_player(source)}\n</header>\n"
        f"<main>\n{''.join(_turn(turn) for turn in document['turns'])}</main>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def media_link(location: str) -> str:
    """An address of the web, or a file beside the page by its name. Nothing else is a link."""
    scheme = urlsplit(location).scheme.lower()
    if scheme in ("http", "https"):
        return location
    return "" if scheme else quote(location.rpartition("/")[2])


def _player(source: str) -> str:
    if not source:
        return "<p>The recording is not beside this page.</p>"
    kind = "video" if source.partition("?")[0].lower().endswith(VIDEO) else "audio"
    attributes = f'id="player" controls preload="metadata" src="{escape(source, quote=True)}"'
    return f"<{kind} {attributes}></{kind}>"


def _summary(document: dict[str, Any]) -> str:
    length = humanise(round(document["durationSec"]))
    words = len(document["rawText"].split())
    return escape(f"{length}, {words:,} words, by {document['inferenceConfig']['model']}")


def _turn(turn: dict[str, Any]) -> str:
    words = " ".join(
        f'<span data-start="{word["start"]}" data-end="{word["end"]}">{escape(word["text"])}</span>'
        for word in turn["words"]
    )
    return (
        f'<section>\n<button type="button" data-start="{turn["start"]}">'
        f"{turn['timestamp']}</button>\n<p>{words}</p>\n</section>\n"
    )


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _file(name: str) -> str:
    return (files(__package__ or "") / name).read_text("utf-8").strip()
