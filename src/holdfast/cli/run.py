"""`holdfast run`: submit, execute in this process, print the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast.cli.commands import DURATION, Command, pipeline_argument, session_of
from holdfast.cli.exits import ExitCode, RunEnded, StillGoing
from holdfast.cli.inputs import NOTHING, read_input
from holdfast.cli.session import Session, stored_text, wait_for
from holdfast.cli.watching import OVER, hand_over, show, watch
from holdfast.errors import Conflict, InvalidInput
from holdfast.model.run import ErrorInfo, Run, RunState

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.cli.signals import StopSignal
    from holdfast.engine.handle import RunHandle
    from holdfast.model.pipeline import Pipeline


class Answer(Struct):
    """What `--json` prints."""

    run: str
    created: bool
    state: str
    result: Raw | UnsetType = UNSET
    error: ErrorInfo | UnsetType = UNSET


class Request(Struct, frozen=True):
    """A run as the command line describes it."""

    pipeline: str
    value: Any
    tenant: str | None
    idempotency_key: str | None
    timeout: float | None
    priority: int
    delay: float
    on_conflict: str


@click.command(cls=Command)
@pipeline_argument()
@click.option(
    "--input",
    "-i",
    multiple=True,
    metavar="NAME=TEXT",
    help="Also NAME:=JSON, dotted paths; =TEXT or :=JSON is the whole input. Repeatable.",
)
@click.option(
    "--input-file", metavar="FILE", help="A JSON file with the input; - is standard input."
)
@click.option("--tenant", metavar="NAME", help="Who the run belongs to.")
@click.option("--idempotency-key", metavar="KEY", help="The same key again gives the same run.")
@click.option("--wait/--no-wait", default=True, help="Execute here and wait, or only submit.")
@click.option("--timeout", type=DURATION, help="How long to wait, for example 10m.")
@click.option("--priority", type=int, default=0, help="Higher goes first.")
@click.option(
    "--delay", type=DURATION, default=0, help="Not before this time has passed, for example 5m."
)
@click.option(
    "--on-conflict",
    type=click.Choice(["return", "reject"]),
    default="return",
    help="When a run already answers the request: return it, or reject.",
)
@session_of
def command(
    session: Session, wait: bool, input: tuple[str, ...], input_file: str | None, **request: Any
) -> int:
    """Start a run of a pipeline, execute it in this process and print its result.

    While it waits, this process is a worker for the pipeline's queued runs. Ctrl-C hands the run
    over: whatever is stored is kept, and any worker goes on from there.

    \b
    Examples:
      holdfast run report --input title=Parks --input options.cruxes:=true
      holdfast run squares --input ':=[1, 2, 3]'
      holdfast run report --input-file request.json --idempotency-key r-123
      holdfast run report --input-file - --no-wait < request.json
    """
    described = Request(value=read_input(input, input_file), **request)
    return wait_for(_execute(session, described) if wait else _submit_only(session, described))


async def _submit_only(session: Session, request: Request) -> int:
    pipeline = session.pipeline(request.pipeline)
    async with session.app([pipeline], worker=False) as holdfast:
        handle = await _submit(session, holdfast, pipeline, request)
        state = (await handle.info()).state
    if session.out.for_people:
        session.out.line(handle.id)
    else:
        session.out.json(Answer(handle.id, handle.created, state))
    return ExitCode.OK


async def _submit(
    session: Session, holdfast: Holdfast, pipeline: Pipeline[Any], request: Request
) -> RunHandle:
    handle = await holdfast.submit(
        pipeline,
        _checked(pipeline, request.value),
        tenant=request.tenant or session.loaded.settings.tenant,
        key=request.idempotency_key,
        priority=request.priority,
        delay=request.delay,
    )
    if not handle.created and request.on_conflict == "reject":
        state = (await handle.info()).state
        raise Conflict(
            f"run {handle.id} already answers this request and is {state}: `holdfast runs show "
            f"{handle.id}`"
        )
    if not handle.created:
        session.out.note(f"run {handle.id} already answers this request")
    return handle


def _checked(pipeline: Pipeline[Any], value: Any) -> Any:
    """The input as the pipeline takes it. Without any: null or, if that does not fit, an empty
    object."""
    if value is NOTHING:
        try:
            return pipeline.input.validate(None)
        except InvalidInput:
            value = {}
    try:
        return pipeline.input.validate(value)
    except InvalidInput as error:
        raise InvalidInput(
            f"{error}; `holdfast pipelines schema {pipeline.name}` shows what it takes"
        ) from error


# --- executing ------------------------------------------------------------------------------------


async def _execute(session: Session, request: Request) -> int:
    from holdfast.cli.logs import set_up
    from holdfast.cli.progress import progress_on  # before anything runs: importing takes a moment
    from holdfast.cli.signals import StopSignal

    pipeline = session.pipeline(request.pipeline)
    loaded = session.loaded
    set_up(loaded.settings.log, level="warning" if loaded.is_default("log.level") else None)
    holdfast = session.app([pipeline], worker=True)
    progress = progress_on(session.out)
    async with StopSignal() as stop:
        try:
            await holdfast.open()
            handle = await _submit(session, holdfast, pipeline, request)
            showing = show(session, holdfast, handle, pipeline, progress)
            if not await watch(handle, showing, request.timeout, stop):
                await hand_over(session, holdfast)
            run = await handle.info()
            if run.state in OVER:
                return await _answer(session, holdfast, run, handle.created)
        finally:
            await holdfast.close()
    return _left(session, run, stop, request)


async def _answer(session: Session, holdfast: Holdfast, run: Run, created: bool) -> int:
    """Print the result, or raise how the run ended."""
    if run.state != RunState.SUCCEEDED:
        if not session.out.for_people:
            session.out.json(Answer(run.id, created, run.state, error=run.error or UNSET))
        raise RunEnded(_what_now(run))
    text = Raw((await stored_text(holdfast, run.result, f"the result of run {run.id}")).encode())
    session.out.json(
        text if session.out.for_people else Answer(run.id, created, run.state, result=text)
    )
    return ExitCode.OK


def _what_now(run: Run) -> str:
    if run.state == RunState.CANCELLED:
        return f"run {run.id} was cancelled" + (f": {run.reason}" if run.reason else "")
    return (
        f"run {run.id} failed: {run.error}; `holdfast runs resume {run.id}` goes on from its "
        "checkpoints"
    )


def _left(session: Session, run: Run, stop: StopSignal, request: Request) -> int:
    """Say what becomes of a run that did not end while somebody waited for it."""
    if run.state == RunState.QUEUED:
        message = (
            f"run {run.id} was handed over, what is done is kept. Go on with: "
            f"{_go_on(session, request)}"
        )
    else:
        message = f"run {run.id} is {run.state} elsewhere: `holdfast runs watch {run.id}`"
    if stop.received is None:
        raise StillGoing(f"the time is up: {message}")
    session.out.note(f"\nholdfast: {message}")
    return stop.code


def _go_on(session: Session, request: Request) -> str:
    """The same key finds the same run; without one, a worker does."""
    if request.idempotency_key is None:
        return f"holdfast{session.options()} worker --once"
    key = request.idempotency_key
    return f"holdfast{session.options()} run {request.pipeline} … --idempotency-key {key}"
