"""The pipelines that are registered in this process."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from holdfast.errors import UnknownPipeline
from holdfast.model.pipeline import Pipeline
from holdfast.services.catalogue import PipelineView, pipeline_view


class LocalPipelines:
    """`origins` says where each was found, `remedy` what to do about one that is not there."""

    def __init__(
        self,
        pipelines: Mapping[str, Pipeline[Any]],
        origins: Mapping[str, str],
        remedy: str = "",
    ) -> None:
        self._pipelines = pipelines
        self._origins = origins
        self._remedy = remedy

    async def list(self) -> list[PipelineView]:
        return [self._view(pipeline) for pipeline in self._pipelines.values()]

    async def show(self, name: str) -> PipelineView:
        return self._view(self.find(name))

    async def schema(self, name: str, *, result: bool = False) -> Mapping[str, Any]:
        pipeline = self.find(name)
        return (pipeline.result_step.result if result else pipeline.input).json_schema()

    def find(self, name: str) -> Pipeline[Any]:
        """Raises UnknownPipeline with the nearest one."""
        if name in self._pipelines:
            return self._pipelines[name]
        close = get_close_matches(name, self._pipelines, n=1)
        known = ", ".join(self._pipelines) or "none"
        hint = f"did you mean {close[0]!r}?" if close else f"known: {known}"
        raise UnknownPipeline(f"there is no pipeline {name!r:.80}; {hint}{self._remedy}")

    def _view(self, pipeline: Pipeline[Any]) -> PipelineView:
        return pipeline_view(pipeline, self._origins.get(pipeline.name, ""))
