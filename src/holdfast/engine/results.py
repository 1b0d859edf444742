"""What steps give, and how their failures read."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from holdfast.errors import Transient
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.run import StepRecord
from holdfast.model.usage import Usage

_decode_record = msgspec.json.Decoder(StepRecord).decode


class Result(Struct, frozen=True):
    """The result of a step: as stored, and as the steps after it see it."""

    stored: str
    checksum: str
    value: Any


def recorded_usage(checkpoint: Checkpoint) -> Usage:
    """What a stored result consumed."""
    return _decode_record(checkpoint.record).usage if '"usage"' in checkpoint.record else Usage()


def describe(error: BaseException) -> str:
    """A message for people: never empty, never a page."""
    text = str(error) or (
        f"retry after {error.retry_after} s" if isinstance(error, Transient) else repr(error)
    )
    return text if len(text) <= 2000 else text[:2000] + " …"
