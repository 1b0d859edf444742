"""Following a run from another process: `watch`, `logs -f`, `events -f`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from holdfast.cli.exits import RunEnded, StillGoing, Unexpected
from holdfast.cli.output import Output
from holdfast.cli.session import Session

if TYPE_CHECKING:
    from rich.text import Text

    from holdfast.model.run import Run
    from holdfast.ports.store import Store
    from holdfast.services.views import RunView


class Tail:
    """Prints what is there and, when following, what comes, until the run has ended."""

    def __init__(
        self,
        out: Output,
        store: Store,
        fetch: Callable[[Store, str, int], Awaitable[list[Any]]],
        line: Callable[[Any], Text],
    ) -> None:
        self._out = out
        self._store = store
        self._fetch = fetch
        self._line = line
        self._printed = 0

    async def print(self, run: Run, follow: bool) -> None:
        from holdfast.services.following import follow as follow_run

        if not follow:
            return await self._print_all(run.id)
        async for _ in follow_run(self._store, run.id):
            await self._print_new(run.id)
        return None

    async def _print_all(self, run: str) -> None:
        items: list[Any] = []
        while page := await self._fetch(self._store, run, len(items)):
            items += page
        if self._out.for_people:
            self._print_lines(items)
        else:
            self._out.items(items, lambda: "")

    async def _print_new(self, run: str) -> None:
        while page := await self._fetch(self._store, run, self._printed):
            self._printed += len(page)
            self._print_lines(page)

    def _print_lines(self, items: list[Any]) -> None:
        for item in items:
            if self._out.for_people:
                self._out.console.print(self._line(item))
            else:  # a stream has no end to put a bracket at
                Output("jsonl").json(item)


async def watch(session: Session, run_id: str, timeout: float | None, expect: str | None) -> None:
    """Show a run until it has ended; raise how it ended unless that is what was wanted."""
    from holdfast.model.duration import humanise
    from holdfast.services.lookup import find_run

    async with session.reading() as store:
        run = await find_run(store, run_id)
        try:
            async with asyncio.timeout(timeout):
                view = await _watch(session, store, run)
        except TimeoutError as error:
            raise StillGoing(
                f"run {run.id} is still going after {humanise(timeout or 0)}"
            ) from error
    _print_end(session, view)
    _judge(view, expect)


async def _watch(session: Session, store: Store, run: Run) -> RunView:
    from holdfast.cli.progress import progress_on
    from holdfast.services.following import follow
    from holdfast.services.views import live_view, run_view

    declared = session.declared_steps(run)
    look = run_view if run.parent else live_view  # only the full view knows what was taken over
    with progress_on(session.out) as progress:
        async for newest in follow(store, run.id):
            progress.show(await look(store, newest, time.time(), declared))
            run = newest
    return await run_view(store, run, time.time(), declared)


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
