"""`holdfast pipelines`: what can be run here."""

from __future__ import annotations

import click

from holdfast.cli.commands import CommandGroup, pipeline_argument, session_of
from holdfast.cli.session import Session


@click.group(cls=CommandGroup)
def command() -> None:
    """Pipelines: what can be run here."""


@command.command("list")
@session_of
def list_(session: Session) -> None:
    """List the pipelines with their input type, steps, lane and limits.

    \b
    Example:
      holdfast --app pipelines.py pipelines list
    """
    from holdfast.cli.render.pipelines import pipeline_table
    from holdfast.services.catalogue import pipeline_view

    found = session.found
    items = [
        pipeline_view(pipeline, found.origins[name]) for name, pipeline in found.pipelines.items()
    ]
    session.out.items(items, lambda: pipeline_table(items))


@command.command()
@pipeline_argument()
@click.option("--mermaid", is_flag=True, help="As a Mermaid flowchart.")
@session_of
def graph(session: Session, pipeline: str, mermaid: bool) -> None:
    """Show which step waits for which.

    \b
    Examples:
      holdfast pipelines graph report
      holdfast pipelines graph report --mermaid > report.mmd
    """
    from holdfast.cli.render.pipelines import pipeline_graph
    from holdfast.services.catalogue import as_mermaid, pipeline_view

    view = pipeline_view(session.pipeline(pipeline), session.found.origins[pipeline])
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
    found = session.pipeline(pipeline)
    session.out.json((found.result_step.result if result else found.input).json_schema())
