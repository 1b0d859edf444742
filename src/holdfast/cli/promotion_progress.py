"""How far a promotion has come, on stderr: a bar on a terminal, a few lines anywhere else."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Any, Protocol

from holdfast.cli.output import Output

EVERY = 5.0
"""Seconds between two lines."""


class PromotionProgress(Protocol):
    def show(self, phase: str, done: int, total: int) -> None: ...


def promotion_progress_on(out: Output) -> AbstractContextManager[PromotionProgress]:
    """What suits the place where stderr goes to."""
    return (
        Bar(out)
        if out.errors.is_terminal and not out.errors.is_dumb_terminal
        else PromotionLines(out)
    )


class Bar:
    """One bar for each phase; those that are done stay."""

    def __init__(self, out: Output) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        columns: list[Any] = [
            TextColumn("{task.description:>8}"),
            BarColumn(40),
            MofNCompleteColumn(),
            TextColumn("runs"),
        ]
        self._progress = Progress(
            *columns, TimeRemainingColumn(elapsed_when_finished=True), console=out.errors
        )
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, phase: str, done: int, total: int) -> None:
        if phase not in self._tasks:
            self._tasks[phase] = self._progress.add_task(phase, total=total)
        self._progress.update(self._tasks[phase], completed=done)


class PromotionLines:
    """A line when a phase is over, and one every few seconds before."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._printed_at = time.monotonic()

    def __enter__(self) -> PromotionLines:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if done == total or now - self._printed_at >= EVERY:
            self._printed_at = now
            self._out.note(f"{done:,} of {total:,} runs {phase}")
