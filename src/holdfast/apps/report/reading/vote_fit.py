"""Whether a matrix of votes belongs to a file of comments: exports of two conversations use the
same numbers for their comments, so equal ids prove nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from holdfast.apps.report.model.comment import Votes
from holdfast.apps.report.reading.columns import listed
from holdfast.errors import InvalidInput

Counts = tuple[int, int]
"""Agrees and disagrees."""

MOST_FOREIGN = 0.5
"""The largest share of the matrix' comments that the file may lack."""
FEWEST_ALIKE = 0.5
"""The least share of comments whose counts must be about the same in both."""
TOLERANCE, SPARE = 0.25, 3
"""Counts are about the same if they differ by no more than this share, or this many votes: exports
are made minutes apart, and some leave out moderators."""


def check_columns(columns: Sequence[str], ids: Collection[str], filename: str) -> None:
    """Raise InvalidInput if most comments of the matrix are not in the file. `ids` are those of all
    rows, kept or not."""
    numbered = [name for name in columns if name.isdecimal() or name in ids]
    foreign = [name for name in numbered if name not in ids]
    if len(foreign) > MOST_FOREIGN * len(numbered):
        raise InvalidInput(
            f"{filename} does not fit the comments: it has votes on {len(numbered):,} comments, "
            f"and {len(foreign):,} of their ids are not in the file ({listed(foreign[:5])} …). "
            "Give the votes of the same conversation, or the column with the ids: "
            "--column id=NAME."
        )


def check_counts(votes: Votes, counts: Mapping[str, Counts], filename: str) -> None:
    """Raise InvalidInput if the votes that the file counts are not those of the matrix."""
    tallies = _tallies(votes)
    compared = {
        id: (tallies.get(id, (0, 0)), stated)
        for id, stated in counts.items()
        if id in set(votes.comments) and sum(stated)
    }
    unlike = [id for id, (counted, stated) in compared.items() if not _alike(counted, stated)]
    if len(unlike) > (1 - FEWEST_ALIKE) * len(compared):
        id = unlike[0]
        (agrees, disagrees), (stated_agrees, stated_disagrees) = compared[id]
        raise InvalidInput(
            f"{filename} does not fit the comments: agrees and disagrees were compared for "
            f"{len(compared):,} comments and differ for {len(unlike):,}. Comment {id} has "
            f"{stated_agrees:,} and {stated_disagrees:,} in the file of comments, and "
            f"{agrees:,} and {disagrees:,} in the matrix. Give the votes of the same conversation."
        )


def _tallies(votes: Votes) -> dict[str, Counts]:
    counted = Counter((comment, vote) for _, comment, vote in votes.cells)
    return {id: (counted[at, 1], counted[at, -1]) for at, id in enumerate(votes.comments)}


def _alike(counts: Counts, stated: Counts) -> bool:
    return all(
        abs(count - other) <= max(SPARE, TOLERANCE * max(count, other))
        for count, other in zip(counts, stated, strict=True)
    )
