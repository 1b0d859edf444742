"""All records of a prefix, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator

from holdfast.ports.records import Record, Records

PAGE = 200


async def all_records(records: Records, prefix: str) -> AsyncIterator[Record]:
    """In the order of their keys."""
    after = ""
    while True:
        page = await records.list(prefix, after=after, limit=PAGE)
        for record in page.records:
            yield record
        if len(page.records) < PAGE:
            return
        after = page.records[-1].key
