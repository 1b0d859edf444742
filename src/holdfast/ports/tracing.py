"""Tracing: spans over messages, runs, steps and model calls."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from holdfast.model.trace_context import TraceContext

Kind = Literal["internal", "server", "client", "producer", "consumer"]
Value = str | int | float | bool
Attributes = Mapping[str, Value | None]
"""Those that are None are left out."""


class Span(Protocol):
    def set(self, attributes: Attributes) -> None: ...

    def fail(self, kind: str, message: str = "") -> None:
        """It did not succeed; `kind` is the class of the error."""
        ...


class Tracer(Protocol):
    """Who may call: any task or thread. How long a call may block: never noticeably. Errors: none.
    Attributes never hold what users' payloads, prompts or answers say."""

    def span(
        self,
        name: str,
        kind: Kind,
        attributes: Attributes,
        *,
        origin: TraceContext | None = None,
        is_child: bool = False,
        is_root: bool = False,
    ) -> AbstractContextManager[Span]:
        """A span around a block: below the current one, unless it is a root. `origin` is what
        caused it in another trace: linked, or its parent if `is_child`. An exception that leaves
        the block makes it fail."""
        ...
