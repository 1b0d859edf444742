"""The report worker's names for what goes wrong. A step may raise them: they are treated as they
were there."""

from __future__ import annotations

from holdfast.errors import InvalidInput, Permanent, Transient


class ValidationError(InvalidInput):
    """Config or data is not valid: permanent, not tried again."""


class StorageError(Transient):
    """Storage can't be reached: it may work later, and is tried again."""


class HandlerError(Permanent):
    """The pipeline can't go on: permanent."""


class PipelineStepError(Permanent):
    """A step failed for good; the run keeps its message, name and step."""
