"""What the commands are built from: global options on every one of them, and a few types of
arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from holdfast.cli.session import Session
from holdfast.errors import ConfigurationError
from holdfast.model.duration import seconds


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Global options may stand before or after the command; the later one wins."""
    session = ctx.find_root().ensure_object(Session)
    if param.name and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE:
        session.remember(param.name, value)


def _global(*names: str, **settings: Any) -> click.Option:
    return click.Option(names, expose_value=False, callback=_remember, **settings)


def global_options() -> list[click.Parameter]:
    return [
        _global(
            "--store", metavar="URL", help="Where runs live, for example sqlite:///holdfast.db."
        ),
        _global(
            "--url",
            metavar="URL",
            help="Ask this service (with HOLDFAST_API_KEY) instead of opening a store.",
        ),
        _global("--local", is_flag=True, help="Open the store, whatever HOLDFAST_URL says."),
        _global(
            "--app",
            metavar="WHERE",
            multiple=True,
            help="Where to find pipelines: module:attribute or file.py:attribute. Repeatable.",
        ),
        _global(
            "--profile",
            metavar="NAME",
            help="Use [profiles.NAME] of the settings files, which overrides the rest.",
        ),
        _global("--json", is_flag=True, help="Print JSON; the same as -o json."),
        _global(
            "-o",
            "--output",
            type=click.Choice(["table", "json", "jsonl"]),
            help="How data is printed.",
        ),
        _global(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            help="Whether to use colours.",
        ),
        _global("--no-input", is_flag=True, help="Never ask; fail instead."),
        _global("--debug", is_flag=True, help="Show the traceback of an error."),
    ]


class CliCommand(click.Command):
    """A command with its own options first and the global ones after them, except where it uses a
    name itself. `local` says why no service can do it; such a command refuses `--url`."""

    def __init__(self, *args: Any, local: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.local = local
        self._own = len(self.params)
        taken = {name for param in self.params for name in param.opts}
        self.params += [
            option for option in global_options() if not taken.intersection(option.opts)
        ]

    def invoke(self, ctx: click.Context) -> Any:
        session = ctx.find_root().ensure_object(Session)
        if self.local and session.flags.get("url"):
            raise ConfigurationError(f"{self.local}: leave out --url")
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = [*self.params[: self._own], self.get_help_option(ctx)]
        write_options(own, "Options", ctx, formatter)
        write_options(self.params[self._own :], "Global options", ctx, formatter)


def write_options(
    params: list[Any], title: str, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    options = [param for param in params if isinstance(param, click.Option)]
    records = [record for option in options if (record := option.get_help_record(ctx))]
    if records:
        with formatter.section(title):
            formatter.write_dl(records)


class CommandGroup(click.Group):
    """A noun; its verbs are commands with global options."""

    command_class = CliCommand


class Duration(click.ParamType[float]):
    """`90s`, `30m`, `1h30m`; gives seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return seconds(value)
        except ConfigurationError as error:
            self.fail(str(error), param, ctx)


DURATION = Duration()
STATES = click.Choice(["queued", "running", "paused", "succeeded", "failed", "cancelled"])

session_of = click.make_pass_decorator(Session)

_Decorator = Callable[[Any], Any]


def run_argument(name: str = "run", **settings: Any) -> _Decorator:
    """A run's id, the start of it, or its idempotency key; completed by the shell."""
    from holdfast.cli.completion_values import run_ids

    return click.argument(
        name, metavar="RUN…" if "nargs" in settings else "RUN", shell_complete=run_ids, **settings
    )


def pipeline_argument() -> _Decorator:
    from holdfast.cli.completion_values import pipeline_names

    return click.argument("pipeline", shell_complete=pipeline_names)


def yes_option() -> _Decorator:
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def limit_option() -> _Decorator:
    return click.option(
        "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many."
    )


def cursor_option() -> _Decorator:
    return click.option(
        "--cursor", metavar="CURSOR", help="Continue after a page: its next_cursor."
    )
