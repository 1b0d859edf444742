"""`holdfast explain`: why a run is not running, or why it failed."""

from __future__ import annotations

import click

from holdfast.cli.commands import CliCommand, run_argument, session_of
from holdfast.cli.session import Session, wait_for


@click.command(cls=CliCommand)
@run_argument()
@session_of
def command(session: Session, run: str) -> None:
    """Explain why a run is not running, or why it failed, in one sentence with figures.

    \b
    Example:
      holdfast explain 06f3z
    """
    wait_for(_explain(session, run))


async def _explain(session: Session, name: str) -> None:
    async with session.service() as service:
        answer = await service.runs.explain(name)
    if not session.out.for_people:
        session.out.json(answer)
        return
    session.out.line(f"run {answer.run} is {answer.state}: {answer.sentence}")
    if answer.remedy:
        session.out.line(f"to do: {answer.remedy}")
