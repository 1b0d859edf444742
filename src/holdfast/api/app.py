"""`create_app`: the HTTP API as an ASGI application, on its own or mounted in another one."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from holdfast.api import docs_page, health, login, metrics, problems
from holdfast.api.access import Authenticate
from holdfast.api.authentication import KeyAuthentication
from holdfast.api.documentation import components
from holdfast.api.limits import AnswerHead, BodyLimit, RequestId
from holdfast.api.routes import (
    dead_letters,
    events,
    installation,
    pipelines,
    runs,
    submit,
    tenants,
    webhooks,
)
from holdfast.api.tracing import TraceRequests
from holdfast.app import Holdfast
from holdfast.bootstrap import apps
from holdfast.errors import ConfigurationError
from holdfast.model.version import VERSION
from holdfast.services.event_hub import EventHub

log = logging.getLogger("holdfast.api")

MAX_BODY = 16 * 1024 * 1024
RATE = 500.0
ROUTERS = (
    submit.router,
    events.router,
    runs.router,
    dead_letters.router,
    pipelines.router,
    installation.router,
    metrics.router,
    tenants.router,
    webhooks.router,
    health.router,
    docs_page.router,
)


def create_app(
    holdfast: Holdfast,
    *,
    authenticate: Authenticate | None = None,
    max_body: int = MAX_BODY,
    rate: float = RATE,
    routers: Iterable[APIRouter] = (),
    apps: bool = True,
) -> FastAPI:
    """The API of one app. It opens the app on the first request, and closes it only if it has
    opened it itself, when it is served on its own.

    `authenticate` says who sent a request: by default the API keys of the store, each tenant with
    at most `rate` requests a second (0: no limit). `routers` are
    included beside `/v1`; `apps` says whether those of installed apps are, too."""
    api = FastAPI(
        title="holdfast",
        version=VERSION,
        summary="Run expensive multi-step jobs once.",
        lifespan=_lifespan,
        generate_unique_id_function=_operation_id,
        redirect_slashes=False,
        docs_url=None,  # ours needs nothing from elsewhere
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    api.state.holdfast = holdfast
    authenticate = authenticate or KeyAuthentication(holdfast, rate)
    api.state.authenticate = api.state.authenticate_page = authenticate
    api.state.health = holdfast.health
    api.state.hub = EventHub(holdfast.store)
    problems.install(api)
    if isinstance(authenticate, KeyAuthentication):
        api.state.authenticate_page = authenticate.of_page
        api.include_router(login.router)
    for router in (*ROUTERS, *routers, *(app_routers() if apps else ())):
        api.include_router(router)
    api.openapi = lambda: _openapi(api)  # type: ignore[method-assign]
    api.add_middleware(AnswerHead)
    api.add_middleware(BodyLimit, limit=max_body)
    api.add_middleware(problems.CatchBugs)
    api.add_middleware(RequestId)
    api.add_middleware(TraceRequests, tracer=holdfast.runtime.tracer)
    return api


@asynccontextmanager
async def _lifespan(api: FastAPI) -> AsyncIterator[None]:
    holdfast: Holdfast = api.state.holdfast
    was_open = holdfast.is_open
    await holdfast.open()
    try:
        yield
    finally:
        api.state.health.drain()
        api.state.hub.close()
        if not was_open:
            await holdfast.close()


def app_routers() -> Iterable[APIRouter]:
    """The routers of all apps that can be used here. An app whose extra is missing, and another
    package's app that can't be loaded, are left out."""
    for app in apps.installed():
        if not app.routes:
            continue
        try:
            apps.require_extra(app)
        except ConfigurationError as error:  # somebody chose not to install it
            log.info("the routes of app %s are left out: %s", app.name, error)
            continue
        try:
            yield from [apps.load_part(app, reference) for reference in app.routes]
        except ConfigurationError as error:
            log.warning("the routes of app %s are left out: %s", app.name, error)


def _operation_id(route: APIRoute) -> str:
    return route.name


def _openapi(api: FastAPI) -> dict[str, Any]:
    """FastAPI's document with our shapes in it."""
    if api.openapi_schema is None:
        document = get_openapi(
            title=api.title, version=api.version, summary=api.summary, routes=api.routes
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas.update(components())
        document["components"]["schemas"] = dict(sorted(schemas.items()))
        api.openapi_schema = document
    return api.openapi_schema
