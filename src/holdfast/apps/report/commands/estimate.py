"""`holdfast report estimate`: what a report would cost."""

from __future__ import annotations

from typing import Any

import click

from holdfast.apps.report.commands.options import analysis_options, reading_options
from holdfast.cli.commands import Command, session_of
from holdfast.cli.session import Session


@click.command(cls=Command)
@click.argument("file")
@analysis_options
@reading_options
@session_of
def estimate(session: Session, file: str, **options: Any) -> None:
    """Say what a report would cost with a model, before anything is asked.

    \b
    Example:
      holdfast report estimate comments.csv --model openai:gpt-4o-mini --cruxes
    """
    from holdfast.app import Holdfast
    from holdfast.apps.report.analyst import Analysts
    from holdfast.apps.report.commands.estimate_table import estimate_table
    from holdfast.apps.report.commands.request import open_file, request_fields
    from holdfast.apps.report.service import comments_in

    fields = request_fields(session, options)
    with open_file(file) as source:
        comments, brief = comments_in(file, source.read(), fields)
    analyst = Holdfast("memory:", worker=False).use(Analysts).named(fields["model"])
    costs = analyst.estimate(comments, brief, fields["cruxes"])
    session.out.value(costs, lambda: estimate_table(costs))
