"""`holdfast tenants`: who runs belong to, how much they may use, and their API keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from holdfast.cli.commands import CommandGroup, session_of, yes_option
from holdfast.cli.prompts import confirm
from holdfast.cli.session import Session, wait_for
from holdfast.cli.tenant_keys import keys

NO_LIMIT = "none"


class Quota(click.ParamType[Any]):
    """A whole number, or `none` for no limit."""

    name = "quota"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == NO_LIMIT or isinstance(value, int):
            return value
        if not value.isascii() or not value.isdigit():
            self.fail(f"{value!r} is neither a whole number nor {NO_LIMIT!r}", param, ctx)
        return int(value)


_QUOTAS = {
    "running": "Runs executed at once (5).",
    "per-minute": "Runs accepted in any 60 seconds (50).",
    "queued": "Runs that wait (1000).",
    "per-day": "Runs accepted in a day of UTC (none).",
    "per-month": "Runs accepted in a month of UTC (none).",
}


def quota_options(function: Callable[..., None]) -> Callable[..., None]:
    for name, help in reversed(_QUOTAS.items()):
        function = click.option(f"--{name}", type=Quota(), metavar="N|none", help=help)(function)
    return function


def _quotas(options: dict[str, Any]) -> dict[str, int | None]:
    """Those that were given."""
    quotas = {name: value for name, value in options.items() if value is not None}
    return {name: None if value == NO_LIMIT else value for name, value in quotas.items()}


@click.group(cls=CommandGroup)
def command() -> None:
    """Tenants: their quotas and API keys."""


command.add_command(keys)


@command.command()
@click.argument("name")
@quota_options
@session_of
def create(session: Session, name: str, **options: Any) -> None:
    """Create a tenant with quotas. Submissions above a quota are refused; runs above --running
    wait.

    \b
    Example:
      holdfast tenants create acme --running 10 --per-day none
    """
    wait_for(_create(session, name, options))


async def _create(session: Session, name: str, options: dict[str, Any]) -> None:
    from holdfast.cli.render.tenants import tenant_page
    from holdfast.model.tenant import Quotas

    async with session.service(create=True) as service:
        view = await service.tenants.create(name, Quotas(**_quotas(options)))
    session.out.value(view, lambda: tenant_page(view))


@command.command("list")
@session_of
def list_(session: Session) -> None:
    """List tenants with their quotas.

    \b
    Example:
      holdfast tenants list
    """
    wait_for(_list(session))


async def _list(session: Session) -> None:
    from holdfast.cli.render.tenants import tenant_table

    async with session.service() as service:
        items = await service.tenants.list()
    session.out.items(items, lambda: tenant_table(items))


@command.command()
@click.argument("name")
@session_of
def show(session: Session, name: str) -> None:
    """Show a tenant: its quotas, and what it uses of them now.

    \b
    Example:
      holdfast tenants show acme
    """
    wait_for(_show(session, name))


async def _show(session: Session, name: str) -> None:
    from holdfast.cli.render.tenants import tenant_page

    async with session.service() as service:
        view = await service.tenants.show(name)
    session.out.value(view, lambda: tenant_page(view))


@command.command("set")
@click.argument("name")
@quota_options
@click.option("--enable/--disable", default=None, help="Whether it may submit and use its keys.")
@session_of
def set_(session: Session, name: str, enable: bool | None, **options: Any) -> None:
    """Change a tenant's quotas, or disable it. Accepted runs go on.

    \b
    Examples:
      holdfast tenants set acme --per-minute 200
      holdfast tenants set acme --disable
    """
    wait_for(_set(session, name, enable, options))


async def _set(session: Session, name: str, enable: bool | None, options: dict[str, Any]) -> None:
    from holdfast.cli.render.tenants import tenant_page

    async with session.service() as service:
        view = await service.tenants.set(name, enabled=enable, quotas=_quotas(options))
    session.out.value(view, lambda: tenant_page(view))


@command.command()
@click.argument("name")
@click.option("--reason", metavar="TEXT", default="", help="Why; kept in the audit log.")
@yes_option()
@session_of
def delete(session: Session, name: str, reason: str, yes: bool) -> None:
    """Delete a tenant that has no live runs, and revoke its keys. Its finished runs stay until
    retention deletes them.

    \b
    Example:
      holdfast tenants delete acme --reason "contract ended"
    """
    confirm(session, f"Delete tenant {name!r} and revoke its keys?", yes=yes, typed=name)
    wait_for(_delete(session, name, reason))


async def _delete(session: Session, name: str, reason: str) -> None:
    async with session.service() as service:
        await service.tenants.delete(name, reason=reason)
    if session.out.for_people:
        session.out.line(f"tenant {name} is deleted")
    else:
        session.out.json({"tenant": name, "deleted": True})
