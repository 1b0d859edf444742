"""From the bytes of the request to comments in parts: the first step, one part in memory at a
time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from holdfast.apps.report.model.comment import Comment, CommentSet, Row
from holdfast.apps.report.reading import (
    CommentReader,
    ReadingOptions,
    check_counts,
    nothing_in,
    read_votes,
)
from holdfast.apps.report.request import ReportRequest, Upload
from holdfast.errors import InvalidInput
from holdfast.ports.context import BlockingContext

PART = 2_000
"""Rows in one part."""


def read_comments(request: ReportRequest, ctx: BlockingContext) -> CommentSet:
    """Every row read, judged and stored, and the file described."""
    reader = CommentReader(_opener(request, ctx), _filename(request), reading_options(request))
    comments, rows = PartWriter("comments", ctx), PartWriter("rows", ctx)
    all_ids: set[str] = set()
    counts: dict[str, tuple[int, int]] = {}
    for row, comment in reader:
        rows.add(row)
        if request.votes:
            all_ids.add(row.id)
        if comment is not None:
            comments.add(comment)
            counts[comment.id] = (comment.agrees or 0, comment.disagrees or 0)
        if row.row % PART == 0:
            ctx.progress(row.row)
    if request.file and not counts:
        raise InvalidInput(nothing_in(reader.source.filename, reader.fates))
    return CommentSet(
        source=reader.source,
        rows=sum(reader.fates.values()),
        fates=reader.fates,
        people=reader.people,
        kept_parts=comments.close(),
        row_parts=rows.close(),
        votes=_stored_votes(request.votes, counts, all_ids, ctx),
        language=reader.language,
        warnings=tuple(reader.warnings),
    )


class PartWriter:
    """A long list on its way to the blob store."""

    def __init__(self, name: str, ctx: BlockingContext) -> None:
        self._name = name
        self._ctx = ctx
        self._open: list[Comment | Row] = []
        self._stored: list[str] = []

    def add(self, record: Comment | Row) -> None:
        self._open.append(record)
        if len(self._open) == PART:
            self._store()

    def close(self) -> tuple[str, ...]:
        if self._open:
            self._store()
        return tuple(self._stored)

    def _store(self) -> None:
        name = f"{self._name}-{len(self._stored) + 1:04}.json"
        self._stored.append(self._ctx.artifact(name, msgspec.json.encode(self._open)))
        self._open = []


def _opener(request: ReportRequest, ctx: BlockingContext) -> Callable[[], Iterable[bytes]]:
    if request.file is not None:
        upload = request.file
        return lambda: _chunks(upload, ctx)
    lines = [msgspec.json.encode(_plain(row)) + b"\n" for row in request.rows or ()]
    return lambda: lines


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _chunks(upload: Upload, ctx: BlockingContext) -> Iterator[bytes]:
    for part in upload.parts:
        yield ctx.read(part)


def _filename(request: ReportRequest) -> str:
    return request.file.filename if request.file else "rows.jsonl"


def reading_options(request: ReportRequest) -> ReadingOptions:
    """How the request wants its file to be read."""
    return ReadingOptions(
        columns=request.columns,
        questions=request.questions,
        mask=request.mask,
        max_characters=request.max_characters,
        max_comments=request.max_comments,
        keep_moderated=request.keep_moderated,
    )


def _stored_votes(
    upload: Upload | None,
    counts: Mapping[str, tuple[int, int]],
    all_ids: set[str],
    ctx: BlockingContext,
) -> str:
    """Where the votes are. `counts` are the votes that the file of comments counts."""
    if upload is None:
        return ""
    votes = read_votes(_chunks(upload, ctx), upload.filename, counts, all_ids)
    check_counts(votes, counts, upload.filename)
    return ctx.artifact("votes.json", msgspec.json.encode(votes))
