"""`holdfast openapi`: the description of the HTTP API."""

from __future__ import annotations

import click

from holdfast.cli.commands import CliCommand, session_of
from holdfast.cli.session import Session


@click.command(
    cls=CliCommand,
    local="this is about what is installed here; a service has its own at /openapi.json",
)
@session_of
def command(session: Session) -> None:
    """Print the OpenAPI 3.1 document of the HTTP API, with the routes of installed apps.

    \b
    Example:
      holdfast openapi > openapi.json
    """
    from holdfast import Holdfast
    from holdfast.api import create_app

    session.out.json(create_app(Holdfast("memory:")).openapi())
