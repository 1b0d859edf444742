"""Webhooks and their deliveries."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from holdfast.cli.render.tables import Cell, empty, table
from holdfast.services.webhooks import DeliveryView, WebhookView

STYLES = {"delivered": "green", "waiting": "yellow", "failed": "red"}


def webhook_table(items: Sequence[WebhookView]) -> RenderableType:
    if not items:
        return empty("webhooks", "`holdfast webhooks add URL` adds one")
    headings = ("WEBHOOK", "TENANT", "EVENTS", "STATE", "URL")
    return table(headings, map(_webhook, items), whole=("WEBHOOK",), free="URL")


def _webhook(webhook: WebhookView) -> list[Cell]:
    state = Text("disabled", style="red") if webhook.disabled else Text("on", style="green")
    events = ", ".join(webhook.events) or "all"
    return [webhook.id, webhook.tenant or "all", events, state, webhook.url]


def delivery_table(items: Sequence[DeliveryView]) -> RenderableType:
    if not items:
        return empty("deliveries", "nothing has happened since the webhook was added")
    headings = ("EVENT", "TYPE", "STATE", "TRIES", "LAST ANSWER")
    return table(
        headings, map(_delivery, items), right=("TRIES",), whole=("EVENT",), free="LAST ANSWER"
    )


def _delivery(delivery: DeliveryView) -> list[Cell]:
    last = delivery.attempts[-1] if delivery.attempts else None
    answer = "" if last is None else last.error or str(last.status)
    state = Text(delivery.state, style=STYLES[delivery.state])
    return [delivery.event, delivery.type, state, str(len(delivery.attempts)), answer]
