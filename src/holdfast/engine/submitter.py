"""Who submits: the caller of the service, or the user of a command. Runs that are accepted
meanwhile keep it among their attributes. Those of messages, and of programs that submit themselves,
have none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

SUBMITTED_BY = "submitted-by"

_submitter: ContextVar[str | None] = ContextVar("holdfast_submitter", default=None)


def note_submitter(actor: str) -> None:
    """For the rest of this task."""
    _submitter.set(actor)


@contextmanager
def submitting(actor: str) -> Iterator[None]:
    token = _submitter.set(actor)
    try:
        yield
    finally:
        _submitter.reset(token)


def with_submitter(attributes: Mapping[str, str]) -> dict[str, str]:
    """The attributes of a run that is accepted now. A message can't name a submitter."""
    others = {name: value for name, value in attributes.items() if name != SUBMITTED_BY}
    actor = _submitter.get()
    return others if actor is None else {**others, SUBMITTED_BY: actor}
