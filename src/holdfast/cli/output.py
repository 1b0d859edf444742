"""Data goes to stdout, as a table for people or as JSON for programs; everything else goes to
stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WIDE = 10_000
"""When nobody looks, nothing is cut off."""


class Output:
    def __init__(self, format: str = "table", color: str = "auto") -> None:
        self.format = format
        self.color = color
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                # A terminal may have no Unicode.
                stream.reconfigure(errors="replace")  # type: ignore[union-attr]

    @property
    def for_people(self) -> bool:
        return self.format == "table"

    @cached_property
    def console(self) -> Console:
        return self._console(sys.stdout)

    @cached_property
    def errors(self) -> Console:
        return self._console(sys.stderr)

    def _console(self, stream: TextIO) -> Console:
        from rich.console import Console

        return Console(
            file=stream,
            width=None if stream.isatty() else WIDE,
            force_terminal=True if self.color == "always" else None,
            no_color=True if self.color == "never" else None,
            highlight=False,
            soft_wrap=False,
        )

    # --- data -------------------------------------------------------------------------------------

    def value(self, value: Any, human: Callable[[], RenderableType]) -> None:
        """One thing."""
        if self.for_people:
            self.console.print(human())
        else:
            self.json(value)

    def items(
        self,
        items: Sequence[Any],
        human: Callable[[], RenderableType],
        next_cursor: str | None = None,
    ) -> None:
        """A list, or the first page of one."""
        if self.for_people:
            self.console.print(human())
            if next_cursor is not None:
                self.note(f"there are more: add --cursor {next_cursor}")
        elif self.format == "jsonl":
            for item in items:
                self.json(item)
        else:
            self.json({"items": items, "next_cursor": next_cursor})

    def json(self, value: Any) -> None:
        import msgspec

        text = msgspec.json.encode(value)
        if self.format != "jsonl":
            text = msgspec.json.format(text, indent=2)
        self.line(text.decode())

    def line(self, text: str) -> None:
        """A line of data, just as it is."""
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    # --- everything else --------------------------------------------------------------------------

    def note(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
