"""`holdfast runs`: look at runs, and change their course."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.commands import (
    DURATION,
    STATES,
    CommandGroup,
    cursor_option,
    limit_option,
    run_argument,
    session_of,
    yes_option,
)
from holdfast.cli.prompts import confirm
from holdfast.cli.session import Session, wait_for

if TYPE_CHECKING:
    from holdfast.ports.store import RunFilter
    from holdfast.services.service import Changed


@click.group(cls=CommandGroup)
def command() -> None:
    """Show and control runs."""


follow_option = click.option("--follow", "-f", is_flag=True, help="Go on until the run has ended.")
reason_option = click.option("--reason", metavar="TEXT", default="", help="Why; kept with the run.")


# --- looking --------------------------------------------------------------------------------------


@command.command("list")
@click.option("--pipeline", metavar="NAME", help="Only runs of this pipeline.")
@click.option("--state", type=STATES, help="Only runs in this state.")
@click.option("--tenant", metavar="NAME", help="Only runs of this tenant.")
@click.option("--lane", metavar="NAME", help="Only runs in this lane.")
@click.option("--key", metavar="KEY", help="Only the run with this idempotency key.")
@click.option(
    "--label", multiple=True, metavar="NAME=TEXT", help="Only runs with this label. Repeatable."
)
@limit_option()
@cursor_option()
@session_of
def list_(
    session: Session, limit: int, cursor: str | None, label: tuple[str, ...], **where: Any
) -> None:
    """List runs, newest first.

    \b
    Examples:
      holdfast runs list --state failed --pipeline report
      holdfast runs list --label user_id=42
      holdfast runs list --json | jq -r '.items[].id'
    """
    from holdfast.cli.inputs import read_labels
    from holdfast.ports.store import RunFilter

    wait_for(_list(session, RunFilter(**where, labels=read_labels(label)), limit, cursor))


async def _list(session: Session, where: RunFilter, limit: int, cursor: str | None) -> None:
    from holdfast.cli.render.runs import run_table

    async with session.service() as service:
        page = await service.runs.list(where, limit=limit, cursor=cursor)
    session.out.items(page.items, lambda: run_table(page.items), page.next_cursor)


@command.command()
@run_argument()
@click.option(
    "--format",
    type=click.Choice(["timeline", "state"]),
    default="timeline",
    help="state prints the state document that the projection state_documents writes.",
)
@session_of
def show(session: Session, run: str, format: str) -> None:
    """Show a run: its steps on a timeline, what was reused, what it cost, why it failed.

    \b
    Examples:
      holdfast runs show 06f3z
      holdfast runs show 06f3z --json
      holdfast runs show 06f3z --format state
    """
    wait_for(_show_state(session, run) if format == "state" else _show(session, run))


async def _show(session: Session, run: str) -> None:
    from holdfast.cli.render.runs import run_page

    async with session.service() as service:
        view = await service.runs.show(run)
    session.out.value(view, lambda: run_page(view, min(120, session.out.console.width)))


async def _show_state(session: Session, run: str) -> None:
    async with session.service() as service:
        session.out.json(await service.runs.state(run))


@command.command()
@run_argument()
@session_of
def result(session: Session, run: str) -> None:
    """Print the result of a run, as JSON.

    \b
    Example:
      holdfast runs result 06f3z > report.json
    """
    wait_for(_result(session, run))


async def _result(session: Session, run: str) -> None:
    async with session.service() as service:
        session.out.json(await service.runs.result(run))


@command.command()
@run_argument()
@follow_option
@session_of
def events(session: Session, run: str, follow: bool) -> None:
    """Print the history of a run: every change, numbered without gaps.

    \b
    Examples:
      holdfast runs events 06f3z
      holdfast runs events 06f3z --follow -o jsonl
    """
    wait_for(_events(session, run, follow))


async def _events(session: Session, run: str, follow: bool) -> None:
    from holdfast.cli.following import Tail
    from holdfast.cli.render.runs import event_line

    async with session.service() as service:
        await Tail(session.out, service.runs, service.runs.events, event_line).print(run, follow)


@command.command()
@run_argument()
@follow_option
@session_of
def logs(session: Session, run: str, follow: bool) -> None:
    """Print what the steps of a run logged.

    \b
    Examples:
      holdfast runs logs 06f3z
      holdfast runs logs 06f3z --follow
    """
    wait_for(_logs(session, run, follow))


async def _logs(session: Session, run: str, follow: bool) -> None:
    from holdfast.cli.following import Tail
    from holdfast.cli.render.runs import log_line

    async with session.service() as service:
        await Tail(session.out, service.runs, service.runs.logs, log_line).print(run, follow)


@command.command()
@run_argument()
@click.option("--timeout", type=DURATION, help="How long to watch, for example 10m.")
@click.option("--expect", type=STATES, help="Exit with 8 unless the run ends in this state.")
@session_of
def watch(session: Session, run: str, timeout: float | None, expect: str | None) -> None:
    """Follow a run until it has ended. Exit code 5 if it failed or was cancelled.

    \b
    Examples:
      holdfast runs watch 06f3z
      holdfast runs watch 06f3z --timeout 10m --expect succeeded
    """
    from holdfast.cli.following import watch as watch_run

    wait_for(watch_run(session, run, timeout, expect))


# --- changing -------------------------------------------------------------------------------------


@command.command()
@run_argument("runs", nargs=-1, required=True)
@reason_option
@yes_option()
@session_of
def cancel(session: Session, runs: tuple[str, ...], reason: str, yes: bool) -> None:
    """Cancel runs for good: once this returns, nothing commits for them any more.

    Steps and items under way are stopped. Nothing further starts later than 0.2 s after this
    returns, while notifications arrive and no step blocks the worker's event loop; otherwise by the
    next renewal of the lease (10 s).

    \b
    Example:
      holdfast runs cancel 06f3z --reason "wrong file"
    """
    wait_for(_change(session, "cancel", runs, yes, reason=reason))


@command.command()
@run_argument("runs", nargs=-1, required=True)
@reason_option
@yes_option()
@session_of
def pause(session: Session, runs: tuple[str, ...], reason: str, yes: bool) -> None:
    """Pause runs until they are resumed. Their checkpoints are kept.

    Work under way stops as soon as with `holdfast runs cancel`.

    \b
    Example:
      holdfast runs pause 06f3z --reason "budget"
    """
    wait_for(_change(session, "pause", runs, yes, reason=reason))


@command.command()
@run_argument("runs", nargs=-1, required=True)
@click.option(
    "--attempts", type=click.IntRange(min=1), help="How many more tries. Default: the pipeline's."
)
@yes_option()
@session_of
def resume(session: Session, runs: tuple[str, ...], attempts: int | None, yes: bool) -> None:
    """Resume paused or failed runs from their checkpoints.

    \b
    Example:
      holdfast runs resume 06f3z
    """
    wait_for(_change(session, "resume", runs, yes, attempts=attempts))


async def _change(
    session: Session, verb: str, names: tuple[str, ...], yes: bool, **options: Any
) -> None:
    """Find all runs before any is touched; several at once need a confirmation."""
    async with session.service() as service:
        runs = [await service.runs.find(name) for name in names]
        if len(runs) > 1:
            confirm(session, f"{verb.capitalize()} {len(runs)} runs?", yes=yes)
        change = getattr(service.runs, verb)
        changed: list[Changed] = [await change(run.id, **options) for run in runs]
    _report(session, changed)


def _report(session: Session, changed: list[Changed]) -> None:
    if session.out.for_people:
        for change in changed:
            session.out.line(f"{change.run} {change.state}")
    elif len(changed) == 1:
        session.out.json(changed[0])
    else:
        session.out.items(changed, lambda: "")


@command.command()
@run_argument()
@click.option(
    "--from-step",
    metavar="STEP",
    help="Keep the results of all steps that do not depend on this one.",
)
@session_of
def rerun(session: Session, run: str, from_step: str | None) -> None:
    """Run the same input again, as a new run linked to the old one. Prints the new run's id.

    \b
    Example:
      holdfast runs rerun 06f3z --from-step summaries
    """
    wait_for(_rerun(session, run, from_step))


async def _rerun(session: Session, run: str, from_step: str | None) -> None:
    async with session.service(all_pipelines=True) as service:
        new = await service.runs.rerun(run, from_step=from_step)
    if not session.out.for_people:
        session.out.json(new)
        return
    session.out.line(new.run)
    if session.remote_url is not None:
        session.out.note(f"queued; `holdfast{session.options()} runs watch {new.run}` follows it")
        return
    session.out.note(
        f"queued; execute it with `holdfast{session.options()} worker --once` or leave it to a "
        "worker"
    )
