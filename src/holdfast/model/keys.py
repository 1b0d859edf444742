"""Keys of any length. A store finds things by their keys, and none finds long ones well; so a long
key is stored as its beginning and a digest, and the original is kept beside what it names."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from holdfast.model.checkpoint import digest

MAX_PART: Final = 150
"""Characters of a key that is stored as it is."""
MAX_WHOLE: Final = 250
"""Characters of a key with all that it is inside of, which is never more than MAX_KEY bytes."""
BEGINNING: Final = 40
"""Characters of a long key that people still see."""

SEPARATOR: Final = "\x1f"
"""Between the parts of an inner key. Users' keys may not contain it, so parts never run into one
another."""

INNER: Final = "@"
"""What the key of an inner step (`ctx.step`) begins with."""


def stored_key(key: str, most: int = MAX_PART) -> str:
    """The key itself or, if it is long, its beginning and a digest: no two keys share one."""
    return key if len(key) <= most else f"{key[:BEGINNING]}…{digest(key)}"


def inner_key(outer: str, key: str) -> str:
    """The stored key of something inside an item (`outer`), or of the step itself (`outer ==
    ""`)."""
    own = stored_key(key)
    if not outer:
        return own
    joined = f"{outer}{SEPARATOR}{own}"
    return joined if len(joined) <= MAX_WHOLE else f"{_shortened(outer)}{SEPARATOR}{own}"


def _shortened(outer: str) -> str:
    return f"{outer[:BEGINNING].partition(SEPARATOR)[0]}…{digest(outer)}"


def is_item(key: str) -> bool:
    """Whether a stored key is that of an item of the step's own map, as `Items` sees them."""
    return bool(key) and not key.startswith(INNER) and SEPARATOR not in key


class ItemKey(Struct, frozen=True):
    """The key of an item or inner step, as it is stored and as its user knows it. Both are empty
    for the step itself."""

    stored: str = ""
    original: str = ""

    def inner(self, key: str) -> ItemKey:
        """Of something inside."""
        original = f"{self.original}{SEPARATOR}{key}" if self.original else key
        return ItemKey(inner_key(self.stored, key), original)

    @property
    def kept(self) -> str | None:
        """The original, where it is not what is stored."""
        return None if self.original == self.stored else self.original
