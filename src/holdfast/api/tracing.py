"""The trace context of requests: taken in, recorded where somebody records, and given to runs that
are submitted meanwhile."""

from __future__ import annotations

from typing import Any

from holdfast.model.trace_context import entered, of_headers
from holdfast.ports.tracing import Tracer

Scope = dict[str, Any]
QUIET = ("/health", "/livez", "/readyz", "/healthz", "/metrics")
"""Requests of machines, every few seconds."""


class TraceRequests:
    def __init__(self, app: Any, tracer: Tracer | None) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"].startswith(QUIET):
            return await self._app(scope, receive, send)
        headers = {name.decode("latin-1"): v.decode("latin-1") for name, v in scope["headers"]}
        origin = of_headers(headers)
        if self._tracer is None:
            with entered(origin):
                return await self._app(scope, receive, send)
        attributes = {"http.request.method": scope["method"], "url.path": scope["path"]}
        with self._tracer.span(
            scope["method"], "server", attributes, origin=origin, is_child=True, is_root=True
        ) as span:

            async def noted(message: Any) -> None:
                if message["type"] == "http.response.start":
                    span.set({"http.response.status_code": message["status"]})
                    if message["status"] >= 500:
                        span.fail(str(message["status"]))
                await send(message)

            return await self._app(scope, receive, noted)
