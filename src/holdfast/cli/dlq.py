"""`holdfast dlq`: dead letters, the messages and runs that could not go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from holdfast.cli.commands import CommandGroup, cursor_option, limit_option, session_of, yes_option
from holdfast.cli.exits import ExitCode
from holdfast.cli.prompts import confirm
from holdfast.cli.session import Session, actor, wait_for
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.ports.store import DeadLetter, Store

ALL = 1_000_000


@click.group(cls=CommandGroup)
def command() -> None:
    """Dead letters: messages and runs that could not go on, with their original bytes and the
    reason."""


tenant_option = click.option("--tenant", metavar="NAME", help="Only this tenant's.")


class Done(Struct):
    """What happened to one dead letter. `changed` is False when it was closed before."""

    id: str
    run: str | None
    changed: bool
    error: str | None = None


@command.command("list")
@tenant_option
@click.option("--all", is_flag=True, help="Also those that were redriven or discarded.")
@limit_option()
@cursor_option()
@session_of
def list_(session: Session, tenant: str | None, all: bool, limit: int, cursor: str | None) -> None:
    """List open dead letters, newest first.

    \b
    Example:
      holdfast dlq list --tenant acme
    """
    wait_for(_list(session, tenant, all, limit, cursor))


async def _list(
    session: Session, tenant: str | None, all: bool, limit: int, cursor: str | None
) -> None:
    from holdfast.cli.render.letters import letter_table
    from holdfast.services.views import dead_letter_view

    async with session.reading() as store:
        found = await store.dead_letters(
            tenant=tenant, open_only=not all, limit=ALL if cursor else limit + 1
        )
    if cursor is not None:
        found = found[
            next((i + 1 for i, letter in enumerate(found) if letter.id == cursor), len(found)) :
        ]
    items = [dead_letter_view(letter) for letter in found[:limit]]
    session.out.items(
        items, lambda: letter_table(items), items[-1].id if len(found) > limit else None
    )


@command.command()
@click.argument("id")
@session_of
def show(session: Session, id: str) -> None:
    """Show a dead letter: the reason, its attributes and the original bytes.

    \b
    Example:
      holdfast dlq show run:06f3z9k2v0c4q8m1t7x5b3n6ha
    """
    wait_for(_show(session, id))


async def _show(session: Session, id: str) -> None:
    from holdfast.cli.render.letters import letter_page
    from holdfast.services.views import dead_letter_body, dead_letter_error, dead_letter_view

    async with session.client() as holdfast:
        letter = await holdfast.operations.dead_letter(await _full_id(holdfast.store, id))
        error = await dead_letter_error(holdfast.store, letter)
    view, body = dead_letter_view(letter), dead_letter_body(letter)
    answer = {"dead_letter": view, "error": error, **body}
    session.out.value(answer, lambda: letter_page(view, error, body))


async def _full_id(store: Store, id: str) -> str:
    """A dead letter's id, or that of the run whose id begins so."""
    from holdfast.errors import NotFound
    from holdfast.services.lookup import find_run

    if await store.dead_letter(id) is not None:
        return id
    try:
        return f"run:{(await find_run(store, id.removeprefix('run:'))).id}"
    except NotFound:
        return id


@command.command()
@click.argument("ids", nargs=-1, metavar="[ID…]")
@click.option("--all", is_flag=True, help="All open ones that match the filters.")
@tenant_option
@click.option("--pipeline", metavar="NAME", help="With --all: only runs of this pipeline.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@yes_option()
@session_of
def redrive(
    session: Session,
    ids: tuple[str, ...],
    all: bool,
    tenant: str | None,
    pipeline: str | None,
    dry_run: bool,
    yes: bool,
) -> int:
    """Send dead letters on their way again: a run goes on from its checkpoints, a message goes to
    its topic.

    \b
    Examples:
      holdfast dlq redrive run:06f3z9k2v0c4q8m1t7x5b3n6ha
      holdfast dlq redrive --all --pipeline report --dry-run
      holdfast dlq redrive --all --pipeline report --yes
    """
    if all == bool(ids):
        raise click.UsageError("give the ids of dead letters, or --all")
    if not all and (tenant or pipeline):
        raise click.UsageError("--tenant and --pipeline are filters of --all")
    return wait_for(_redrive(session, ids, tenant, pipeline, dry_run, yes))


async def _redrive(
    session: Session,
    ids: tuple[str, ...],
    tenant: str | None,
    pipeline: str | None,
    dry_run: bool,
    yes: bool,
) -> int:
    async with session.client() as holdfast:
        letters = (
            await _chosen(holdfast, ids)
            if ids
            else await _matching(holdfast.store, tenant, pipeline)
        )
        if dry_run:
            _report(
                session,
                [Done(letter.id, letter.run, False) for letter in letters],
                "would be redriven",
                "",
            )
            return ExitCode.OK
        if len(letters) > 1 or not ids:
            confirm(session, f"Redrive {len(letters)} dead letters?", yes=yes or not letters)
        done = [
            await _attempt(letter, holdfast.operations.redrive(letter.id, actor=actor()))
            for letter in letters
        ]
    _report(session, done, "redriven", "was closed before")
    return _code(done)


async def _chosen(holdfast: Holdfast, ids: tuple[str, ...]) -> list[DeadLetter]:
    return [await holdfast.operations.dead_letter(await _full_id(holdfast.store, id)) for id in ids]


async def _matching(store: Store, tenant: str | None, pipeline: str | None) -> list[DeadLetter]:
    found = await store.dead_letters(tenant=tenant, limit=ALL)
    return [one for one in found if pipeline is None or one.attributes.get("pipeline") == pipeline]


async def _attempt(letter: DeadLetter, work: Any) -> Done:
    """One that can't be redriven must not keep the others from it."""
    try:
        return Done(letter.id, letter.run, await work)
    except HoldfastError as error:
        return Done(letter.id, letter.run, False, str(error))


@command.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option("--reason", metavar="TEXT", default="", help="Why; kept in the audit log.")
@yes_option()
@session_of
def discard(session: Session, ids: tuple[str, ...], reason: str, yes: bool) -> int:
    """Close dead letters for good. A fifo lane that one of them blocked goes on.

    \b
    Example:
      holdfast dlq discard run:06f3z9k2v0c4q8m1t7x5b3n6ha --reason "test data"
    """
    return wait_for(_discard(session, ids, reason, yes))


async def _discard(session: Session, ids: tuple[str, ...], reason: str, yes: bool) -> int:
    async with session.client() as holdfast:
        letters = await _chosen(holdfast, ids)
        if len(letters) > 1:
            confirm(session, f"Discard {len(letters)} dead letters?", yes=yes)
        operations = holdfast.operations
        done = [
            await _attempt(one, operations.discard(one.id, actor=actor(), reason=reason))
            for one in letters
        ]
    _report(session, done, "discarded", "was closed before")
    return _code(done)


def _report(session: Session, done: list[Done], verb: str, otherwise: str) -> None:
    if not session.out.for_people:
        session.out.items(done, lambda: "")
        return
    for one in done:
        session.out.line(
            f"{one.id} {one.error or (verb if one.changed or not otherwise else otherwise)}"
        )
    if not done:
        session.out.note("no dead letters")


def _code(done: list[Done]) -> int:
    return ExitCode.CONFLICT if any(one.error for one in done) else ExitCode.OK
