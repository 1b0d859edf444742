"""`POST /pubsub`: messages that Google Cloud Pub/Sub pushes.

204 means that the message is durable, as a run or as a dead letter; everything else makes Pub/Sub
push it again."""

from __future__ import annotations

import logging
from hashlib import sha256
from typing import Protocol

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from holdfast.adapters.pubsub.push import decode
from holdfast.api.bodies import read_body
from holdfast.api.documentation import documented
from holdfast.api.problems import Problem
from holdfast.engine.pushed import Pushed
from holdfast.errors import Fix, InvalidInput
from holdfast.ports.bus import Message

log = logging.getLogger("holdfast.api")

PATHS = ("/pubsub", "/pubsub/push")


class Verifier(Protocol):
    """Knows whose pushes are believed."""

    async def verify(self, authorization: str | None) -> str:
        """Who sent it. Raises an error that says why it is not accepted."""
        ...


def push_router(pushed: Pushed, verifier: Verifier | None) -> APIRouter:
    """`verifier` None accepts every push: for an emulator, which sends no token."""
    router = APIRouter(tags=["pubsub"])

    async def push(request: Request) -> Response:
        """Take in a message that Pub/Sub pushes, wrapped or unwrapped."""
        if verifier is not None:  # before anything of the body is read
            await _verify(verifier, request)
        body = await read_body(request)
        headers = {name.lower(): text for name, text in request.headers.items()}
        try:
            arrived = decode(body, headers)
        except InvalidInput as error:
            await pushed.bury(Message(sha256(body).hexdigest(), body), str(error))
        else:
            await pushed.receive(arrived.subscription, arrived.message, arrived.attempt)
        return Response(status_code=204)

    for path in PATHS:
        options = documented(status=204, description="The message is a run or a dead letter.")
        router.add_api_route(path, push, methods=["POST"], name=path.strip("/"), **options)
    return router


async def _verify(verifier: Verifier, request: Request) -> None:
    try:
        await verifier.verify(request.headers.get("authorization"))
    except Fix as error:
        log.warning("a push was refused: %s", error)
        raise Problem(
            401,
            "invalid-token",
            f"{error}; push.audience and push.service_account say whose pushes are accepted",
            title="The push is not accepted",
            headers={"WWW-Authenticate": 'Bearer realm="pubsub"'},
        ) from error
