"""`holdfast worker`: execute queued runs until told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.commands import DURATION, Command, session_of
from holdfast.cli.exits import ExitCode
from holdfast.cli.session import Session, wait_for
from holdfast.errors import ConfigurationError

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.cli.signals import StopSignal
    from holdfast.model.pipeline import Pipeline

log = logging.getLogger("holdfast.worker")

HAND_OVER_TIMEOUT = 8.0
"""How long handing over may take after the grace has passed, in seconds."""
POLL_INTERVAL = 0.2
"""Between two looks whether anything is left to do (`--once`), in seconds."""


@click.command(cls=Command)
@click.option("--concurrency", type=click.IntRange(min=1), help="Runs in flight at once.")
@click.option(
    "--lane", multiple=True, metavar="NAME", help="Only pipelines of this lane. Repeatable."
)
@click.option(
    "--drain-timeout",
    type=DURATION,
    help="How long steps may go on after a signal, for example 30s.",
)
@click.option("--once", is_flag=True, help="Exit when nothing is left to claim.")
@session_of
def command(
    session: Session,
    concurrency: int | None,
    lane: tuple[str, ...],
    drain_timeout: float | None,
    once: bool,
) -> int:
    """Execute queued runs until told to stop.

    SIGTERM or Ctrl-C: no further run is claimed, steps under way may end, the rest is handed over
    to other workers. A second signal ends the process at once; its runs go on elsewhere when their
    leases have ended.

    \b
    Examples:
      holdfast --app pipelines.py worker --concurrency 8
      holdfast worker --lane reports --drain-timeout 30s
      holdfast worker --once
    """
    session.flags |= {"concurrency": concurrency, "grace": drain_timeout}
    return wait_for(_work(session, _served(session, lane), once))


def _served(session: Session, lanes: tuple[str, ...]) -> list[Pipeline[Any]]:
    pipelines = list(session.found.pipelines.values())
    if not pipelines:
        raise ConfigurationError("the app has no pipelines, so there is nothing to work on")
    known = sorted({pipeline.lane.name for pipeline in pipelines})
    for name in lanes:
        if name not in known:
            raise ConfigurationError(
                f"no pipeline uses lane {name!r}; known lanes: {', '.join(known)}"
            )
    return [pipeline for pipeline in pipelines if not lanes or pipeline.lane.name in lanes]


async def _work(session: Session, pipelines: list[Pipeline[Any]], once: bool) -> int:
    from holdfast.cli.logs import set_up
    from holdfast.cli.signals import StopSignal

    settings = session.loaded.settings
    set_up(settings.log)
    _collect_garbage_seldom()
    holdfast = session.app(pipelines, worker=True)
    async with StopSignal() as stop:
        try:
            await holdfast.open()
            _log_start(holdfast, pipelines)
            await _wait_for_stop(holdfast, pipelines, stop, once)
        finally:
            drained = await _drain(holdfast, stop, holdfast.options.worker.grace)
    return ExitCode.OK if drained else stop.code


def _collect_garbage_seldom() -> None:
    """A worker keeps thousands of small objects for milliseconds, and hardly one of them is part of
    a cycle: at Python's own pace the collector takes a seventh of its time to find nothing."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _log_start(holdfast: Holdfast, pipelines: list[Pipeline[Any]]) -> None:
    from holdfast.settings import redacted

    assert holdfast.worker is not None
    names = ", ".join(sorted(pipeline.name for pipeline in pipelines))
    log.info(
        "worker %s serves %s from %s, %d runs at once; Ctrl-C drains",
        holdfast.worker.name,
        names,
        redacted(holdfast.store_url or "its own store"),
        holdfast.worker.options.concurrency,
    )


async def _wait_for_stop(
    holdfast: Holdfast, pipelines: list[Pipeline[Any]], stop: StopSignal, once: bool
) -> None:
    waiting = [asyncio.create_task(stop.wait())]
    if once:
        waiting.append(asyncio.create_task(_nothing_left(holdfast, pipelines)))
    try:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in waiting:
            task.cancel()


async def _nothing_left(holdfast: Holdfast, pipelines: list[Pipeline[Any]]) -> None:
    import time

    from holdfast.services.backlog import has_work

    assert holdfast.worker is not None
    store, name = holdfast.store, holdfast.worker.name
    busy = True
    while busy:
        await asyncio.sleep(POLL_INTERVAL)
        busy = bool(holdfast.worker.active) or await has_work(store, pipelines, name, time.time())


async def _drain(holdfast: Holdfast, stop: StopSignal, grace: float) -> bool:
    """Let go of everything. False when that took too long: the store is away, or a step does not
    end."""
    active = holdfast.worker.active if holdfast.worker else 0
    if stop.received is not None and active:
        log.info(
            "draining %d %s; one more signal stops at once",
            active,
            "run" if active == 1 else "runs",
        )
    try:
        await asyncio.wait_for(holdfast.close(grace), grace + HAND_OVER_TIMEOUT)
    except TimeoutError:
        log.warning(
            "not everything could be handed over; it goes on elsewhere when its leases have ended"
        )
        return False
    return True
