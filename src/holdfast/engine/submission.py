"""What a submission is made of, checked before anything of it is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from holdfast.engine.submitter import with_submitter
from holdfast.engine.tracing import caused_by
from holdfast.errors import InvalidInput
from holdfast.model.checkpoint import Checkpoint, input_fingerprint
from holdfast.model.commands import Submit
from holdfast.model.limits import MAX_PRIORITY, duration, whole
from holdfast.model.names import check_labels, check_tenant
from holdfast.model.pipeline import Pipeline
from holdfast.model.tenant import DEFAULT_TENANT

MAX_KEY = 255


class SubmitOptions(Struct, frozen=True, kw_only=True):
    """What the runs of a submission have in common."""

    tenant: str = DEFAULT_TENANT
    priority: int = 0
    delay: float = 0.0
    labels: Mapping[str, str] | None = None
    attributes: Mapping[str, str] = {}
    unique: bool = False
    """Whether a run is treated as one of a unique pipeline."""

    def checked(self) -> SubmitOptions:
        """As they are stored, with who submits, and what caused it. Raises InvalidInput."""
        return SubmitOptions(
            tenant=check_tenant(self.tenant),
            priority=whole("priority", self.priority, -MAX_PRIORITY, MAX_PRIORITY),
            delay=duration("delay", self.delay),
            labels=self.labels,
            attributes=with_submitter(caused_by(dict(self.attributes))),
            unique=self.unique,
        )


class Draft(Struct, frozen=True):
    """A run to be: its input as JSON, the key that it goes by, and what it is found by."""

    text: str
    key: str | None
    labels: Mapping[str, str]

    def command(
        self,
        run_id: str,
        pipeline: Pipeline[Any],
        stored: str,
        options: SubmitOptions,
        *,
        parent: str | None = None,
        checkpoints: Sequence[Checkpoint] = (),
    ) -> Submit:
        """`stored` is the input as it is stored: as it is, or as a reference to a blob."""
        return Submit(
            run_id,
            options.tenant,
            pipeline.name,
            pipeline.lane.name,
            stored,
            input_fingerprint(pipeline.name, self.text),
            self.key,
            options.unique or pipeline.unique,
            options.priority,
            options.delay,
            pipeline.max_attempts,
            parent,
            checkpoints,
            dict(self.labels),
            dict(options.attributes),
        )


def draft(
    pipeline: Pipeline[Any], value: Any, key: str | None, labels: Mapping[str, str] | None
) -> Draft:
    """Raises InvalidInput for what the pipeline does not take, and DefinitionError for a pipeline
    that can't have a result: nobody could execute its runs."""
    _ = pipeline.result_step
    checked = pipeline.input.validate(value)
    if key is None and pipeline.key is not None:
        key = pipeline.key(checked)
    if key is not None:
        key = _checked_key(key)
    if pipeline.labels is not None:
        labels = {**pipeline.labels(checked), **(labels or {})}
    plain = {} if labels is None else check_labels(labels)
    return Draft(pipeline.input.encode(checked), key, plain)


def drafts(
    pipeline: Pipeline[Any],
    values: Sequence[Any],
    keys: Sequence[str] | None,
    labels: Mapping[str, str] | None,
) -> list[Draft]:
    """One for each input. Raises InvalidInput with the number of one that is not valid."""
    if keys is not None and len(keys) != len(values):
        raise InvalidInput(
            f"there are {len(values)} inputs and {len(keys)} keys: give each input a key of its own"
        )
    made: list[Draft] = []
    for number, value in enumerate(values, 1):
        try:
            made.append(draft(pipeline, value, keys[number - 1] if keys else None, labels))
        except InvalidInput as error:
            raise InvalidInput(f"input {number}: {error}; none of them was accepted") from error
    return made


def _checked_key(key: str) -> str:
    if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"the idempotency key {key!r:.100} is no text: give str(…)")
    key = str(key)  # perhaps it is one of numpy's
    if not 1 <= len(key) <= MAX_KEY:
        raise InvalidInput(
            f"an idempotency key has 1 to {MAX_KEY} characters; this one has {len(key)}"
        )
    if not key.isprintable():
        raise InvalidInput(
            f"the idempotency key {key!r} contains characters that can't be printed; use plain text"
        )
    return key
