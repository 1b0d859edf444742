"""`holdfast version`."""

from __future__ import annotations

import click

from holdfast import __version__
from holdfast.cli.commands import CliCommand, session_of
from holdfast.cli.session import Session

USED = ("click", "msgspec", "pydantic", "rich", "uvloop")


@click.command(
    cls=CliCommand,
    local="this is about what is installed here; a service tells it in /openapi.json",
)
@session_of
def command(session: Session) -> None:
    """Show the version of holdfast; with --json also of Python and of what holdfast uses.

    \b
    Example:
      holdfast version --json
    """
    if session.format == "table":
        click.echo(f"holdfast {__version__}")
    else:
        _print_json()


def _print_json() -> None:
    import json
    import platform

    from holdfast.bootstrap.adapters import schemes

    facts = {
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "dependencies": {name: _version_of(name) for name in USED},
        "adapters": {
            "store": [f"{scheme}:" for scheme in schemes("store")],
            "blobs": [f"{scheme}:" for scheme in schemes("blobs")],
            "bus": [f"{scheme}:" for scheme in schemes("bus")],
        },
    }
    click.echo(json.dumps(facts, indent=2))


def _version_of(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
