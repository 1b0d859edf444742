"""`holdfast pipelines`: what can be run here."""

from __future__ import annotations

import click

from holdfast.cli.commands import CommandGroup, pipeline_argument, session_of
from holdfast.cli.session import Session, wait_for


@click.group(cls=CommandGroup)
def command() -> None:
    """Pipelines that can be run here."""


@command.command("list")
@session_of
def list_(session: Session) -> None:
    """List the pipelines with their input type, steps, lane and limits.

    \b
    Example:
      holdfast --app pipelines.py pipelines list
    """
    wait_for(_list(session))


async def _list(session: Session) -> None:
    from holdfast.cli.render.pipelines import pipeline_table

    async with session.pipelines() as pipelines:
        items = await pipelines.list()
    session.out.items(items, lambda: pipeline_table(items))


@command.command()
@pipeline_argument()
@click.option("--mermaid", is_flag=True, help="As a Mermaid flowchart.")
@session_of
def graph(session: Session, pipeline: str, mermaid: bool) -> None:
    """Show the dependencies between steps.

    \b
    Examples:
      holdfast pipelines graph report
      holdfast pipelines graph report --mermaid > report.mmd
    """
    wait_for(_graph(session, pipeline, mermaid))


async def _graph(session: Session, pipeline: str, mermaid: bool) -> None:
    from holdfast.cli.render.pipelines import pipeline_graph
    from holdfast.services.catalogue import as_mermaid

    async with session.pipelines() as pipelines:
        view = await pipelines.show(pipeline)
    if mermaid:
        session.out.line(as_mermaid(view))
    else:
        session.out.value(view, lambda: pipeline_graph(view))


@command.command()
@pipeline_argument()
@click.option("--result", is_flag=True, help="Of the result instead of the input.")
@session_of
def schema(session: Session, pipeline: str, result: bool) -> None:
    """Print the JSON Schema of a pipeline's input.

    \b
    Example:
      holdfast pipelines schema report > report.schema.json
    """
    wait_for(_schema(session, pipeline, result))


async def _schema(session: Session, pipeline: str, result: bool) -> None:
    async with session.pipelines() as pipelines:
        session.out.json(await pipelines.schema(pipeline, result=result))
