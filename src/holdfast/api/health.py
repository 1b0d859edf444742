"""`/health` and its relatives: for load balancers, Cloud Run and Kubernetes. No key is needed."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.api.answers import answer
from holdfast.api.documentation import documented, schema
from holdfast.services.health import Health, HealthView, ReadinessView

router = APIRouter(tags=["health"])


def unready(shape: Any) -> dict[int | str, dict[str, Any]]:
    content = {"application/json": {"schema": schema(shape)}}
    return {503: {"description": "Not yet, or not any more.", "content": content}}


def _health(request: Request) -> Health:
    return request.app.state.health


@router.get("/", include_in_schema=False)
async def root(request: Request) -> Response:
    """Health for machines; people with a browser are shown what can be asked here."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(f"{request.scope.get('root_path', '')}/docs")
    return answer(_health(request).view())


@router.get("/healthz", include_in_schema=False)
@router.get("/health", **documented(HealthView, description="The process is alive."))
async def health(request: Request) -> Response:
    """Status (`starting`, `ok`, `draining`), runs under way, uptime."""
    return answer(_health(request).view())


@router.get("/livez", include_in_schema=False)
@router.get("/health/live", **documented(HealthView, description="The process is alive."))
async def live(request: Request) -> Response:
    """Whether the process answers. It asks nobody else: a store that is away is no reason to
    restart it."""
    return answer(_health(request).view())


@router.get("/readyz", include_in_schema=False)
@router.get(
    "/health/ready",
    **documented(ReadinessView, description="Work may be sent here.", more=unready(ReadinessView)),
)
async def ready(request: Request) -> Response:
    """Whether the store answers, leases are renewed in time, and the process is not draining."""
    view = await _health(request).readiness()
    return answer(view, status=200 if view.ready else 503)


@router.get(
    "/health/startup",
    **documented(HealthView, description="The process has started.", more=unready(HealthView)),
)
async def startup(request: Request) -> Response:
    """Whether the process has started."""
    view = _health(request).view()
    return answer(view, status=503 if view.status == "starting" else 200)
