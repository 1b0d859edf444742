"""A comment with its quotes marked where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.apps.report.model.document import Quote


def marked(text: str, quotes: Sequence[Quote]) -> Iterable[tuple[str, Quote | None]]:
    """The text in pieces, each with the quote that it is part of. Where quotes overlap, the earlier
    one has it."""
    at = 0
    for quote in sorted(quotes, key=lambda quote: (quote.start, -quote.end)):
        start, end = max(quote.start, at), min(quote.end, len(text))
        if start >= end:
            continue
        if start > at:
            yield text[at:start], None
        yield text[start:end], quote
        at = end
    if at < len(text):
        yield text[at:], None
