"""The artifacts of a run: files that its steps have stored, each named by step, epoch and
digest."""

from __future__ import annotations

import re

from msgspec import Struct

from holdfast.engine.payloads import Payloads
from holdfast.errors import NotFound
from holdfast.model.names import path_part
from holdfast.model.run import Run

_ARTIFACT = re.compile(r"(?P<step>[^/]+)/(?P<epoch>\d+)/(?P<digest>[0-9a-f]{32})-(?P<name>[^/]+)")


class ArtifactView(Struct):
    """`id` names it among the artifacts of its run."""

    id: str
    name: str
    step: str
    epoch: int


async def list_artifacts(payloads: Payloads, run: Run) -> list[ArtifactView]:
    """Also those of attempts whose result was not kept: the results name what counts."""
    folder = _folder(run)
    keys = await payloads.list(folder)
    views = [_view(key.removeprefix(folder)) for key in keys]
    return [view for view in views if view is not None]


async def read_artifact(payloads: Payloads, run: Run, id: str) -> bytes:
    data = await payloads.get(_folder(run) + id) if _ARTIFACT.fullmatch(id) else None
    if data is None:
        raise NotFound(f"run {run.id} has no artifact {id!r:.200}")
    return data


def _folder(run: Run) -> str:
    return f"{path_part(run.tenant)}/{run.id}/"


def _view(id: str) -> ArtifactView | None:
    """None for what is no artifact: large inputs and results lie beside them."""
    parts = _ARTIFACT.fullmatch(id)
    return parts and ArtifactView(id, parts["name"], parts["step"], int(parts["epoch"]))
