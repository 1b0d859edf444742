"""`holdfast tenants keys`: the API keys of tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.commands import DURATION, CommandGroup, session_of, yes_option
from holdfast.cli.prompts import confirm
from holdfast.cli.session import Session, wait_for

if TYPE_CHECKING:
    from holdfast.services.api_keys import IssuedKey

SCOPES = ("submit", "read", "operate", "admin")


@click.group(cls=CommandGroup)
def keys() -> None:
    """API keys: create, list, rotate, revoke."""


@keys.command()
@click.argument("tenant", default="default")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    help="What it may do; repeatable. Without: submit and read.",
)
@click.option("--name", metavar="TEXT", default="", help="What it is for.")
@click.option("--expires", type=DURATION, help="How long it works, for example 90d.")
@click.option("--first", is_flag=True, help="The first key of an installation, with scope admin.")
@session_of
def create(
    session: Session,
    tenant: str,
    scopes: tuple[str, ...],
    name: str,
    expires: float | None,
    first: bool,
) -> None:
    """Create a key of a tenant and print it: it is shown only once, and stored as a digest.

    \b
    Examples:
      holdfast tenants keys create --first
      holdfast tenants keys create acme --scope submit --scope read --expires 90d
    """
    if first and (scopes or name or expires is not None or tenant != "default"):
        raise click.UsageError(
            "--first makes the admin key of tenant 'default': leave the other options out"
        )
    wait_for(_create(session, tenant, list(scopes or ("submit", "read")), name, expires, first))


async def _create(
    session: Session,
    tenant: str,
    scopes: list[str],
    name: str,
    expires: float | None,
    first: bool,
) -> None:
    async with session.service(create=True) as service:
        if first:
            issued = await service.keys.create_first()
        else:
            issued = await service.keys.create(tenant, scopes, name=name, lifetime=expires)
    _print(session, issued)


def _print(session: Session, issued: IssuedKey) -> None:
    if session.out.for_people:
        scopes = ", ".join(issued.key.scopes)
        session.out.note(f"key {issued.key.id} of tenant {issued.key.tenant}, scopes: {scopes}")
        session.out.note("keep it now, it can't be shown again:")
        session.out.line(issued.text)
    else:
        session.out.json(issued)


@keys.command("list")
@click.argument("tenant", required=False)
@session_of
def list_(session: Session, tenant: str | None) -> None:
    """List keys with scopes, state and last use (to the minute); those of one tenant if it is
    named.

    \b
    Example:
      holdfast tenants keys list acme
    """
    wait_for(_list(session, tenant))


async def _list(session: Session, tenant: str | None) -> None:
    from holdfast.cli.render.tenants import key_table

    async with session.service() as service:
        items = await service.keys.list(tenant)
    session.out.items(items, lambda: key_table(items))


@keys.command()
@click.argument("id")
@click.option(
    "--overlap",
    type=DURATION,
    default="24h",
    show_default=True,
    help="How long the old key still works.",
)
@session_of
def rotate(session: Session, id: str, overlap: float) -> None:
    """Create a new key with the scopes of an old one, and print it. The old key expires later.

    \b
    Example:
      holdfast tenants keys rotate 0a1b2c3d4e5f --overlap 1h
    """
    wait_for(_rotate(session, id, overlap))


async def _rotate(session: Session, id: str, overlap: float) -> None:
    async with session.service() as service:
        issued = await service.keys.rotate(id, overlap=overlap)
    _print(session, issued)


@keys.command()
@click.argument("id")
@click.option("--reason", metavar="TEXT", default="", help="Why; kept in the audit log.")
@yes_option()
@session_of
def revoke(session: Session, id: str, reason: str, yes: bool) -> None:
    """Refuse a key from now on, in every process within 5 seconds.

    \b
    Example:
      holdfast tenants keys revoke 0a1b2c3d4e5f --reason "was in a log"
    """
    confirm(session, f"Revoke key {id!r}?", yes=yes)
    wait_for(_revoke(session, id, reason))


async def _revoke(session: Session, id: str, reason: str) -> None:
    async with session.service() as service:
        key = await service.keys.revoke(id, reason=reason)
    if session.out.for_people:
        session.out.line(f"key {key.id} of tenant {key.tenant} is revoked")
    else:
        session.out.json(key)
