"""How a step or item that did not succeed leaves: for good, for later, or because the worker
stops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, NoReturn

from holdfast.engine.tracebacks import message_text, traceback_text
from holdfast.errors import Fix, HoldfastError, Stop, Transient
from holdfast.model.limits import storable
from holdfast.model.run import ErrorInfo


class StepFailed(HoldfastError):
    """A step failed for good."""

    def __init__(self, info: ErrorInfo) -> None:
        super().__init__(str(info))
        self.info = info


class TryLater(HoldfastError):
    """A step or item wants to be tried again after so long that its run should not wait in a
    worker."""

    def __init__(self, delay: float, info: ErrorInfo) -> None:
        super().__init__(str(info))
        self.delay = delay
        self.info = info


class Drained(HoldfastError):
    """The worker stops while the step waits for its next try."""


def error_info(error: BaseException, step: str | None = None, key: str | None = None) -> ErrorInfo:
    """An error, fit to be stored."""
    return ErrorInfo(error_name(error), describe(error), step, key, traceback_text(error))


def error_name(error: BaseException) -> str:
    return storable(type(error).__name__)


def describe(error: BaseException) -> str:
    """A message for people: never empty, never a page, and without secrets."""
    try:
        message = str(error) or repr(error)
    except Exception as broken:  # an error that can't be shown must not keep a run from failing
        return f"its message can't be shown: {type(broken).__name__}"
    if isinstance(error, Transient) and not str(error):
        return f"retry after {error.retry_after} s"
    return message_text(message)


def is_from_outside(error: BaseException, task: asyncio.Task[Any] | None) -> bool:
    """Whether somebody else ended the code that raised it in this task: who cancelled the task,
    Ctrl-C, or who closed its coroutine. Code that raises CancelledError although nobody cancelled
    it, as when a task of its own was cancelled, has failed like any other; so has code that raises
    GeneratorExit while its task runs."""
    if isinstance(error, asyncio.CancelledError):
        return task is None or task.cancelling() > 0
    if isinstance(error, GeneratorExit):
        return task is None or task is not running_task()
    return isinstance(error, KeyboardInterrupt)


def running_task() -> asyncio.Task[Any] | None:
    """The task that runs now; None outside of any loop, where what was left behind is closed."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def ended_by(error: BaseException, subject: str = "step") -> RuntimeError:
    """What stands for a SystemExit and its like, which would end the worker and no run."""
    failure = RuntimeError(f"the {subject} was ended by {error_name(error)}: {describe(error)}")
    failure.__cause__ = error
    return failure


def raise_first_cause(group: BaseExceptionGroup[Any]) -> NoReturn:
    """Raise what ended a task group in place of the group; what caused it stays with it."""
    error = first_cause(group)
    raise error from error.__cause__


def first_cause(group: BaseExceptionGroup[Any]) -> BaseException:
    """The exception that ended a task group: the first that is not just its consequence."""
    leaves = list(_leaves(group))
    for kind in (Stop, Fix):
        for leaf in leaves:
            if isinstance(leaf, kind):
                return leaf
    return leaves[0]


def _leaves(group: BaseExceptionGroup[Any]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
