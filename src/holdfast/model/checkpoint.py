"""A stored result and the conditions under which it may be used again."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b, sha256

import msgspec
from msgspec import Struct

_encode = msgspec.json.Encoder().encode

MAX_VALIDATION_FAILURES = 3
"""How many stored results of one step may turn out bad before the run fails for good."""


class Checkpoint(Struct, omit_defaults=True):
    """The result of a step (`key == ""`) or of one of its items, as stored.

    `value` is JSON text or a reference to a blob; `record` is the JSON of a `StepRecord`;
    `epoch` is the attempt that wrote it (0: copied from the run that this one reruns).
    """

    step: str
    key: str
    value: str
    checksum: str
    schema: str
    fingerprint: str
    record: str = "{}"
    epoch: int = 0


SHORT = 100
"""Characters of a text that is likely to come again, such as `null`, `true` or `{"ok":true}`."""


def checksum(text: str) -> str:
    """What `value` must hash to when it is read back."""
    return _checksum_of_short(text) if len(text) <= SHORT else sha256(text.encode()).hexdigest()


@lru_cache(maxsize=1000)
def _checksum_of_short(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def input_fingerprint(pipeline: str, text: str) -> str:
    """What a run is asked to do: also what its input must hash to when it is read back."""
    return digest(pipeline, text)


def digest(*parts: str) -> str:
    """A short hash of a list of strings; no two lists share one by concatenation."""
    return blake2b(_encode(parts), digest_size=16).hexdigest()


@lru_cache(
    maxsize=1000
)  # what is given the same over and over again, such as nothing, has the same
def step_fingerprint(pipeline: str, step: str, version: str, *inputs: str) -> str:
    """What a step's result depends on: the code's declared version and the checksums of all it is
    given."""
    return digest(pipeline, step, version, *inputs)


def is_outdated(checkpoint: Checkpoint, schema: str, fingerprint: str) -> bool:
    """Whether it answers another question: another result type, step version or other inputs. That
    is no fault of the store: it is simply executed again."""
    return checkpoint.schema != schema or checkpoint.fingerprint != fingerprint
