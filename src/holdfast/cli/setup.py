"""`holdfast setup`: create what other systems' services have to hold ready."""

from __future__ import annotations

import click

from holdfast.cli.commands import CommandGroup, session_of
from holdfast.cli.exits import ExitCode
from holdfast.cli.session import Session, wait_for


@click.group(cls=CommandGroup)
def command() -> None:
    """Create or verify what a deployment needs outside of its store."""


@command.command(local="this talks to Google Cloud itself")
@click.option("--dry-run", is_flag=True, help="Only show what is missing or differs.")
@click.option("--project", metavar="NAME", help="The project of Google Cloud.")
@session_of
def pubsub(session: Session, dry_run: bool, project: str | None) -> int:
    """Create topics and subscriptions of Pub/Sub as the settings require, and change those that
    differ. Nothing is ever deleted. The topic, the filter and the ordering of a subscription can't
    be changed: differences there are only reported. Exit code 0 if everything is as the settings
    require, 8 otherwise.

    \b
    Examples:
      holdfast setup pubsub --project my-project --dry-run
      PUBSUB_EMULATOR_HOST=localhost:8085 holdfast setup pubsub --project demo-project
    """
    session.flags["pubsub.project"] = project
    return wait_for(_pubsub(session, dry_run))


async def _pubsub(session: Session, dry_run: bool) -> int:
    from holdfast.bootstrap.pubsub import set_up
    from holdfast.cli.render.setup import setup_table

    items = [checked async for checked in set_up(session.loaded, change=not dry_run)]
    session.out.items(items, lambda: setup_table(items))
    return ExitCode.OK if all(checked.is_right for checked in items) else ExitCode.PROBLEMS
