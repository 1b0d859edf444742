"""Webhooks of the caller's tenant: who is told what happens, and what was delivered."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from starlette.responses import Response

from holdfast.api.access import Operator, Reader
from holdfast.api.answers import answer
from holdfast.api.bodies import body_of
from holdfast.api.documentation import documented
from holdfast.api.shapes import WebhookRequest
from holdfast.services.service import Page
from holdfast.services.webhooks import DeliveryView, WebhookView

router = APIRouter(tags=["webhooks"])

SECRET = {"Cache-Control": "no-store"}


@router.post(
    "/v1/webhooks",
    **documented(
        WebhookView, status=201, description="Its secret is shown only now.", body=WebhookRequest
    ),
)
async def add_webhook(
    access: Operator, body: Annotated[WebhookRequest, body_of(WebhookRequest)]
) -> Response:
    """Tell an endpoint what happens from now on to the tenant's runs; for an administrator with
    `Holdfast-Tenant: *`, to everybody's."""
    view = await access.service.webhooks.add(body.url, events=body.events)
    return answer(view, status=201, headers=SECRET)


@router.get("/v1/webhooks", **documented(Page[WebhookView], description="All of them."))
async def list_webhooks(access: Reader) -> Response:
    """The endpoints, without their secrets."""
    return answer(Page(await access.service.webhooks.list()))


@router.delete("/v1/webhooks/{webhook}", **documented(status=204, description="It is forgotten."))
async def remove_webhook(webhook: str, access: Operator) -> Response:
    """Forget an endpoint, and what was delivered to it."""
    await access.service.webhooks.remove(webhook)
    return Response(status_code=204)


@router.post(
    "/v1/webhooks/{webhook}/rotate",
    **documented(WebhookView, description="The new secret is shown only now."),
)
async def rotate_webhook(webhook: str, access: Operator) -> Response:
    """Make a new secret. For a day deliveries are signed with the old one, too."""
    return answer(await access.service.webhooks.rotate(webhook), headers=SECRET)


@router.post("/v1/webhooks/{webhook}/enable", **documented(WebhookView, description="It is on."))
async def enable_webhook(webhook: str, access: Operator) -> Response:
    """Deliver again to an endpoint that had answered 410."""
    return answer(await access.service.webhooks.enable(webhook))


@router.post(
    "/v1/webhooks/{webhook}/test", **documented(DeliveryView, description="What came back.")
)
async def test_webhook(webhook: str, access: Operator) -> Response:
    """Send a test event now."""
    return answer(await access.service.webhooks.test(webhook))


@router.get(
    "/v1/webhooks/{webhook}/deliveries",
    **documented(Page[DeliveryView], description="Those of the last seven days."),
)
async def list_deliveries(
    webhook: str,
    access: Reader,
    state: Literal["waiting", "delivered", "failed"] | None = None,
) -> Response:
    """What was sent to an endpoint, with every try and its answer."""
    return answer(Page(await access.service.webhooks.deliveries(webhook, state=state)))


@router.post(
    "/v1/webhooks/{webhook}/deliveries/{event}/replay",
    **documented(DeliveryView, description="It waits for a worker, which sends it in seconds."),
)
async def replay_delivery(webhook: str, event: str, access: Operator) -> Response:
    """Deliver an event once more: the same id, the same bytes."""
    return answer(await access.service.webhooks.replay(webhook, event))
