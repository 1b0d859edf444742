"""Pipelines: what can be submitted, and what it takes."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter
from starlette.responses import Response

from holdfast.api.access import Reader
from holdfast.api.answers import answer
from holdfast.api.documentation import documented
from holdfast.services.catalogue import PipelineView, as_mermaid
from holdfast.services.service import Page

router = APIRouter(tags=["pipelines"])


@router.get("/v1/pipelines", **documented(Page[PipelineView], description="All of them."))
async def list_pipelines(access: Reader) -> Response:
    """The pipelines that are registered here, with their steps, lane and limits."""
    return answer(Page(await access.service.pipelines.list()))


@router.get("/v1/pipelines/{pipeline}", **documented(PipelineView, description="The pipeline."))
async def show_pipeline(pipeline: str, access: Reader) -> Response:
    """A pipeline: which step waits for which."""
    return answer(await access.service.pipelines.show(pipeline))


@router.get(
    "/v1/pipelines/{pipeline}/schema",
    **documented(dict[str, Any], description="A JSON Schema."),
)
async def pipeline_schema(
    pipeline: str, access: Reader, of: Literal["input", "result"] = "input"
) -> Response:
    """What a pipeline takes, or what it answers."""
    schema = await access.service.pipelines.schema(pipeline, result=of == "result")
    return answer(schema)


@router.get(
    "/v1/pipelines/{pipeline}/graph",
    **documented("text/plain", description="A flowchart for Mermaid."),
)
async def pipeline_graph(pipeline: str, access: Reader) -> Response:
    """Which step waits for which, as a Mermaid flowchart."""
    view = await access.service.pipelines.show(pipeline)
    return Response(as_mermaid(view), media_type="text/plain")
