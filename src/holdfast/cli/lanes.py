"""`holdfast lanes`: queues and their order."""

from __future__ import annotations

import click

from holdfast.cli.commands import CommandGroup, session_of, yes_option
from holdfast.cli.prompts import confirm
from holdfast.cli.session import Session, wait_for


@click.group(cls=CommandGroup)
def command() -> None:
    """Lanes: queued and running runs, and leaders."""


@command.command("list")
@session_of
def list_(session: Session) -> None:
    """List lanes with their queued and running runs, and how many of the queued ones are delayed;
    for fifo lanes also the leader and what blocks them.

    \b
    Example:
      holdfast lanes list
    """
    wait_for(_list(session))


async def _list(session: Session) -> None:
    from holdfast.cli.render.lanes import lane_table

    async with session.service() as service:
        items = await service.lanes.list()
    session.out.items(items, lambda: lane_table(items))


@command.command()
@click.argument("name")
@session_of
def show(session: Session, name: str) -> None:
    """Show one lane: its order, its queued and running runs, and for a fifo lane its leaders and
    why their terms ended.

    \b
    Examples:
      holdfast lanes show production
      holdfast lanes show production --json
    """
    wait_for(_show(session, name))


async def _show(session: Session, name: str) -> None:
    from holdfast.cli.render.lanes import lane_page

    async with session.service() as service:
        view = await service.lanes.show(name)
    session.out.value(view, lambda: lane_page(view))


@command.command("step-down")
@click.argument("name")
@click.option("--reason", metavar="TEXT", default="", help="Why; kept in the audit log.")
@yes_option()
@session_of
def step_down(session: Session, name: str, reason: str, yes: bool) -> None:
    """Let another worker lead a fifo lane. The term rises, so the old leader claims nothing more; a
    run under way goes on where it is, and the lane waits for it.

    \b
    Example:
      holdfast lanes step-down computeGenerationQueue --reason "draining the host"
    """
    wait_for(_step_down(session, name, reason, yes))


async def _step_down(session: Session, name: str, reason: str, yes: bool) -> None:
    async with session.service() as service:
        leader = {lane.name: lane.leader for lane in await service.lanes.list()}.get(name)
        if leader is not None:
            confirm(session, f"Take the lead of lane {name!r} from {leader}?", yes=yes)
        done = await service.lanes.step_down(name, reason=reason)
    if session.out.for_people:
        session.out.line(f"{done.stepped_down} leads {name} no more")
    else:
        session.out.json(done)
