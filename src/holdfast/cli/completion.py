"""`holdfast completion`: the script that makes the shell complete holdfast's words."""

from __future__ import annotations

import click

from holdfast.cli.commands import CliCommand


@click.command(cls=CliCommand, local="this is about the shell here")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell, for commands, pipeline names and run ids.

    \b
    Examples:
      eval "$(holdfast completion bash)"
      holdfast completion fish > ~/.config/fish/completions/holdfast.fish
    """
    from click.shell_completion import get_completion_class

    from holdfast.cli.main import root

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root, {}, "holdfast", "_HOLDFAST_COMPLETE").source())
