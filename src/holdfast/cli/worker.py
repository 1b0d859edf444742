"""`holdfast worker`: execute queued runs until told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from holdfast.cli.commands import DURATION, CliCommand, session_of
from holdfast.cli.exits import ExitCode
from holdfast.cli.session import Session, wait_for
from holdfast.errors import ConfigurationError

if TYPE_CHECKING:
    from holdfast.adapters.prometheus.metrics import PrometheusMetrics
    from holdfast.app import Holdfast
    from holdfast.cli.signals import StopSignal
    from holdfast.model.pipeline import Pipeline
    from holdfast.model.receive import Receive

log = logging.getLogger("holdfast.worker")

QUIET = 5.0
"""Without a message for so many seconds, none is left (`--once`)."""
EVERYWHERE = "0.0.0.0"  # noqa: S104  probes come from outside of a container
POLL_INTERVAL = 0.2
"""Between two looks whether anything is left to do (`--once`), in seconds."""


@click.command(cls=CliCommand, local="a worker works on the store itself")
@click.option(
    "--concurrency", "--threads", type=click.IntRange(min=1), help="Runs in flight at once."
)
@click.option(
    "--project",
    metavar="NAME",
    help="The project of Google Cloud whose Pub/Sub is the bus; alone, receive its topic of jobs. "
    "No effect if `bus` names another one.",
)
@click.option(
    "--receive",
    multiple=True,
    metavar="TOPIC=PIPELINE",
    help="Turn the messages of a topic into runs of a pipeline. Repeatable; in the settings: "
    "[[receive]].",
)
@click.option(
    "--lane", multiple=True, metavar="NAME", help="Only pipelines of this lane. Repeatable."
)
@click.option(
    "--drain-timeout",
    type=DURATION,
    help="How long steps may go on after a signal, for example 30s.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Answer /metrics there: the figures of this process, for Prometheus.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Answer /health, /health/live and /health/ready there, on all addresses. Default: the "
    "variable PORT, if it is set.",
)
@click.option(
    "--once",
    is_flag=True,
    help="Exit when nothing is left to claim, and no message has arrived for 5 s.",
)
@session_of
def command(
    session: Session,
    concurrency: int | None,
    project: str | None,
    receive: tuple[str, ...],
    lane: tuple[str, ...],
    drain_timeout: float | None,
    metrics_port: int | None,
    port: int | None,
    once: bool,
) -> int:
    """Execute queued runs until told to stop.

    After SIGTERM or Ctrl-C no further run is claimed, steps under way may end within the drain
    timeout, and all other runs are handed over. The process ends at most 3 s after that, even if a
    step does not end or the store does not answer. A second signal ends it at once; its runs go on
    elsewhere when their leases have ended.

    \b
    Examples:
      holdfast --app pipelines.py worker --concurrency 8
      holdfast worker --lane reports --drain-timeout 30s
      holdfast worker --once
      holdfast worker --receive pipeline-jobs=report
    """
    session.flags |= {"concurrency": concurrency, "grace": drain_timeout, "receive": receive}
    session.flags["pubsub.project"] = project
    pipelines = _served(session, lane)
    _check_received(session)
    received = received_by(session, project, [pipeline.name for pipeline in pipelines])
    if port is None and session.loaded.origins["http.port"] == "environment PORT":
        port = session.loaded.settings.http.port  # as Cloud Run says it
    return wait_for(_work(session, pipelines, received, once, metrics_port, port))


class Received(NamedTuple):
    """What a worker receives, and projections that go with it."""

    receives: tuple[Receive, ...]
    projections: tuple[str, ...] = ()
    elsewhere: tuple[Receive, ...] = ()
    """What other workers of the deployment receive from the same topics."""


def received_by(session: Session, project: str | None, pipelines: list[str]) -> Received:
    """What the settings say. A project alone makes a job worker: it receives the topic of jobs, and
    publishes results and dead letters."""
    from holdfast.bootstrap.pubsub import (
        JOB_PROJECTIONS,
        bus_url,
        received_by_all,
        receives,
        says_nothing,
    )

    loaded = session.loaded
    if not bus_url(loaded).startswith("pubsub:"):
        if project is not None:
            bus = loaded.shown("bus")
            session.out.note(f"--project {project} has no effect: the bus is {bus}, not Pub/Sub")
        return Received(loaded.settings.receive)
    is_job_worker = project is not None and says_nothing(loaded)
    adds = is_job_worker and loaded.is_default("projections")
    here = receives(loaded, pipelines, is_job_worker=is_job_worker)
    topics = {receive.topic for receive in here}
    elsewhere = [r for r in received_by_all(loaded) if r.topic in topics and r not in here]
    return Received(here, JOB_PROJECTIONS if adds else (), tuple(elsewhere))


def _served(session: Session, lanes: tuple[str, ...]) -> list[Pipeline[Any]]:
    pipelines = list(session.discovered.pipelines.values())
    session.refuse_nothing_to_do()
    known = sorted({pipeline.lane.name for pipeline in pipelines})
    for name in lanes:
        if name not in known:
            raise ConfigurationError(
                f"no pipeline uses lane {name!r}; known lanes: {', '.join(known)}"
            )
    return [pipeline for pipeline in pipelines if not lanes or pipeline.lane.name in lanes]


def _check_received(session: Session) -> None:
    """What the settings name may be for another worker; what was typed just now is not."""
    known = session.discovered.pipelines
    for receive in session.loaded.settings.receive:
        if receive.pipeline not in known and session.loaded.origins["receive"] == "command line":
            raise ConfigurationError(
                f"--receive {receive}: there is no pipeline {receive.pipeline!r}; known pipelines: "
                f"{', '.join(sorted(known))}"
            )


async def _work(
    session: Session,
    pipelines: list[Pipeline[Any]],
    received: Received,
    once: bool,
    metrics_port: int | None,
    port: int | None,
) -> int:
    from holdfast.bootstrap.metrics import require_metrics
    from holdfast.bootstrap.push import has_push
    from holdfast.cli.logs import set_up
    from holdfast.cli.probes import probes
    from holdfast.cli.signals import StopSignal, leave

    set_up(session.loaded.settings.log)
    session.loaded.log_useless()
    _collect_garbage_seldom()
    metrics = None if metrics_port is None else require_metrics()
    holdfast = session.app(
        pipelines, worker=True, projections=received.projections, metrics=metrics
    )
    if metrics is not None and metrics_port is not None:
        _serve_metrics(metrics, session.loaded.settings.http.host, metrics_port)
    async with StopSignal(holdfast) as stop:
        try:
            async with probes(holdfast.health, EVERYWHERE, port):
                await holdfast.open()
                _log_start(holdfast, pipelines)
                if has_push(session.loaded.settings):
                    log.info("receives nothing: messages are pushed to `holdfast serve`")
                else:
                    await receive_all(holdfast, received, session.loaded.settings.tenant)
                await _wait_for_stop(holdfast, pipelines, stop, once)
        finally:
            holdfast.health.drain()
            drained = await drain(holdfast, stop)
    code = ExitCode.OK if drained else stop.code
    if holdfast.worker is not None and holdfast.worker.active:
        leave(code)  # nobody waits for code that does not end
    return code


def _serve_metrics(metrics: PrometheusMetrics, host: str, port: int) -> None:
    """In a thread of its own: a busy event loop is what one wants to see."""
    try:
        address = metrics.serve(host, port)
    except OSError as error:
        raise ConfigurationError(
            f"can't answer /metrics on port {port}: {error.strerror or error}; --metrics-port "
            "chooses another one"
        ) from error
    log.info("answers %s/metrics", address)


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
        names or "projections alone",
        redacted(holdfast.store_url or "its own store"),
        holdfast.worker.options.concurrency,
    )


async def receive_all(holdfast: Holdfast, received: Received, tenant: str) -> None:
    """Receive what is configured, for the pipelines that are served."""
    from holdfast.ports.health import bytes_of

    for receive in received.elsewhere:
        await holdfast.received_elsewhere(receive)
    for receive in received.receives:
        if receive.pipeline not in holdfast.pipelines:
            await holdfast.received_elsewhere(receive)
            log.warning(
                "topic %s is not received: this worker does not serve pipeline %s",
                receive.topic,
                receive.pipeline,
            )
            continue
        await holdfast.receive(receive, tenant=tenant)
        log.info(
            "receives %s as subscription %s, at most %d messages and %s at once",
            receive,
            receive.group,
            receive.max_messages,
            bytes_of(receive.max_bytes),
        )


async def _wait_for_stop(
    holdfast: Holdfast, pipelines: list[Pipeline[Any]], stop: StopSignal, once: bool
) -> None:
    waiting = [asyncio.create_task(stop.wait()), asyncio.create_task(holdfast.failed())]
    if once:
        waiting.append(asyncio.create_task(_nothing_left(holdfast, pipelines)))
    try:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if task.exception() is not None:
                stop.request()  # closing a worker that failed may hang, too
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
        busy = (
            bool(holdfast.worker.active)
            or holdfast.quiet_for < QUIET
            or await has_work(store, pipelines, name, time.time())
        )


async def drain(holdfast: Holdfast, stop: StopSignal) -> bool:
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
        await asyncio.wait_for(holdfast.close(), stop.limit)
    except TimeoutError:
        log.warning(
            "not everything could be handed over; it goes on elsewhere when its leases have ended"
        )
        return False
    return True
