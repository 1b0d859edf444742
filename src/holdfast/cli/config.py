"""`holdfast config`: the settings in force."""

from __future__ import annotations

import click
from msgspec import Struct

from holdfast.cli.commands import CommandGroup, session_of
from holdfast.cli.session import Session


class Setting(Struct):
    name: str
    value: str
    origin: str
    environment: str
    help: str
    no_effect: str = ""
    """Why it changes nothing, for names that other systems set."""


@click.group(cls=CommandGroup)
def command() -> None:
    """The settings in force."""


@command.command(local="this shows the settings here")
@click.option("--origin", is_flag=True, help="Also say where each value comes from.")
@session_of
def show(session: Session, origin: bool) -> None:
    """Show every setting, and names that were given and have no effect. Passwords in URLs are never
    shown.

    \b
    Example:
      holdfast config show --origin
    """
    from holdfast.cli.render.settings import setting_table
    from holdfast.settings import FIELDS

    loaded = session.loaded
    items = [
        Setting(
            field.name,
            loaded.shown(field.name),
            loaded.origins[field.name],
            field.environment,
            field.help,
        )
        for field in FIELDS
    ]
    items += [
        Setting(
            useless.name,
            useless.value,
            useless.origin,
            useless.name,
            f"No effect: {useless.reason}.",
            useless.reason,
        )
        for useless in loaded.useless
    ]
    session.out.items(items, lambda: setting_table(items, origin))
