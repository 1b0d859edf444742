"""`holdfast report estimate`: what a report would cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from holdfast.apps.report.commands.options import analysis_options, reading_options
from holdfast.cli.commands import CliCommand, session_of
from holdfast.cli.session import Session


@click.command(cls=CliCommand, local="this reads the file here and asks nobody")
@click.argument("file")
@analysis_options
@reading_options
@session_of
def estimate(session: Session, file: str, **options: Any) -> None:
    """Estimate what a report would cost with a model, and how long its limits make it take, without
    calling it.

    \b
    Example:
      holdfast report estimate comments.csv --model openai:gpt-4o-mini --cruxes
    """
    from holdfast.app import Holdfast
    from holdfast.apps.report.analyst import Analysts
    from holdfast.apps.report.commands.estimate_table import estimate_table
    from holdfast.apps.report.commands.request import open_file, request_fields
    from holdfast.apps.report.service import comments_in
    from holdfast.apps.report.time_limits import least_time, time_limit_for
    from holdfast.bootstrap import Options

    fields = request_fields(session, options)
    with open_file(file) as source:
        comments, brief = comments_in(file, source.read(), fields)
    analyst = Holdfast("memory:", worker=False).use(Analysts).named(fields["model"])
    costs = analyst.estimate(comments, brief, fields["cruxes"])
    costs = replace(
        costs,
        least_seconds=least_time(
            fields["model"], costs.calls, costs.input_tokens + costs.output_tokens
        ),
        timeout_seconds=Options().with_settings(session.loaded).of_pipeline("report").timeout
        or time_limit_for(len(comments), fields["model"]),
    )
    session.out.value(costs, lambda: estimate_table(costs))
