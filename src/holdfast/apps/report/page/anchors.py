"""Names for places in the page: stable, unique, and harmless whatever the file called its
comments."""

from __future__ import annotations

import re
from hashlib import sha256

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Anchors:
    """`t` topic, `s` subtopic, `g` claim, `q` quote, `x` crux, `m` comment: the kind keeps equal
    ids apart."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def __call__(self, kind: str, id: str) -> str:
        """The anchor of a thing; the same one every time."""
        key = kind, id
        if key not in self._given:
            name = id if id.startswith(f"{kind}-") else f"{kind}-{id}"
            if not _PLAIN.fullmatch(name) or name in self._taken:
                name = f"{kind}-{sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
            self._taken.add(name)
            self._given[key] = name
        return self._given[key]
