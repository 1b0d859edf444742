"""`holdfast webhooks`: who is told what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.commands import CommandGroup, session_of, yes_option
from holdfast.cli.exits import ExitCode
from holdfast.cli.prompts import confirm
from holdfast.cli.session import Session, wait_for

if TYPE_CHECKING:
    from holdfast.services.webhooks import WebhookView


@click.group(cls=CommandGroup)
def command() -> None:
    """Webhooks: endpoints, and what was delivered to them."""


@command.command()
@click.argument("endpoint", metavar="URL")
@click.option(
    "--event", "events", multiple=True, metavar="TYPE", help="Only of these events. Repeatable."
)
@click.option(
    "--tenant",
    metavar="NAME",
    help="Only of this tenant's runs. Default: of all that the API key may see, or of all.",
)
@session_of
def add(session: Session, endpoint: str, events: tuple[str, ...], tenant: str | None) -> None:
    """Deliver events to an endpoint from now on. The secret that signs its deliveries is printed
    once. Needs HOLDFAST_WEBHOOKS_KEY, here or at the service that --url names.

    \b
    Examples:
      holdfast webhooks add https://example.org/hooks
      holdfast webhooks add https://example.org/hooks --event run.completed --event run.failed
    """
    wait_for(_add(session, endpoint, events, tenant))


async def _add(session: Session, url: str, events: tuple[str, ...], tenant: str | None) -> None:
    async with session.service(tenant=tenant) as service:
        view = await service.webhooks.add(url, events=events)
    _show_secret(session, view, f"{view.id} is told from now on; its secret, shown only now:")


@command.command("list")
@session_of
def list_(session: Session) -> None:
    """List endpoints.

    \b
    Example:
      holdfast webhooks list
    """
    wait_for(_list(session))


async def _list(session: Session) -> None:
    from holdfast.cli.render.webhooks import webhook_table

    async with session.service() as service:
        items = await service.webhooks.list()
    session.out.items(items, lambda: webhook_table(items))


@command.command()
@click.argument("webhook")
@yes_option()
@session_of
def remove(session: Session, webhook: str, yes: bool) -> None:
    """Remove an endpoint, and the log of its deliveries.

    \b
    Example:
      holdfast webhooks remove wh-3f9a0c1d2e4b
    """
    confirm(session, f"Forget webhook {webhook} and its deliveries?", yes=yes)
    wait_for(_remove(session, webhook))


async def _remove(session: Session, webhook: str) -> None:
    async with session.service() as service:
        await service.webhooks.remove(webhook)
    if session.out.for_people:
        session.out.line(f"{webhook} removed")
    else:
        session.out.json({"webhook": webhook, "removed": True})


@command.command()
@click.argument("webhook")
@session_of
def rotate(session: Session, webhook: str) -> None:
    """Create a new secret. For a day deliveries are signed with the old one, too.

    \b
    Example:
      holdfast webhooks rotate wh-3f9a0c1d2e4b
    """
    wait_for(_rotate(session, webhook))


async def _rotate(session: Session, webhook: str) -> None:
    async with session.service() as service:
        view = await service.webhooks.rotate(webhook)
    _show_secret(session, view, f"the new secret of {view.id}, shown only now:")


@command.command()
@click.argument("webhook")
@session_of
def enable(session: Session, webhook: str) -> None:
    """Deliver again to an endpoint that had answered 410.

    \b
    Example:
      holdfast webhooks enable wh-3f9a0c1d2e4b
    """
    wait_for(_enable(session, webhook))


async def _enable(session: Session, webhook: str) -> None:
    async with session.service() as service:
        view = await service.webhooks.enable(webhook)
    if session.out.for_people:
        session.out.line(f"{webhook} is told from now on")
    else:
        session.out.json(view)


@command.command()
@click.argument("webhook")
@click.option(
    "--state",
    type=click.Choice(["waiting", "delivered", "failed"]),
    help="Only deliveries that wait for another try, succeeded, or failed for good.",
)
@session_of
def deliveries(session: Session, webhook: str, state: str | None) -> None:
    """Show the deliveries to an endpoint in the last seven days, with its answers.

    \b
    Example:
      holdfast webhooks deliveries wh-3f9a0c1d2e4b --state failed
    """
    wait_for(_deliveries(session, webhook, state))


async def _deliveries(session: Session, webhook: str, state: str | None) -> None:
    from holdfast.cli.render.webhooks import delivery_table

    async with session.service() as service:
        items = await service.webhooks.deliveries(webhook, state=state)
    session.out.items(items, lambda: delivery_table(items))


@command.command()
@click.argument("webhook")
@click.argument("event")
@session_of
def replay(session: Session, webhook: str, event: str) -> None:
    """Deliver an event once more: the same id, the same bytes. A worker sends it within seconds.

    \b
    Example:
      holdfast webhooks replay wh-3f9a0c1d2e4b 01hf7yc1bb:4
    """
    wait_for(_replay(session, webhook, event))


async def _replay(session: Session, webhook: str, event: str) -> None:
    async with session.service() as service:
        view = await service.webhooks.replay(webhook, event)
    if session.out.for_people:
        session.out.line(f"event {event} is sent to {webhook} again")
    else:
        session.out.json(view)


@command.command()
@click.argument("webhook")
@session_of
def test(session: Session, webhook: str) -> None:
    """Send a test event now and print the answer. Exit code 8 if it was not accepted.

    \b
    Example:
      holdfast webhooks test wh-3f9a0c1d2e4b
    """
    wait_for(_test(session, webhook))


async def _test(session: Session, webhook: str) -> None:
    async with session.service() as service:
        view = await service.webhooks.test(webhook)
    [attempt] = view.attempts
    if session.out.for_people:
        answer = attempt.error or f"it answered {attempt.status}"
        session.out.line(f"{view.state}: {answer}, after {attempt.duration_ms} ms")
    else:
        session.out.json(view)
    if view.state != "delivered":
        raise SystemExit(ExitCode.PROBLEMS)


def _show_secret(session: Session, view: WebhookView, text: str) -> None:
    if session.out.for_people:
        session.out.line(text)
        session.out.line(view.secret or "")
    else:
        session.out.json(view)
