"""Remarks of a second model: where it disagrees with a name or a finding, and what a person should
read to decide."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RemarkKind(StrEnum):
    NAME = "name"
    FINDING = "finding"


@dataclass(frozen=True, slots=True)
class Remark:
    """One disagreement. `about` is the id of a topic or subtopic, or the number of a finding from
    1; `text` is the name or the finding; `why` is what the second model says; `cites` are the
    claims to read, by id."""

    kind: RemarkKind
    about: str
    text: str
    why: str
    cites: tuple[str, ...]
