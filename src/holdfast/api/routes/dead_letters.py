"""Dead letters: messages and runs that could not go on."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import AwareDatetime
from starlette.requests import Request
from starlette.responses import Response

from holdfast.api.access import Operator, Reader
from holdfast.api.answers import answer, page_answer
from holdfast.api.bodies import body_of
from holdfast.api.documentation import documented
from holdfast.api.routes.runs import Limit
from holdfast.api.shapes import Reason
from holdfast.services.service import ClosedLetter, Page
from holdfast.services.views import DeadLetterPage, DeadLetterView

router = APIRouter(tags=["dead letters"])


@router.get("/v1/dead-letters", **documented(Page[DeadLetterView], description="A page of them."))
async def list_dead_letters(
    request: Request,
    access: Reader,
    limit: Limit = 50,
    cursor: str | None = None,
    pipeline: str | None = None,
    since: AwareDatetime | None = None,
    all: bool = False,
) -> Response:
    """Open dead letters, newest first; with `all` also those that were redriven or discarded."""
    page = await access.service.dead_letters.list(
        pipeline=pipeline, since=since, all=all, limit=limit, cursor=cursor
    )
    return page_answer(request, page)


@router.get("/v1/dead-letters/{id:path}", **documented(DeadLetterPage, description="All of it."))
async def show_dead_letter(id: str, access: Reader) -> Response:
    """The reason, the attributes and the original bytes."""
    return answer(await access.service.dead_letters.show(id))


@router.post(
    "/v1/dead-letters/{id:path}/redrive",
    **documented(ClosedLetter, description="`changed` is false if it was closed before."),
)
async def redrive_dead_letter(id: str, access: Operator) -> Response:
    """Send it on its way again: a run goes on from its checkpoints, a message to its topic."""
    return answer(await access.service.dead_letters.redrive(id))


@router.post(
    "/v1/dead-letters/{id:path}/discard",
    **documented(
        ClosedLetter, description="`changed` is false if it was closed before.", body=Reason
    ),
)
async def discard_dead_letter(
    id: str, access: Operator, body: Annotated[Reason, body_of(Reason)]
) -> Response:
    """Close it for good. A fifo lane that it blocked goes on."""
    return answer(await access.service.dead_letters.discard(id, reason=body.reason))
