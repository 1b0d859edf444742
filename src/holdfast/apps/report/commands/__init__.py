"""`holdfast report`: from a file of comments to a report, and what can be done with one."""

from __future__ import annotations

import click

from holdfast.apps.report.commands.build import build
from holdfast.apps.report.commands.estimate import estimate
from holdfast.apps.report.commands.existing import diff, export, open_, validate
from holdfast.cli.commands import CommandGroup


@click.group(cls=CommandGroup)
def command() -> None:
    """Turn comments into a report that people can trust: topics, claims, quotes, summaries,
    cruxes."""


for part in (build, estimate, open_, validate, diff, export):
    command.add_command(part)
