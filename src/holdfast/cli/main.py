"""The entry point: commands loaded on demand, errors turned into one line and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from holdfast import __version__
from holdfast.cli.commands import CommandGroup, global_options, write_options
from holdfast.cli.exits import ExitCode, code_for
from holdfast.errors import HoldfastError

COMMANDS: dict[str, str] = {
    "run": "Start a run of a pipeline, execute it here and print its result.",
    "worker": "Execute queued runs until told to stop.",
    "serve": "Serve the HTTP API until told to stop.",
    "workers": "Workers: live ones, and those that were lost.",
    "runs": "Show and control runs.",
    "explain": "Explain why a run is not running, or why it failed.",
    "dlq": "Dead letters: list, show, redrive, discard.",
    "locks": "Locks and leaders.",
    "lanes": "Lanes: queued and running runs, and leaders.",
    "tenants": "Tenants: their quotas and API keys.",
    "audit": "The audit log: who intervened, where, and why.",
    "projections": "Projections: messages and documents for other systems.",
    "webhooks": "Webhooks: endpoints, and what was delivered to them.",
    "promote": "Move everything from one store to another, and check it.",
    "pipelines": "Pipelines that can be run here.",
    "openapi": "Print the OpenAPI document of the HTTP API.",
    "setup": "Create topics and subscriptions that a deployment needs.",
    "check": "Check settings and pipelines without running anything.",
    "doctor": "Check store, blobs, bus, model and runs, live.",
    "config": "Show every setting and where its value comes from.",
    "completion": "Print the completion script of a shell.",
    "version": "Show the version of holdfast and of what it uses.",
}
"""Holdfast's own: each lives in the module of its name. The help lines are here so that `--help`
imports none of them."""


def all_commands() -> dict[str, str]:
    """Every command with its help line, those of the apps included. Imports no app."""
    from holdfast.bootstrap import apps

    run = {"run": COMMANDS["run"]}
    shipped = {app.name: app.help for app in apps.SHIPPED.values() if app.commands}
    others = {name: f"From {package}." for name, package in apps.declared().items()}
    return {**run, **shipped, **others, **COMMANDS}


class Root(CommandGroup):
    """The command itself: its commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(all_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> Any:
        return load_command(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(all_commands().items()))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        write_options(
            self.get_params(ctx), "Global options, before or after the command", ctx, formatter
        )


def load_command(name: str) -> click.Command | None:
    """The command behind a name, if there is one. Raises ConfigurationError if it belongs to an app
    that can't be used here: the message says what to install."""
    if name in COMMANDS:
        return import_module(f"holdfast.cli.{name}").command
    from holdfast.bootstrap import apps

    app = apps.find_app(name)
    if app is None or not app.commands:
        return None
    apps.require_extra(app)
    return apps.load_part(app, app.commands)


@click.group(
    cls=Root,
    params=global_options(),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="holdfast %(version)s", help="Show the version.")
def root() -> None:
    """Run expensive multi-step jobs once: every step checkpointed, whatever crashes.

    \b
    Examples:
      holdfast report build comments.csv -o out
      holdfast --app pipelines.py run orders --input number:=7
      holdfast worker --concurrency 8
      holdfast runs show 06f3z
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.exit(root.main(args=words, prog_name="holdfast", standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort as error:
        interrupted = isinstance(error.__cause__, KeyboardInterrupt)
        sys.exit(ExitCode.INTERRUPTED if interrupted else ExitCode.NOT_YET)
    except Exception as error:
        if "--debug" in words:
            raise
        click.echo(f"holdfast: {_explained(error)}", err=True)
        sys.exit(code_for(error))


def _explained(error: Exception) -> str:
    """What happened, in one line that ends with what to do; below it what has to be shown as it is
    stands in lines of its own, indented."""
    if isinstance(error, HoldfastError):
        message = str(error)
        return message if "\n  " in message else " ".join(message.split())
    if isinstance(error, UnicodeEncodeError):
        return f"{error.object!r:.100} is no text: give it in the encoding of the terminal"
    if isinstance(error, PermissionError):
        return f"permission denied: {error.filename or error}"
    return (
        f"unexpected {type(error).__name__}: {error} (--debug shows where it happened; please "
        "report it)"
    )
