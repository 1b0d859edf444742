"""`holdfast run`: submit, execute in this process, print the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast.cli.commands import DURATION, CliCommand, pipeline_argument, session_of
from holdfast.cli.exits import ExitCode, RunEnded
from holdfast.cli.inputs import NOTHING, read_input, read_labels
from holdfast.cli.session import Session, actor, wait_for
from holdfast.cli.watching import OVER, hand_over, show, watch
from holdfast.errors import Conflict, InvalidInput, StillRunning
from holdfast.model.run import ErrorInfo, Run, RunState

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.cli.signals import StopSignal
    from holdfast.engine.handle import RunHandle
    from holdfast.model.pipeline import Pipeline
    from holdfast.services.views import RunSummary


class RunAnswer(Struct):
    """What `--json` prints."""

    run: str
    created: bool
    state: str
    result: Raw | UnsetType = UNSET
    error: ErrorInfo | UnsetType = UNSET


class RunRequest(Struct, frozen=True):
    """A run as the command line describes it."""

    pipeline: str
    value: Any
    tenant: str | None
    idempotency_key: str | None
    labels: dict[str, str]
    timeout: float | None
    priority: int
    delay: float
    on_conflict: str


@click.command(cls=CliCommand)
@pipeline_argument()
@click.option(
    "--input",
    "-i",
    multiple=True,
    metavar="NAME=TEXT",
    help="Also NAME:=JSON, dotted paths; JSON or =TEXT alone is the whole input. Repeatable.",
)
@click.option(
    "--input-file", metavar="FILE", help="A JSON file with the input; - is standard input."
)
@click.option("--tenant", metavar="NAME", help="The tenant of the run.")
@click.option("--idempotency-key", metavar="KEY", help="A repeated key returns the same run.")
@click.option(
    "--label",
    multiple=True,
    metavar="NAME=TEXT",
    help="A label by which the run can be found. Repeatable.",
)
@click.option("--wait/--no-wait", default=True, help="Execute here and wait, or only submit.")
@click.option("--timeout", type=DURATION, help="How long to wait, for example 10m.")
@click.option("--priority", type=int, default=0, help="Higher goes first.")
@click.option(
    "--delay",
    type=DURATION,
    default=0,
    help="Do not start the run before this time has passed, for example 5m.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(["return", "reject"]),
    default="return",
    help="If a run for this request exists already: return it, or fail.",
)
@session_of
def command(
    session: Session,
    wait: bool,
    input: tuple[str, ...],
    input_file: str | None,
    label: tuple[str, ...],
    **request: Any,
) -> int:
    """Start a run of a pipeline, execute it in this process and print its result.

    While it waits, this process is a worker for the pipeline's queued runs. Ctrl-C hands the run
    over: its checkpoints are kept, and any worker can resume it.

    \b
    Examples:
      holdfast run report --input title=Parks --input options.cruxes:=true
      holdfast run squares --input '[1, 2, 3]'
      holdfast run report --input-file request.json --idempotency-key r-123
      holdfast run report --input-file - --no-wait < request.json
      holdfast run report --input-file request.json --label user_id=42
    """
    described = RunRequest(
        value=read_input(input, input_file), labels=read_labels(label), **request
    )
    if session.remote_url is not None:
        from holdfast.cli.run_remotely import run_remotely

        return wait_for(run_remotely(session, described, wait))
    return wait_for(_execute(session, described) if wait else _submit_only(session, described))


async def _submit_only(session: Session, request: RunRequest) -> int:
    pipeline = session.pipeline(request.pipeline)
    _set_up_log(session)
    async with session.app([pipeline], worker=False) as holdfast:
        handle = await _submit(session, holdfast, pipeline, request)
        state = (await handle.info()).state
    return print_accepted(session, handle.id, handle.created, state)


def print_accepted(session: Session, run: str, created: bool, state: str) -> int:
    if session.out.for_people:
        session.out.line(run)
    else:
        session.out.json(RunAnswer(run, created, state))
    return ExitCode.OK


def _set_up_log(session: Session) -> None:
    """Warnings only, unless somebody has said what to log."""
    from holdfast.cli.logs import set_up

    loaded = session.loaded
    set_up(loaded.settings.log, level="warning" if loaded.is_default("log.level") else None)


async def _submit(
    session: Session, holdfast: Holdfast, pipeline: Pipeline[Any], request: RunRequest
) -> RunHandle:
    from holdfast.engine.submitter import submitting

    with submitting(actor()):
        handle = await holdfast.submit(
            pipeline,
            _checked(pipeline, request.value),
            tenant=session.loaded.settings.tenant if request.tenant is None else request.tenant,
            key=request.idempotency_key,
            priority=request.priority,
            delay=request.delay,
            labels=request.labels,
        )
    if not handle.created:
        note_existing(session, request, handle.id, (await handle.info()).state)
    return handle


def note_existing(session: Session, request: RunRequest, run: str, state: str) -> None:
    """Say that a run already answers the request, or raise Conflict if that is not wanted."""
    if request.on_conflict == "reject":
        raise Conflict(
            f"run {run} already answers this request and is {state}: `holdfast runs show {run}`"
        )
    session.out.note(f"run {run} already answers this request")


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


async def _execute(session: Session, request: RunRequest) -> int:
    from holdfast.cli.progress import progress_on  # before anything runs: importing takes a moment
    from holdfast.cli.signals import StopSignal

    pipeline = session.pipeline(request.pipeline)
    _set_up_log(session)
    holdfast = session.app([pipeline], worker=True)
    progress = progress_on(session.out)
    async with StopSignal(holdfast) as stop:
        try:
            await holdfast.open()
            handle = await _submit(session, holdfast, pipeline, request)
            showing = show(session, holdfast, handle, pipeline, progress)
            if not await watch(handle, showing, request.timeout, stop):
                await hand_over(session, holdfast)
            run = await handle.info()
            if run.state in OVER:
                read = holdfast.runtime.payloads.result_of
                ended = run.state == RunState.SUCCEEDED
                result = Raw((await read(run)).encode()) if ended else None
                return print_ending(session, run, handle.created, result)
        finally:
            await holdfast.close()
    return _left(session, run, stop, request)


def print_ending(session: Session, run: Run | RunSummary, created: bool, result: Raw | None) -> int:
    """Print the result, or raise how the run ended."""
    if result is None:
        if not session.out.for_people:
            session.out.json(RunAnswer(run.id, created, run.state, error=run.error or UNSET))
        raise RunEnded(_failure_text(run))
    session.out.json(
        result if session.out.for_people else RunAnswer(run.id, created, run.state, result=result)
    )
    return ExitCode.OK


def _failure_text(run: Run | RunSummary) -> str:
    if run.state == RunState.CANCELLED:
        return f"run {run.id} was cancelled" + (f": {run.reason}" if run.reason else "")
    return (
        f"run {run.id} failed: {run.error}; `holdfast runs resume {run.id}` goes on from its "
        "checkpoints"
    )


def _left(session: Session, run: Run, stop: StopSignal, request: RunRequest) -> int:
    """Say what becomes of a run that did not end while somebody waited for it."""
    if run.state == RunState.QUEUED:
        message = (
            f"run {run.id} was handed over, what is done is kept. Go on with: "
            f"{_resume_command(session, request)}"
        )
    else:
        message = f"run {run.id} is {run.state} elsewhere: `holdfast runs watch {run.id}`"
    if stop.received is None:
        raise StillRunning(f"the time is up: {message}")
    session.out.note(f"\nholdfast: {message}")
    return stop.code


def _resume_command(session: Session, request: RunRequest) -> str:
    """The same key finds the same run; without one, a worker does."""
    if request.idempotency_key is None:
        return f"holdfast{session.options()} worker --once"
    key = request.idempotency_key
    return f"holdfast{session.options()} run {request.pipeline} … --idempotency-key {key}"
