"""`holdfast lanes`: queues and their order."""

from __future__ import annotations

import click

from holdfast.cli.commands import CommandGroup, session_of
from holdfast.cli.session import Session, wait_for


@click.group(cls=CommandGroup)
def command() -> None:
    """Lanes: what waits, what runs, who leads."""


@command.command("list")
@session_of
def list_(session: Session) -> None:
    """List lanes with their queued and running runs; for fifo lanes also the leader and what blocks
    them.

    \b
    Example:
      holdfast lanes list
    """
    wait_for(_list(session))


async def _list(session: Session) -> None:
    from holdfast.cli.render.lanes import lane_table

    async with session.reading() as store:
        items = await store.lanes()
    session.out.items(items, lambda: lane_table(items))
