"""Reading comment files: bytes of any common format in, comments and an account of every row
out."""

from holdfast.apps.report.reading.reader import (
    CommentReader,
    ReadingOptions,
    check_not_empty,
    nothing_in,
)
from holdfast.apps.report.reading.vote_fit import check_counts
from holdfast.apps.report.reading.votes import read_votes

__all__ = [
    "CommentReader",
    "ReadingOptions",
    "check_counts",
    "check_not_empty",
    "nothing_in",
    "read_votes",
]
