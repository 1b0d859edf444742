"""`holdfast projections`: what leaves for other systems."""

from __future__ import annotations

import click

from holdfast.cli.commands import CommandGroup, session_of, yes_option
from holdfast.cli.prompts import confirm
from holdfast.cli.session import Session, wait_for


@click.group(cls=CommandGroup)
def command() -> None:
    """Projections: show, rebuild and drop them."""


@command.command("list")
@session_of
def list_(session: Session) -> None:
    """List the registered projections: position, events behind, who runs them, last error.

    \b
    Example:
      holdfast projections list
    """
    wait_for(_list(session))


async def _list(session: Session) -> None:
    from holdfast.cli.render.projections import projection_table

    async with session.service() as service:
        items = await service.projections.list()
    session.out.items(items, lambda: projection_table(items))


@command.command()
@click.argument("name")
@yes_option()
@session_of
def rebuild(session: Session, name: str, yes: bool) -> None:
    """Restart a projection from the first event that is kept. Messages are sent once more, with the
    same ids; documents are written again.

    \b
    Examples:
      holdfast projections rebuild state_documents
      holdfast projections rebuild jobs.results --yes
    """
    wait_for(_rebuild(session, name, yes))


async def _rebuild(session: Session, name: str, yes: bool) -> None:
    async with session.service() as service:
        view = await service.projections.find(name)
        if view.kind == "messages":
            confirm(session, f"Send all messages of {name!r} once more?", yes=yes)
        await service.projections.rebuild(name)
    _say(session, name, "rebuilt", f"{name} begins again with the first event")


@command.command()
@click.argument("name")
@yes_option()
@session_of
def drop(session: Session, name: str, yes: bool) -> None:
    """Remove a projection that no process runs any more, so that retention does not wait for it.

    \b
    Example:
      holdfast projections drop old-webhook
    """
    wait_for(_drop(session, name, yes))


async def _drop(session: Session, name: str, yes: bool) -> None:
    async with session.service() as service:
        view = await service.projections.find(name)
        if view.behind:
            confirm(session, f"Drop {name!r}, which has not sent everything?", yes=yes)
        await service.projections.drop(name)
    _say(session, name, "dropped", f"{name} dropped")


def _say(session: Session, name: str, done: str, line: str) -> None:
    if session.out.for_people:
        session.out.line(line)
    else:
        session.out.json({"projection": name, done: True})
