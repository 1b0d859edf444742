"""Which collection keeps records of which prefix, and what others see of them there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from holdfast.adapters.firestore.ids import encoded_id


def _no_fields(value: str, now: float, ttl: float | None) -> Mapping[str, Any]:
    return {}


class RecordCollection(Struct, frozen=True):
    """Records whose keys begin with `prefix`."""

    name: str
    prefix: str = ""
    id: Callable[[str], str] = encoded_id
    """From what follows the prefix in a key to the document's id."""
    fields: Callable[[str, float, float | None], Mapping[str, Any]] = _no_fields
    """From a value, the time and the time to live to fields that other programs read."""

    def document_id(self, key: str) -> str:
        return self.id(key.removeprefix(self.prefix))

    def may_hold(self, prefix: str) -> bool:
        """Whether records with this prefix may be here."""
        return self.prefix.startswith(prefix) or prefix.startswith(self.prefix)


RECORDS = RecordCollection("holdfast_records")
"""Those that no other collection keeps."""
