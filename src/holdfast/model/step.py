"""A step as it was declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from holdfast.model.codec import Codec
from holdfast.model.retry import Retry


class Step:
    """One step as declared: the function, what it is given, and how it may be repeated."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        result: Codec,
        *,
        needs: tuple[str, ...],
        streams: dict[str, Codec],
        takes_input: str | None,
        takes_context: bool,
        when: Condition | None,
        max_attempts: int,
        timeout: float,
        retry: Retry,
        version: str,
    ) -> None:
        self.function = function
        self.name = name
        self.result = result
        self.needs = needs
        self.streams = streams
        self.takes_input = takes_input
        self.takes_context = takes_context
        self.when = when
        self.max_attempts = max_attempts
        self.timeout = timeout
        self.retry = retry
        self.version = version
        self.is_async = inspect.iscoroutinefunction(function)
        self.waits_for = frozenset(needs) | (frozenset(when.needs) if when else frozenset())
        """The steps that must have ended before this one starts."""

    def __repr__(self) -> str:
        return f"<Step {self.name}>"


class Condition:
    """`when=`: decides from the input and earlier results whether an optional step runs."""

    def __init__(
        self, function: Callable[..., Any], needs: tuple[str, ...], takes_input: str | None
    ) -> None:
        self.function = function
        self.needs = needs
        self.takes_input = takes_input
