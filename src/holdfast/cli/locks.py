"""`holdfast locks`: who holds what."""

from __future__ import annotations

import click

from holdfast.cli.commands import CommandGroup, session_of, yes_option
from holdfast.cli.prompts import confirm
from holdfast.cli.session import Session, actor, wait_for


@click.group(cls=CommandGroup)
def command() -> None:
    """Locks and leaders: who holds what, for how long."""


@command.command("list")
@session_of
def list_(session: Session) -> None:
    """List the locks that are held now; the leader of a fifo lane holds `lane:NAME`.

    \b
    Example:
      holdfast locks list
    """
    wait_for(_list(session))


async def _list(session: Session) -> None:
    from holdfast.cli.render.locks import lock_table
    from holdfast.services.views import lock_view

    async with session.reading() as store:
        items = [lock_view(lock) for lock in await store.locks()]
    session.out.items(items, lambda: lock_table(items))


@command.command()
@click.argument("name")
@click.option("--reason", metavar="TEXT", default="", help="Why; kept in the audit log.")
@yes_option()
@session_of
def release(session: Session, name: str, reason: str, yes: bool) -> None:
    """Take a lock away from its holder. The epoch rises, so the old holder can write nothing more.

    \b
    Example:
      holdfast locks release lane:generate --reason "host is gone"
    """
    wait_for(_release(session, name, reason, yes))


async def _release(session: Session, name: str, reason: str, yes: bool) -> None:
    async with session.client() as holdfast:
        holder = next(
            (lock.owner for lock in await holdfast.store.locks() if lock.name == name), None
        )
        if holder is not None:
            confirm(session, f"Take lock {name!r} away from {holder}?", yes=yes, typed=name)
        await holdfast.operations.release_lock(name, actor=actor(), reason=reason)
    if session.out.for_people:
        session.out.line(f"{name} released")
    else:
        session.out.json({"lock": name, "released": True, "holder": holder})
