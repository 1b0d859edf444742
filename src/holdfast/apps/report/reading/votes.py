"""The votes of a Polis export: one row for each participant, one column for each comment."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence

from holdfast.apps.report.model.comment import Votes
from holdfast.apps.report.reading.columns import listed
from holdfast.apps.report.reading.notes import Notes
from holdfast.apps.report.reading.opening import open_table
from holdfast.apps.report.reading.survey import survey
from holdfast.apps.report.reading.table import Table, UniqueNames
from holdfast.apps.report.reading.vote_fit import check_columns
from holdfast.errors import InvalidInput

LARGEST_MATRIX = 200_000_000
MOST_COMMENTS = 100_000

_PARTICIPANT = ("participant", "participant-id", "voter-id", "voter")
_VOTES = {"1": 1, "1.0": 1, "+1": 1, "0": 0, "0.0": 0, "-0": 0, "-1": -1, "-1.0": -1}


def read_votes(
    chunks: Iterable[bytes],
    filename: str,
    comment_ids: Container[str],
    all_ids: Collection[str] | None = None,
) -> Votes:
    """Who voted how on the comments that are known; other columns, and cells that are no votes, are
    passed over. With `all_ids`, those of rows that were left out as well, a matrix of another
    conversation is an error."""
    parts = list(_bounded(chunks, filename))

    def is_table(names: Sequence[str]) -> bool:
        return any(name.strip() in comment_ids for name in names)

    table = open_table(lambda: parts, filename, survey(parts), is_table, MOST_COMMENTS)
    if all_ids is not None:
        check_columns(table.columns, all_ids, filename)
    return _votes(table, _participant_column(table), comment_ids, filename)


def _votes(table: Table, voter: int, comment_ids: Container[str], filename: str) -> Votes:
    columns = [
        (at, name) for at, name in enumerate(table.columns) if at != voter and name in comment_ids
    ]
    if not columns:
        raise InvalidInput(
            f"{filename} has no column that is named like a comment of the report: votes are read "
            "from a table with a "
            "row for each participant and a column for each comment id. Columns found: "
            f"{listed(table.columns)}."
        )
    names, people = UniqueNames("{}#{}"), []
    cells: list[tuple[int, int, int]] = []
    for row in table.rows(Notes()):
        if isinstance(row, list):
            person = len(people)
            people.append(
                names.unused(
                    (row[voter].strip() if voter < len(row) else "") or f"row {person + 1}"
                )
            )
            cells.extend((person, comment, vote) for comment, vote in _cast(row, columns))
    return Votes(tuple(people), tuple(name for _, name in columns), tuple(cells))


def _cast(row: list[str], columns: list[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    for comment, (at, _) in enumerate(columns):
        vote = _VOTES.get(row[at].strip()) if at < len(row) else None
        if vote is not None:
            yield comment, vote


def _participant_column(table: Table) -> int:
    names = [name.casefold().replace("_", "-").replace(" ", "-") for name in table.columns]
    return next((names.index(name) for name in _PARTICIPANT if name in names), 0)


def _bounded(chunks: Iterable[bytes], filename: str) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > LARGEST_MATRIX:
            raise InvalidInput(f"{filename}: votes are read up to {LARGEST_MATRIX / 1e6:,.0f} MB.")
        yield chunk
