"""`holdfast runs`: look at runs, and change their course."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

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
from holdfast.cli.exits import RunEnded, StillGoing
from holdfast.cli.prompts import confirm
from holdfast.cli.session import Session, actor, stored_text, wait_for

if TYPE_CHECKING:
    from holdfast.model.run import Run
    from holdfast.ports.store import Store
    from holdfast.services.views import RunView


@click.group(cls=CommandGroup)
def command() -> None:
    """Look at runs, and change their course."""


follow_option = click.option("--follow", "-f", is_flag=True, help="Go on until the run has ended.")
reason_option = click.option("--reason", metavar="TEXT", default="", help="Why; kept with the run.")


class Changed(Struct):
    """What a change of one run answers."""

    run: str
    state: str


# --- looking --------------------------------------------------------------------------------------


@command.command("list")
@click.option("--pipeline", metavar="NAME", help="Only runs of this pipeline.")
@click.option("--state", type=STATES, help="Only runs in this state.")
@click.option("--tenant", metavar="NAME", help="Only runs of this tenant.")
@click.option("--lane", metavar="NAME", help="Only runs in this lane.")
@click.option("--key", metavar="KEY", help="Only the run with this idempotency key.")
@limit_option()
@cursor_option()
@session_of
def list_(session: Session, limit: int, cursor: str | None, **where: Any) -> None:
    """List runs, newest first.

    \b
    Examples:
      holdfast runs list --state failed --pipeline report
      holdfast runs list --json | jq -r '.items[].id'
    """
    from holdfast.ports.store import RunFilter

    wait_for(_list(session, RunFilter(**where), limit, _position(cursor)))


def _position(cursor: str | None) -> int | None:
    if cursor is not None and not cursor.isdigit():
        raise click.BadParameter("give the next_cursor of the page before", param_hint="--cursor")
    return None if cursor is None else int(cursor)


async def _list(session: Session, where: Any, limit: int, before: int | None) -> None:
    from holdfast.cli.render.runs import run_table
    from holdfast.services.views import summary

    async with session.reading() as store:
        found = await store.runs(where, limit=limit + 1, before=before)
    page = found[:limit]
    items = [summary(run, time.time()) for run in page]
    session.out.items(
        items, lambda: run_table(items), str(page[-1].seq) if len(found) > limit else None
    )


@command.command()
@run_argument()
@click.option(
    "--format",
    type=click.Choice(["timeline", "state"]),
    default="timeline",
    help="state prints the state document of the report service (seed 000).",
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

    async with session.reading() as store:
        view = await _view(session, store, await _find(store, run))
    session.out.value(view, lambda: run_page(view, min(120, session.out.console.width)))


async def _show_state(session: Session, run: str) -> None:
    from holdfast.services.statedocument import state_document

    async with session.client() as holdfast:
        store = holdfast.store
        view = await _view(session, store, await _find(store, run))
        session.out.json(await state_document(store, view, holdfast.runtime.payloads.fetch))


async def _find(store: Store, run: str) -> Run:
    from holdfast.services.lookup import find_run

    return await find_run(store, run)


async def _view(session: Session, store: Store, run: Run) -> RunView:
    from holdfast.services.views import run_view

    return await run_view(store, run, time.time(), session.declared_steps(run))


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


async def _result(session: Session, run_id: str) -> None:
    from msgspec import Raw

    async with session.client() as holdfast:
        run = await _find(holdfast.store, run_id)
        if run.state in ("failed", "cancelled"):
            raise RunEnded(f"run {run.id} has no result, it {_ended(run)}")
        if run.state != "succeeded":
            raise StillGoing(
                f"run {run.id} is {run.state}; wait for it with `holdfast runs watch {run.id}`"
            )
        text = await stored_text(holdfast, run.result, f"the result of run {run.id}")
    session.out.json(Raw(text.encode()))


def _ended(run: Run) -> str:
    if run.state == "failed":
        return f"failed: {run.error}"
    return "was cancelled" + (f": {run.reason}" if run.reason else "")


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


async def _events(session: Session, run_id: str, follow: bool) -> None:
    from holdfast.cli.following import Tail
    from holdfast.cli.render.runs import event_line
    from holdfast.services.views import event_view

    async def fetch(store: Store, run: str, after: int) -> list[Any]:
        return [event_view(event) for event in (await store.history(run))[after:]]

    async with session.reading() as store:
        run = await _find(store, run_id)
        await Tail(session.out, store, fetch, event_line).print(run, follow)


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


async def _logs(session: Session, run_id: str, follow: bool) -> None:
    from holdfast.cli.following import Tail
    from holdfast.cli.render.runs import log_line
    from holdfast.services.views import log_view

    async def fetch(store: Store, run: str, after: int) -> list[Any]:
        return [log_view(line) for line in await store.logs(run, after=after)]

    async with session.reading() as store:
        run = await _find(store, run_id)
        await Tail(session.out, store, fetch, log_line).print(run, follow)


@command.command()
@run_argument()
@click.option("--timeout", type=DURATION, help="How long to watch, for example 10m.")
@click.option("--expect", type=STATES, help="Exit with 8 unless the run ends in this state.")
@session_of
def watch(session: Session, run: str, timeout: float | None, expect: str | None) -> None:
    """Follow a run until it has ended. Exits with 5 when it failed or was cancelled.

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
    """Cancel runs for good: once this returns, nothing further starts or commits for them.

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
    """Park runs, checkpoints kept, until somebody resumes them.

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
    """Let paused or failed runs go on from their checkpoints.

    \b
    Example:
      holdfast runs resume 06f3z
    """
    wait_for(_change(session, "resume", runs, yes, attempts=attempts))


async def _change(
    session: Session, verb: str, ids: tuple[str, ...], yes: bool, **options: Any
) -> None:
    """Find all runs before any is touched; several at once need a confirmation."""
    async with session.client() as holdfast:
        found = [await _find(holdfast.store, id) for id in ids]
        if len(found) > 1:
            confirm(session, f"{verb.capitalize()} {len(found)} runs?", yes=yes)
        changed: list[Changed] = []
        for run in found:
            await getattr(holdfast.operations, verb)(run.id, actor=actor(), **options)
            changed.append(Changed(run.id, (await _find(holdfast.store, run.id)).state))
    _report(session, changed)


def _report(session: Session, changed: list[Changed]) -> None:
    if session.out.for_people:
        for one in changed:
            session.out.line(f"{one.run} {one.state}")
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


async def _rerun(session: Session, run_id: str, from_step: str | None) -> None:
    session.found  # noqa: B018  an import error must not pass as a warning here
    async with session.client() as holdfast:
        handle = await holdfast.operations.rerun(
            (await _find(holdfast.store, run_id)).id, from_step=from_step
        )
    if not session.out.for_people:
        session.out.json(Changed(handle.id, "queued"))
        return
    session.out.line(handle.id)
    session.out.note(
        f"queued; execute it with `holdfast{session.options()} worker --once` or leave it to a "
        "worker"
    )
