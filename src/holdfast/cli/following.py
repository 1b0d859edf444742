"""Following a run from another process: `watch`, `logs -f`, `events -f`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.cli.exits import RunEnded, Unexpected
from holdfast.cli.output import Output
from holdfast.cli.session import Session
from holdfast.errors import StillRunning

if TYPE_CHECKING:
    from rich.text import Text

    from holdfast.services.service import Runs
    from holdfast.services.views import RunView


class Fetch(Protocol):
    """What of a run is printed: all behind so many."""

    async def __call__(self, name: str, *, after: int) -> list[Any]: ...


class Tail:
    """Prints what is there and, when following, what comes, until the run has ended."""

    def __init__(self, out: Output, runs: Runs, fetch: Fetch, line: Callable[[Any], Text]) -> None:
        self._out = out
        self._runs = runs
        self._fetch = fetch
        self._line = line
        self._printed = 0

    async def print(self, run: str, follow: bool) -> None:
        if not follow:
            return await self._print_all(run)
        async for view in self._runs.watch(run):
            await self._print_new(view.run.id)
        return None

    async def _print_all(self, run: str) -> None:
        items: list[Any] = []
        while page := await self._fetch(run, after=len(items)):
            items += page
        if self._out.for_people:
            self._print_lines(items)
        else:
            self._out.items(items, lambda: "")

    async def _print_new(self, run: str) -> None:
        while page := await self._fetch(run, after=self._printed):
            self._printed += len(page)
            self._print_lines(page)

    def _print_lines(self, items: list[Any]) -> None:
        for item in items:
            if self._out.for_people:
                self._out.console.print(self._line(item))
            else:  # a stream has no end to put a bracket at
                Output("jsonl").json(item)


async def watch(session: Session, run: str, timeout: float | None, expect: str | None) -> None:
    """Show a run until it has ended; raise how it ended unless that is what was wanted."""
    from holdfast.cli.progress import progress_on
    from holdfast.model.duration import humanise

    async with session.service() as service:
        id = (await service.runs.find(run)).id
        view: RunView | None = None
        try:
            async with asyncio.timeout(timeout):
                with progress_on(session.out) as progress:
                    async for view in service.runs.watch(id):
                        progress.show(view)
        except TimeoutError as error:
            raise StillRunning(f"run {id} is still going after {humanise(timeout or 0)}") from error
    assert view is not None, "what has ended was looked at"
    _print_end(session, view)
    _judge(view, expect)


def _print_end(session: Session, view: RunView) -> None:
    from holdfast.cli.render.runs import summary_line

    session.out.value(view, lambda: summary_line(view))


def _judge(view: RunView, expect: str | None) -> None:
    run = view.run
    if expect is not None:
        if run.state != expect:
            raise Unexpected(f"run {run.id} ended as {run.state}, not as {expect}")
    elif run.state == "failed":
        raise RunEnded(
            f"run {run.id} failed: {run.error}; `holdfast runs resume {run.id}` goes on from there"
        )
    elif run.state == "cancelled":
        raise RunEnded(f"run {run.id} was cancelled" + (f": {run.reason}" if run.reason else ""))
