"""`holdfast audit`: who intervened, and why."""

from __future__ import annotations

import click

from holdfast.cli.commands import CommandGroup, session_of
from holdfast.cli.session import Session, wait_for


@click.group(cls=CommandGroup)
def command() -> None:
    """The audit log: who intervened, where, and why."""


@command.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=100, help="At most this many.")
@session_of
def list_(session: Session, limit: int) -> None:
    """List interventions, newest first: locks released by force, leaders that had to step down,
    changes of tenants and keys.

    \b
    Example:
      holdfast audit list
    """
    wait_for(_list(session, limit))


async def _list(session: Session, limit: int) -> None:
    from holdfast.cli.render.audit import audit_table

    async with session.service() as service:
        items = await service.audit(limit=limit)
    session.out.items(items, lambda: audit_table(items))
