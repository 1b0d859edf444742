"""Running the work of an old run again, as a new run linked to it."""

from __future__ import annotations

from typing import Any

from holdfast.engine.handle import RunHandle
from holdfast.engine.intake import Intake
from holdfast.engine.payloads import REFERENCE
from holdfast.engine.runtime import Runtime
from holdfast.engine.submission import Draft, SubmitOptions
from holdfast.engine.submitter import with_submitter
from holdfast.errors import Damaged, NotFound
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.names import path_part
from holdfast.model.pipeline import Pipeline
from holdfast.model.run import Run


async def rerun(
    runtime: Runtime, pipeline: Pipeline[Any], run: Run, *, from_step: str | None = None
) -> RunHandle:
    """The same input as a new run. With `from_step`, results of steps that do not depend on it are
    taken over."""
    intake = Intake(runtime)
    draft = Draft(await runtime.payloads.input_of(run), None, run.labels)
    run_id = intake.new_id()
    checkpoints: list[Checkpoint] = []
    if from_step is not None:
        checkpoints = await _copies(runtime, run, _downstream(pipeline, from_step), run_id)
    options = SubmitOptions(tenant=run.tenant, attributes=with_submitter({}))
    stored = await intake.stored_input(run_id, run.tenant, draft.text)
    command = draft.command(
        run_id, pipeline, stored, options, parent=run.id, checkpoints=checkpoints
    )
    return await intake.accept(pipeline, command)


def _downstream(pipeline: Pipeline[Any], step: str) -> set[str]:
    """A step and all that depend on it."""
    if step not in pipeline.steps:
        raise NotFound(
            f"pipeline {pipeline.name!r} has no step {step!r}; its steps: "
            f"{', '.join(pipeline.steps)}"
        )
    dependents = {step}
    for name, other in pipeline.steps.items():  # declared in dependency order
        if dependents & (other.waits_for | set(other.streams)):
            dependents.add(name)
    return dependents


async def _copies(runtime: Runtime, run: Run, redone: set[str], run_id: str) -> list[Checkpoint]:
    """The sound results of all other steps, for the new run."""
    stored = await runtime.store.checkpoints(run.id)
    copies = [await _copy(runtime, c, run, run_id) for c in stored if c.step not in redone]
    return [copy for copy in copies if copy is not None]


async def _copy(
    runtime: Runtime, checkpoint: Checkpoint, run: Run, run_id: str
) -> Checkpoint | None:
    """Blobs belong to one run and are deleted with it, so the new run gets its own. None: it is
    damaged."""
    if checkpoint.value.startswith(REFERENCE):
        try:
            text = await runtime.payloads.result(checkpoint)
        except Damaged:
            return None
        folder = f"{path_part(run.tenant)}/{run_id}/{checkpoint.step}/0"
        checkpoint.value = await runtime.payloads.offload(text, folder)
    return checkpoint
