"""One item of `ctx.map`, or one `ctx.step`: a durable call inside a step."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, get_type_hints

from holdfast.engine import threads
from holdfast.engine.attempt import Attempt
from holdfast.engine.blocking import BlockingStepContext
from holdfast.engine.durable_call import DurableCall
from holdfast.errors import Fix
from holdfast.model.checkpoint import Checkpoint, digest
from holdfast.model.codec import codec_for, plain_json
from holdfast.model.commands import SaveCheckpoint
from holdfast.model.keys import ItemKey, is_item
from holdfast.model.run import StepRecord, StepStatus
from holdfast.model.step import Step

if TYPE_CHECKING:
    from holdfast.engine.context import StepContext


class ItemFunction:
    """A function that is called for items: its signature is read once."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        self.takes_context = _takes_context(function)
        self.codec = codec_for(_return_type(function))


class ItemCall(DurableCall):
    """Calls a function for one item. Its cost belongs to the record of its step, and its result is
    passed on to the steps that stream it."""

    __slots__ = ("_args", "_context", "_function", "_item", "_parent", "_started", "_step_record")

    def __init__(
        self,
        attempt: Attempt,
        parent: StepContext,
        step: Step,
        step_record: StepRecord,
        function: ItemFunction,
        item: ItemKey,
        args: tuple[Any, ...],
        max_attempts: int,
    ) -> None:
        fingerprint = digest(
            attempt.journal.fingerprints[step.name], item.original, _arguments_text(item, args)
        )
        record = StepRecord(step.name, StepStatus.IN_PROGRESS, attempts=0, key=item.kept)
        super().__init__(
            attempt, step, item.stored, function.codec, fingerprint, record, max_attempts
        )
        if is_item(item.stored) and attempt.graph.feed(step.name) is not None:
            record.source = attempt.journal.fingerprints[step.name]
        self._item = item
        self._parent = parent
        self._step_record = step_record
        self._function = function
        self._args = args

    async def _call(self) -> Any:
        self._context = self._parent.for_item(self._item)
        self._started = self._attempt.runtime.clock.monotonic()
        self._attempt.gate.before_call(self._step.name, self._key)
        function, args = self._function.function, self._args
        if self._function.is_async:
            if self._function.takes_context:
                return await function(*args, ctx=self._context)
            return await function(*args)
        if self._function.takes_context:
            blocking = BlockingStepContext(self._context, asyncio.get_running_loop())
            answer = await threads.call(
                lambda: function(*args, ctx=blocking), self._step.name, blocking.stop
            )
        else:
            answer = await threads.call(lambda: function(*args), self._step.name)
        return await answer if inspect.isawaitable(answer) else answer

    async def _accept(self, checkpoint: Checkpoint, text: str) -> str | None:
        journal, gate = self._attempt.journal, self._attempt.gate
        journal.reuse_item(checkpoint, self._step_record, gate.epoch)
        self._feed(text)
        return None

    def _complete(self) -> None:
        self._record.status = StepStatus.COMPLETED
        self._record.duration = self._attempt.runtime.clock.monotonic() - self._started
        assert self._context.item_usage is not None, "it is the context of an item"
        self._record.usage = self._context.item_usage

    def _publish(self, checkpoint: SaveCheckpoint, text: str) -> None:
        self._attempt.journal.add_item(checkpoint)
        self._feed(text)

    def _feed(self, text: str) -> None:
        feed = self._attempt.graph.feed(self._step.name)
        if feed is not None and is_item(self._key):
            feed.put(self._item.original, text)


def _arguments_text(item: ItemKey, args: tuple[Any, ...]) -> str:
    try:
        return plain_json(args)
    except Exception as error:
        raise Fix(
            f"item {item.stored!r} can't be written as JSON ({error}): pass ids or plain values "
            "and look the object up inside"
        ) from error


def _takes_context(function: Callable[..., Any]) -> bool:
    try:
        return "ctx" in inspect.signature(function).parameters
    except ValueError:  # some builtins do not say
        return False


def _return_type(function: Callable[..., Any]) -> Any:
    while isinstance(function, partial):
        function = function.func
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        return Any
    try:
        names = inspect.getclosurevars(function).nonlocals
        return get_type_hints(function, localns=names).get("return", Any)
    except (NameError, TypeError) as error:
        raise Fix(
            f"the return type of {function.__qualname__} can't be resolved ({error}): import it at "
            "module level"
        ) from error
