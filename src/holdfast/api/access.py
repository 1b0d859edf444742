"""Who calls, and what it may do: from a request to the service that it sees."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from fastapi import Depends
from starlette.requests import Request

from holdfast.api.problems import Problem
from holdfast.app import Holdfast
from holdfast.engine.submitter import note_submitter
from holdfast.errors import Forbidden
from holdfast.model.api_key import Scope
from holdfast.services.local import LocalService

TENANT = "Holdfast-Tenant"
"""The header by which an administrator names the tenant that a request is about."""
EVERYBODY = "*"
"""All tenants that the caller may see: for others than administrators, their own."""


class Caller(Protocol):
    """Somebody who was recognised."""

    @property
    def tenant(self) -> str: ...

    @property
    def actor(self) -> str:
        """What the audit log calls it."""
        ...

    def may(self, scope: Scope) -> bool: ...


Authenticate = Callable[[Request], Awaitable[Caller]]
"""Who sent a request. Raises Problem."""


@dataclass(frozen=True, slots=True)
class Access:
    """A caller whose scope was checked, and whose runs it sees: its tenant's or, if it is an
    administrator who asks for that, another tenant's (None: everybody's)."""

    holdfast: Holdfast
    caller: Caller
    sees: str | None

    @property
    def tenant(self) -> str:
        """Whom new runs belong to: that of the credential, and nobody else."""
        return self.caller.tenant

    @property
    def service(self) -> LocalService:
        """The use cases, for what the caller sees."""
        return self.holdfast.service(tenant=self.sees, actor=self.caller.actor)


def requires(scope: Scope) -> Any:
    """A dependency: the access of a caller that has this scope."""

    async def access(request: Request) -> Access:
        state = request.app.state
        await state.holdfast.open()
        caller: Caller = await state.authenticate(request)
        if not caller.may(scope):
            raise Forbidden(f"this needs a key with the scope {scope}")
        note_submitter(caller.actor)
        return Access(state.holdfast, caller, _visible_tenant(request, caller, scope))

    return Depends(access)


def _visible_tenant(request: Request, caller: Caller, scope: Scope) -> str | None:
    named = request.headers.get(TENANT)
    if named is None or named == caller.tenant:
        return caller.tenant
    if named == EVERYBODY:  # of those that the caller may see
        return None if caller.may("admin") and scope != "submit" else caller.tenant
    if scope == "submit":
        raise Forbidden(
            f"runs belong to the tenant of the key, {caller.tenant!r}: use a key of {named!r:.80}"
        )
    if not caller.may("admin"):
        raise Problem(404, "not-found", f"there is no tenant {named!r:.80}")
    return named


def looks_at_page() -> Any:
    """A dependency: the access of somebody who looks at a page, also of a browser that logged in.
    To a browser the errors of the route are pages, too."""

    async def access(request: Request) -> Access:
        state = request.app.state
        request.state.shows_pages = "text/html" in request.headers.get("accept", "")
        await state.holdfast.open()
        caller: Caller = await state.authenticate_page(request)
        if not caller.may("read"):
            raise Forbidden("this needs a key with the scope read")
        return Access(state.holdfast, caller, _visible_tenant(request, caller, "read"))

    return Depends(access)


Reader = Annotated[Access, requires("read")]
"""For routes that look."""
PageReader = Annotated[Access, looks_at_page()]
"""For routes that show a page to a browser, and change nothing."""
Submitter = Annotated[Access, requires("submit")]
"""For routes that start runs."""
Operator = Annotated[Access, requires("operate")]
"""For routes that change runs and dead letters."""
Admin = Annotated[Access, requires("admin")]
"""For routes about the whole installation: tenants, keys, lanes, workers, locks, audit,
projections."""
