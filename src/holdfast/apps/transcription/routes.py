"""Jobs over HTTP, as the earlier service took them.

POST /jobs  {youtubeUrl, idempotencyKey?, transcriptionContext?}  202 {jobId, requestId}

400 says what is wrong with the request, 409 that the key belongs to another one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from hashlib import sha256
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter
from fastapi.routing import APIRoute
from msgspec import UNSET as ABSENT
from msgspec import Meta, Struct, UnsetType, structs
from starlette.requests import Request
from starlette.responses import Response

from holdfast.api.access import Submitter
from holdfast.api.answers import answer
from holdfast.api.bodies import body_of
from holdfast.api.documentation import documented
from holdfast.api.problems import Problem, from_error
from holdfast.errors import InvalidInput, KeyReused
from holdfast.services.service import Submission

PIPELINE = "metadata"
"""The first stage; it hands the job over to the second."""


class EarlierStatus(APIRoute):
    """The earlier service's clients know 400 and 409 where `/v1` says 422."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except KeyReused as error:
                raise _with_status(from_error(error), 409) from error
            except InvalidInput as error:
                raise _with_status(from_error(error), 400) from error
            except Problem as problem:
                if problem.status != 422:
                    raise
                raise _with_status(problem, 400) from problem

        return handle


def _with_status(problem: Problem, status: int) -> Problem:
    problem.status = status
    problem.document = structs.replace(problem.document, status=status)
    return problem


router = APIRouter(tags=["jobs"], route_class=EarlierStatus)

Text = Annotated[str, Meta(min_length=1, max_length=2000)]


class TranscriptionRequest(Struct, rename="camel"):
    """The same `idempotencyKey` with the same recording is the same job."""

    youtube_url: Text
    idempotency_key: Text | None = None
    transcription_context: dict[str, Any] | UnsetType = ABSENT


class TranscriptionAccepted(Struct, rename="camel"):
    job_id: str
    request_id: str


@router.post(
    "/jobs",
    **documented(
        TranscriptionAccepted,
        status=202,
        description="The job is durable.",
        body=TranscriptionRequest,
    ),
)
async def create_job(
    request: Request,
    access: Submitter,
    body: Annotated[TranscriptionRequest, body_of(TranscriptionRequest)],
) -> Response:
    """Accept a recording: its metadata is fetched, then it is transcribed."""
    name = _name(access.tenant, body)
    job: dict[str, Any] = {
        "id": f"job_{name}",
        "requestId": f"req_{name}",
        "media": {"url": body.youtube_url},
    }
    if body.idempotency_key is not None:
        job["idempotencyKey"] = body.idempotency_key
    if body.transcription_context is not ABSENT:
        job["transcriptionContext"] = body.transcription_context
    accepted = await access.service.runs.submit(PIPELINE, job, about=Submission())
    location = f"{request.scope.get('root_path', '')}/v1/runs/{accepted.run.id}"
    return answer(
        TranscriptionAccepted(job["id"], job["requestId"]),
        status=202,
        headers={"Location": location},
    )


def _name(tenant: str, body: TranscriptionRequest) -> str:
    """What both ids end with: random, or made of the key and the recording."""
    if body.idempotency_key is None:
        return str(uuid4())
    made_of = [tenant, body.idempotency_key, body.youtube_url]
    return sha256(chr(0).join(made_of).encode(errors="replace")).hexdigest()[:32]
