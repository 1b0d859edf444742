"""A file in memory, read: `read(b"comment\\nhello\\n")`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast.apps.report.model.comment import Comment, Fate, Row
from holdfast.apps.report.reading import CommentReader, ReadingOptions


@dataclass
class Reading:
    reader: CommentReader
    rows: list[Row]
    comments: list[Comment]

    @property
    def texts(self) -> list[str]:
        return [comment.text for comment in self.comments]

    @property
    def fates(self) -> list[Fate]:
        return [row.fate for row in self.rows]

    @property
    def warnings(self) -> str:
        return "\n".join(self.reader.warnings)


def chunks(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def read_bytes(
    data: bytes | str, name: str = "comments.csv", chunk: int = 1 << 16, **options: Any
) -> Reading:
    content = data.encode() if isinstance(data, str) else data
    reader = CommentReader(
        lambda: chunks(content, chunk), name, ReadingOptions(**{"columns": {}, **options})
    )
    pairs = list(reader)
    assert sum(reader.fates.values()) == len(pairs)
    assert [row.row for row, _ in pairs] == list(range(1, len(pairs) + 1))
    assert all((comment is not None) == (row.fate is Fate.KEPT) for row, comment in pairs)
    assert all((row.reason == "") == (row.fate is Fate.KEPT) for row, _ in pairs)
    return Reading(
        reader, [row for row, _ in pairs], [comment for _, comment in pairs if comment is not None]
    )


@pytest.fixture(scope="session")
def read() -> Callable[..., Reading]:
    return read_bytes
