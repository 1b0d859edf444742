"""What may be called how, and how a name becomes part of a path.

Pipelines and steps have names that programmers choose: letters, digits, `-` and `_`. A tenant is
whatever the owner of the work is known by: an id, an e-mail address. It is written into paths of
blobs and documents by `path_part`, so that no tenant can be mistaken for another or leave its
folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

from holdfast.errors import InvalidInput
from holdfast.model.commands import MAX_LABELS

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""Of pipelines and steps."""
NAME_RULE = "1 to 64 letters, digits, '-' or '_', a letter or digit first"

_TENANT = re.compile(r"[A-Za-z0-9][!-.0-\[\]-~]{0,127}")
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
MAX_LABEL = 255
"""Characters of a label's value."""

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
"""What parts of paths consist of without further ado."""
_MAX_PART = 200
"""Characters of a part of a path: file systems allow 255 bytes."""


def check_tenant(tenant: str) -> str:
    """Only ASCII: letters of other alphabets look alike and are not the same. A plain text, also
    where it was one of numpy's."""
    if not isinstance(tenant, str) or not _TENANT.fullmatch(tenant):
        raise InvalidInput(
            f"tenant {tenant!r:.80} is not usable: 1 to 128 printable ASCII characters, no "
            "blanks and slashes, a letter or digit first"
        )
    return str(tenant)


def check_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels are searched for, so they are few and small. Plain texts, also where they were
    numpy's."""
    if not isinstance(labels, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"labels are names and texts; this is a {type(labels).__name__}")
    if len(labels) > MAX_LABELS:
        raise InvalidInput(f"a run has at most {MAX_LABELS} labels; these are {len(labels)}")
    for name, value in labels.items():
        if not isinstance(name, str) or not _LABEL.fullmatch(name):
            raise InvalidInput(
                f"label {name!r:.80} is not usable: 1 to 64 letters, digits, '-', '_' or '.'"
            )
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(
                f"label {name} is a {type(value).__name__}: labels are texts, for example "
                f"{str(value)!r:.80}"
            )
        if not value.isprintable() or not 1 <= len(value) <= MAX_LABEL:
            raise InvalidInput(
                f"label {name} has 1 to {MAX_LABEL} printable characters; this is {value!r:.80}"
            )
    return {str(name): str(value) for name, value in labels.items()}


def path_part(name: str) -> str:
    """A name as one part of a path, on every file system and in every bucket.

    Lower-case letters, digits, `_` and `-` stay as they are; otherwise it begins with `t-`, and
    every other byte is a dot and two digits: `User-A` is `t-.55ser-.41`. Two names never give the
    same part, also where upper and lower case are the same, and no part leads out of a folder."""
    if _PLAIN.issuperset(name):
        part = name
    else:
        part = "t-" + "".join(chr(c) if chr(c) in _PLAIN else f".{c:02x}" for c in name.encode())
    if len(part) <= _MAX_PART:
        return part
    return f"h-{part[:100].rstrip('.')}.{sha256(name.encode()).hexdigest()}"
