"""Reading comment files: bytes of any common format in, comments and an account of every row
out."""

from holdfast.apps.report.reading.reader import CommentReader, ReadingOptions
from holdfast.apps.report.reading.votes import read_votes

__all__ = ["CommentReader", "ReadingOptions", "read_votes"]
