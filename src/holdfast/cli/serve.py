"""`holdfast serve`: the HTTP API, with a worker in the same process if wanted."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.commands import DURATION, CliCommand, session_of
from holdfast.cli.exits import ExitCode
from holdfast.cli.session import Session, wait_for
from holdfast.errors import ConfigurationError

if TYPE_CHECKING:
    from fastapi import APIRouter

    from holdfast.app import Holdfast
    from holdfast.cli.signals import StopSignal
    from holdfast.cli.worker import Received

log = logging.getLogger("holdfast.api")

DEMO = Path("holdfast-demo")
DEMO_WORKER = 4


@click.command(cls=CliCommand, local="a service works on the store itself")
@click.option("--host", metavar="ADDRESS", help="Where to listen. Default: 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="Default: PORT, or 8080.")
@click.option(
    "--worker",
    type=click.IntRange(min=1),
    metavar="N",
    help="Execute up to N runs at once in this process, too.",
)
@click.option(
    "--demo",
    is_flag=True,
    help="Start with sample data and a worker, in ./holdfast-demo. Needs no settings.",
)
@click.option(
    "--drain-timeout",
    type=DURATION,
    help="How long steps may go on after a signal, for example 30s.",
)
@session_of
def command(
    session: Session,
    host: str | None,
    port: int | None,
    worker: int | None,
    demo: bool,
    drain_timeout: float | None,
) -> int:
    """Serve the HTTP API until told to stop: /v1, /docs, /health, and the routes of apps.

    Without API keys it listens on this machine only. After SIGTERM or Ctrl-C /health/ready answers
    503, requests under way are answered, steps may end within the drain timeout, and all other runs
    are handed over. A second signal ends it at once.

    \b
    Examples:
      holdfast serve --demo
      holdfast --app pipelines.py serve --worker 4
      holdfast serve --host 0.0.0.0 --port 9000
    """
    if demo:
        worker = worker or DEMO_WORKER
        _use_demo_folder(session)
    session.flags |= {
        "http.host": host,
        "http.port": port,
        "concurrency": worker,
        "grace": drain_timeout,
    }
    from holdfast.api.extra import require_extra

    require_extra()
    return wait_for(_serve(session, works=worker is not None, demo=demo))


def _use_demo_folder(session: Session) -> None:
    """Everything is in one folder, and the pipelines are those of apps that have something to show,
    whatever settings say otherwise."""
    from holdfast.bootstrap import apps

    shown = [app for app in apps.installed() if app.demo]
    for app in shown:
        apps.require_extra(app)
    DEMO.mkdir(exist_ok=True)
    session.flags.setdefault("store", f"sqlite:///{DEMO / 'holdfast.db'}")
    session.flags["app"] = [name for app in shown for name in app.pipelines.values()]


async def _serve(session: Session, works: bool, demo: bool) -> int:
    from holdfast.bootstrap.metrics import make_metrics
    from holdfast.bootstrap.push import has_push
    from holdfast.cli.logs import set_up
    from holdfast.cli.signals import StopSignal, leave
    from holdfast.cli.worker import drain, receive_all, received_by

    set_up(session.loaded.settings.log)
    session.loaded.log_useless()
    pipelines = session.discovered.pipelines
    received = received_by(session, None, list(pipelines))
    holdfast = session.app(pipelines.values(), worker=works, metrics=make_metrics())
    async with StopSignal(holdfast) as stop:
        try:
            await holdfast.open()
            if works and not has_push(session.loaded.settings):
                await receive_all(holdfast, received, session.loaded.settings.tenant)
            routers = await _push_routers(session, holdfast, received)
            lines = await _demo_lines(holdfast) if demo else []
            await _answer_requests(session, holdfast, routers, stop, lines)
        finally:
            drained = await drain(holdfast, stop)
    code = ExitCode.OK if drained else stop.code
    if holdfast.worker is not None and holdfast.worker.active:
        leave(code)  # nobody waits for code that does not end
    return code


async def _demo_lines(holdfast: Holdfast) -> list[str]:
    """Let each app make what it has to show."""
    from holdfast.bootstrap import apps

    lines: list[str] = []
    for app in apps.installed():
        if app.demo:
            lines += await apps.load_part(app, app.demo)(holdfast, DEMO)
    return lines


async def _push_routers(
    session: Session, holdfast: Holdfast, received: Received
) -> list[APIRouter]:
    """The route of messages that are pushed, if they are."""
    from holdfast.api.routes.pubsub import PATHS, push_router
    from holdfast.bootstrap.push import has_push, make_verifier
    from holdfast.engine.pushed import Pushed

    settings = session.loaded.settings
    if not has_push(settings):
        return []
    verifier = make_verifier(settings)
    every = (*received.receives, *received.elsewhere)
    pushed = Pushed(holdfast.runtime, every, holdfast.pipelines, tenant=settings.tenant)
    await pushed.start()
    log.info("takes in pushes of %s at %s", ", ".join(pushed.subscriptions), PATHS[0])
    if verifier is None:
        log.warning("accepts every push: push.service_account is none")
    return [push_router(pushed, verifier)]


async def _answer_requests(
    session: Session,
    holdfast: Holdfast,
    routers: list[APIRouter],
    stop: StopSignal,
    lines: list[str],
) -> None:
    from holdfast.api import create_app
    from holdfast.api.authentication import CREATE_KEY, is_loopback
    from holdfast.api.server import listen, serve, url_of
    from holdfast.bootstrap.push import ANYBODY
    from holdfast.settings import redacted

    http, push = session.loaded.settings.http, session.loaded.settings.push
    # A service that takes in pushes needs no keys: whoever else calls is refused, request by
    # request.
    checks_pushes = routers and push.service_account != ANYBODY
    if not (checks_pushes or is_loopback(http.host) or await holdfast.keys.exist()):
        raise ConfigurationError(
            f"without API keys the service answers this machine only, and {http.host} is more than "
            f"that: make a key with `{CREATE_KEY}`, or leave out --host"
        )
    api = create_app(holdfast, max_body=http.max_body, rate=http.rate, routers=routers)
    listening = listen(http.host, http.port)
    log.info(
        "serves %s from %s; %s/docs describes the API; Ctrl-C drains",
        url_of(listening),
        redacted(holdfast.store_url or "its own store"),
        url_of(listening),
    )
    for line in lines:
        log.info(line.replace("{url}", url_of(listening)))

    stopping = StopWork(holdfast, stop)
    await serve(api, listening, stopping.wait)
    stopping.check()


class StopWork:
    """Waits until the process is told to stop, or its worker can't work any more; then the worker
    drains while requests under way are answered."""

    def __init__(self, holdfast: Holdfast, stop: StopSignal) -> None:
        self._holdfast = holdfast
        self._stop = stop
        self._draining: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        waiting = [
            asyncio.ensure_future(self._stop.wait()),
            asyncio.ensure_future(self._holdfast.failed()),
        ]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        if self._holdfast.worker is not None:
            self._draining = asyncio.create_task(self._holdfast.worker.stop())

    def check(self) -> None:
        """Raise what the worker failed with, if it did."""
        failure = self._holdfast.runtime.supervisor.failure
        if failure is not None:
            self._stop.request()  # closing a worker that failed may hang, too
            raise failure
