"""`holdfast config`: the settings in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import Struct

from holdfast.cli.commands import CommandGroup, session_of
from holdfast.cli.session import Session

if TYPE_CHECKING:
    from holdfast.settings import Loaded


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
        Setting(field.name, *_in_force(loaded, field.name), field.environment, field.help)
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


def _in_force(loaded: Loaded, name: str) -> tuple[str, str]:
    """The value of a setting and where it comes from. A project of Pub/Sub is the bus, too."""
    from holdfast.bootstrap.pubsub import bus_url
    from holdfast.settings import redacted

    if name == "bus" and (bus := bus_url(loaded)) != loaded.settings.bus:
        return redacted(bus), loaded.origins["pubsub.project"]
    return loaded.shown(name), loaded.origins[name]
