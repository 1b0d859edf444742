"""`holdfast locks`: who holds what."""

from __future__ import annotations

import click

from holdfast.cli.commands import CommandGroup, session_of, yes_option
from holdfast.cli.prompts import confirm
from holdfast.cli.session import Session, wait_for


@click.group(cls=CommandGroup)
def command() -> None:
    """Locks and leaders: their holders, and how long they last."""


@command.command("list")
@session_of
def list_(session: Session) -> None:
    """List all locks that are held: locks of your code, the leaderships of fifo lanes
    (`lane:NAME`), pipeline locks, and the live runs of unique pipelines.

    \b
    Example:
      holdfast locks list
    """
    wait_for(_list(session))


async def _list(session: Session) -> None:
    from holdfast.cli.render.locks import lock_table

    async with session.service() as service:
        items = await service.locks.list()
    session.out.items(items, lambda: lock_table(items))


@command.command()
@click.argument("name")
@click.option("--reason", metavar="TEXT", default="", help="Why; kept in the audit log.")
@yes_option()
@session_of
def release(session: Session, name: str, reason: str, yes: bool) -> None:
    """Take a lock away from its holder. The epoch rises, so the old holder can write nothing more;
    a pipeline lock has no epoch, and its holder is not stopped. That of a run is pipeline_lock:RUN:
    another worker goes on with it, from its checkpoints.

    \b
    Examples:
      holdfast locks release lane:generate --reason "host is gone"
      holdfast locks release pipeline_lock:acme1281:gcp_billing_export
      holdfast locks release pipeline_lock:abc123
    """
    wait_for(_release(session, name, reason, yes))


async def _release(session: Session, name: str, reason: str, yes: bool) -> None:
    async with session.service() as service:
        holders = {lock.name: lock.holder for lock in await service.locks.list()}
        holder = holders.get(name) or "its holder"
        confirm(session, f"Take lock {name!r} away from {holder}?", yes=yes, typed=name)
        done = await service.locks.release(name, reason=reason)
    if session.out.for_people:
        session.out.line(f"{name} released")
    else:
        session.out.json(done)
