"""Ids of documents and collections: any text, written so that Firestore takes it and so that two
texts never become one."""

from __future__ import annotations

import re

MAX_ID = 1500
"""Bytes."""
_RESERVED = re.compile(r"\.{1,2}|__.*__", re.DOTALL)


def encoded_id(text: str) -> str:
    """`/` and `%` are percent-encoded, and the first character of a name that is reserved."""
    id = text.replace("%", "%25").replace("/", "%2F")
    return f"%{ord(id[0]):02X}{id[1:]}" if _RESERVED.fullmatch(id) else id
