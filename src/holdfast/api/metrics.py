"""`GET /metrics`: what Prometheus reads. For administrators: it names all tenants and lanes."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from holdfast.api.access import Admin
from holdfast.api.problems import Problem

router = APIRouter(tags=["metrics"])

TYPE = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/metrics", response_class=Response, include_in_schema=False)
async def metrics(access: Admin) -> Response:
    """The figures of this process, and those of the cluster from one process of all."""
    export = access.holdfast.metrics_export
    if export is None:
        raise Problem(404, "not-found", "nothing is counted here: pip install 'holdfast[metrics]'")
    return Response(await export.text(), media_type=TYPE)
