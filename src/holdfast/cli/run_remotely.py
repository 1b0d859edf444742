"""`holdfast run --url`: a worker of the service executes the run; here it is submitted and
watched."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.cli.exits import Paused
from holdfast.cli.inputs import NOTHING
from holdfast.cli.run import RunRequest, note_existing, print_accepted, print_ending
from holdfast.cli.session import Session
from holdfast.errors import InvalidInput, StillRunning
from holdfast.model.duration import humanise
from holdfast.model.run import RunState
from holdfast.services.service import Accepted, Submission

if TYPE_CHECKING:
    from holdfast.services.service import Service
    from holdfast.services.views import RunView


async def run_remotely(session: Session, request: RunRequest, wait: bool) -> int:
    async with session.service(tenant=request.tenant) as service:
        accepted = await _submit(service, request)
        run = accepted.run
        if not accepted.created:
            note_existing(session, request, run.id, run.state)
        if not wait:
            return print_accepted(session, run.id, accepted.created, run.state)
        try:
            async with asyncio.timeout(request.timeout):
                ended = (await watch_remotely(session, service, run.id)).run
        except TimeoutError as error:
            raise StillRunning(
                f"run {run.id} is still going after {humanise(request.timeout or 0)}: `holdfast"
                f"{session.options()} runs watch {run.id}`"
            ) from error
        succeeded = ended.state == RunState.SUCCEEDED
        result = await service.runs.result(run.id) if succeeded else None
    return print_ending(session, ended, accepted.created, result)


async def _submit(service: Service, request: RunRequest) -> Accepted:
    """Without an input: null or, if that does not fit, an empty object."""
    about = Submission(priority=request.priority, delay=request.delay, labels=request.labels)
    key, value = request.idempotency_key, request.value
    if value is not NOTHING:
        return await service.runs.submit(request.pipeline, value, key=key, about=about)
    try:
        return await service.runs.submit(request.pipeline, None, key=key, about=about)
    except InvalidInput:
        return await service.runs.submit(request.pipeline, {}, key=key, about=about)


async def watch_remotely(session: Session, service: Service, run: str) -> RunView:
    """Show its progress until it has ended. Raises Paused if it does not go on by itself."""
    from holdfast.cli.progress import progress_on

    session.out.note(f"run {run}")
    view: RunView | None = None
    with progress_on(session.out) as progress:
        async for view in service.runs.watch(run):
            progress.show(view)
            if view.state == RunState.PAUSED:
                raise Paused(run, view.run.reason or "no reason was given")
    assert view is not None, "what has ended was looked at"
    return view
