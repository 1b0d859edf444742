"""What keys of blobs look like, everywhere."""

from __future__ import annotations

import re

from holdfast.errors import InvalidInput

SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


def blob_segments(key: str) -> list[str]:
    """The parts of a key. Raises InvalidInput if one of them is not safe as a name."""
    segments = key.split("/")
    if not all(SEGMENT.fullmatch(segment) and ".." not in segment for segment in segments):
        raise InvalidInput(
            f"{key!r} can't name a blob: segments between '/' are letters, digits, '.', '_' "
            "and '-', begin with a letter or digit, and have at most 201 characters"
        )
    return segments


def blob_folder(prefix: str) -> list[str]:
    """The parts of a prefix that ends in `/`. Raises InvalidInput."""
    if not prefix.endswith("/"):
        raise InvalidInput(f"{prefix!r} is no prefix of blobs: it has to end in '/'")
    return blob_segments(prefix[:-1])
