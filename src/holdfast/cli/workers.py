"""`holdfast workers`: who executes runs."""

from __future__ import annotations

import click

from holdfast.cli.commands import CommandGroup, session_of
from holdfast.cli.session import Session, wait_for


@click.group(cls=CommandGroup)
def command() -> None:
    """Workers: live ones, and those that were lost."""


@command.command("list")
@session_of
def list_(session: Session) -> None:
    """List the workers of the store, with their pipelines and how many runs they have under way.

    A worker that vanished without stopping is `lost` as soon as its leases have ended, and listed
    for an hour.

    \b
    Examples:
      holdfast workers list
      holdfast --store postgresql://db.example.org/app workers list --json
    """
    wait_for(_list(session))


async def _list(session: Session) -> None:
    from holdfast.cli.render.workers import worker_table

    async with session.service() as service:
        items = await service.workers()
    session.out.items(items, lambda: worker_table(items))
