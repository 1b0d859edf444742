"""The compute queue: one leader, strict order, five phases, each optional and safe to repeat.

HOLDFAST_APP=examples/compute/app.py:app holdfast worker
"""

from __future__ import annotations

from compute_files import Files, api_files, devops_files, frontend_files
from compute_job import ComputeJob, QueueSettings
from compute_workspace import Workspace
from pydantic import BaseModel

from holdfast import BlockingContext, Holdfast, Lane, Pipeline, Retry

QUEUE = "computeGenerationQueue"
settings = QueueSettings.from_environment()
retries = {
    "max_attempts": settings.max_attempts,
    "retry": Retry(base=settings.retry_delay, maximum=settings.timeout),
}


class Deployment(BaseModel):
    """What became of an instance."""

    instance_id: str
    files: list[str]
    commit: str | None
    host: str | None


def job_labels(job: ComputeJob) -> dict[str, str]:
    return job.labels


def job_key(job: ComputeJob) -> str:
    return job.instance_id


compute = Pipeline(
    "compute",
    input=ComputeJob,
    lane=Lane(QUEUE, order="fifo"),
    key=job_key,
    labels=job_labels,
    max_attempts=settings.max_attempts,
    timeout=settings.timeout,
    result="RESULT",
)


@compute.step(name="API_GENERATION", when=lambda input: input.generate_api_flag, **retries)
async def api_generation(input: ComputeJob) -> Files:
    return api_files(input)


@compute.step(
    name="FRONTEND_GENERATION", when=lambda input: input.generate_frontend_flag, **retries
)
async def frontend_generation(input: ComputeJob, API_GENERATION: Files | None) -> Files:
    return frontend_files(input)


@compute.step(name="DEVOPS_GENERATION", when=lambda input: input.generate_dev_ops_flag, **retries)
async def devops_generation(input: ComputeJob, FRONTEND_GENERATION: Files | None) -> Files:
    return devops_files(input)


@compute.step(name="GIT_OPERATIONS", when=lambda input: input.git_operations_flag, **retries)
def git_operations(
    input: ComputeJob,
    API_GENERATION: Files | None,
    FRONTEND_GENERATION: Files | None,
    DEVOPS_GENERATION: Files | None,
    ctx: BlockingContext,
) -> str:
    """The commit of this instance. Its files are there as a whole, or not at all."""
    files = {**(API_GENERATION or {}), **(FRONTEND_GENERATION or {}), **(DEVOPS_GENERATION or {})}
    return ctx.use(Workspace).commit(input.microservice_id, input.instance_id, files)


@compute.step(name="DNS_UPDATE", when=lambda input: input.dns_update_flag, **retries)
def dns_update(input: ComputeJob, GIT_OPERATIONS: str | None, ctx: BlockingContext) -> str:
    target = f"{input.microservice_id}-{(GIT_OPERATIONS or 'none')[:7]}.pods.example.internal."
    return ctx.use(Workspace).point(input.microservice_id, target)


@compute.step(name="RESULT")
async def result(
    input: ComputeJob,
    API_GENERATION: Files | None,
    FRONTEND_GENERATION: Files | None,
    DEVOPS_GENERATION: Files | None,
    GIT_OPERATIONS: str | None,
    DNS_UPDATE: str | None,
) -> Deployment:
    generated = (API_GENERATION, FRONTEND_GENERATION, DEVOPS_GENERATION)
    files = sorted(path for part in generated for path in part or {})
    return Deployment(
        instance_id=input.instance_id, files=files, commit=GIT_OPERATIONS, host=DNS_UPDATE
    )


app = Holdfast(pipelines=[compute], provide={Workspace: Workspace(settings.workspace)})
