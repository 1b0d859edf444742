"""`holdfast dlq`: dead letters, the messages and runs that could not go on."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.commands import (
    DURATION,
    CommandGroup,
    cursor_option,
    limit_option,
    session_of,
    yes_option,
)
from holdfast.cli.exits import ExitCode
from holdfast.cli.prompts import confirm
from holdfast.cli.session import Session, wait_for
from holdfast.errors import HoldfastError
from holdfast.services.service import ClosedLetter

if TYPE_CHECKING:
    from holdfast.services.service import Service
    from holdfast.services.views import DeadLetterView

PAGE = 1000


@click.group(cls=CommandGroup)
def command() -> None:
    """Dead letters: messages and runs that can't go on, with their original bytes and the
    reason."""


tenant_option = click.option("--tenant", metavar="NAME", help="Only this tenant's.")


@command.command("list")
@tenant_option
@click.option("--all", is_flag=True, help="Also those that were redriven or discarded.")
@click.option(
    "--since", type=DURATION, help="Only those of the last hours or days, for example 1h."
)
@limit_option()
@cursor_option()
@session_of
def list_(
    session: Session,
    tenant: str | None,
    all: bool,
    since: float | None,
    limit: int,
    cursor: str | None,
) -> None:
    """List open dead letters, newest first.

    \b
    Examples:
      holdfast dlq list --tenant acme
      holdfast dlq list --since 1h
    """
    earliest = None if since is None else datetime.now(UTC) - timedelta(seconds=since)
    filters = {"tenant": tenant, "all": all, "since": earliest}
    wait_for(_list(session, filters, limit, cursor))


async def _list(session: Session, filters: dict[str, Any], limit: int, cursor: str | None) -> None:
    from holdfast.cli.render.letters import letter_table

    async with session.service() as service:
        page = await service.dead_letters.list(**filters, limit=limit, cursor=cursor)
    session.out.items(page.items, lambda: letter_table(page.items), page.next_cursor)


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

    async with session.service() as service:
        page = await service.dead_letters.show(id)
    session.out.value(page, lambda: letter_page(page))


@command.command()
@click.argument("ids", nargs=-1, metavar="[ID…]")
@click.option("--all", is_flag=True, help="All open ones that match the filters.")
@tenant_option
@click.option("--pipeline", metavar="NAME", help="With --all: only runs of this pipeline.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
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
    """Try dead letters again: a run goes on from its checkpoints, a message is published to its
    topic.

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
    async with session.service() as service:
        letters = await _chosen(service, ids) if ids else await _matching(service, tenant, pipeline)
        if dry_run:
            would_be = [ClosedLetter(letter.id, letter.run, False) for letter in letters]
            _report(session, would_be, "would be redriven", "")
            return ExitCode.OK
        if len(letters) > 1 or not ids:
            confirm(session, f"Redrive {len(letters)} dead letters?", yes=yes or not letters)
        redrive = service.dead_letters.redrive
        done = [await _attempt(letter, redrive(letter.id)) for letter in letters]
    _report(session, done, "redriven", "was closed before")
    return _code(done)


async def _chosen(service: Service, ids: tuple[str, ...]) -> list[DeadLetterView]:
    return [(await service.dead_letters.show(id)).dead_letter for id in ids]


async def _matching(
    service: Service, tenant: str | None, pipeline: str | None
) -> list[DeadLetterView]:
    letters: list[DeadLetterView] = []
    cursor: str | None = None
    while True:
        page = await service.dead_letters.list(
            tenant=tenant, pipeline=pipeline, limit=PAGE, cursor=cursor
        )
        letters += page.items
        cursor = page.next_cursor
        if cursor is None:
            return letters


async def _attempt(
    letter: DeadLetterView, change: Coroutine[Any, Any, ClosedLetter]
) -> ClosedLetter:
    """One that can't be redriven must not keep the others from it."""
    try:
        return await change
    except HoldfastError as error:
        return ClosedLetter(letter.id, letter.run, False, str(error))


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
    async with session.service() as service:
        letters = await _chosen(service, ids)
        if len(letters) > 1:
            confirm(session, f"Discard {len(letters)} dead letters?", yes=yes)
        discard = service.dead_letters.discard
        done = [await _attempt(letter, discard(letter.id, reason=reason)) for letter in letters]
    _report(session, done, "discarded", "was closed before")
    return _code(done)


def _report(session: Session, done: list[ClosedLetter], verb: str, otherwise: str) -> None:
    if not session.out.for_people:
        session.out.items(done, lambda: "")
        return
    for item in done:
        session.out.line(
            f"{item.id} {item.error or (verb if item.changed or not otherwise else otherwise)}"
        )
    if not done:
        session.out.note("no dead letters")


def _code(done: list[ClosedLetter]) -> int:
    return ExitCode.CONFLICT if any(item.error for item in done) else ExitCode.OK
