"""Tenants and API keys, for administrators."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from holdfast.api.access import Admin
from holdfast.api.answers import answer
from holdfast.api.bodies import body_of
from holdfast.api.documentation import documented
from holdfast.api.shapes import KeyRequest, Reason, RotateRequest, TenantChange, TenantRequest
from holdfast.services.api_keys import IssuedKey, KeyView
from holdfast.services.service import Page
from holdfast.services.tenants import TenantView

router = APIRouter(tags=["tenants"])


@router.post(
    "/v1/tenants",
    **documented(TenantView, status=201, description="The tenant.", body=TenantRequest),
)
async def create_tenant(
    access: Admin, body: Annotated[TenantRequest, body_of(TenantRequest)]
) -> Response:
    """Create a tenant with quotas."""
    return answer(await access.service.tenants.create(body.name, body.quotas), status=201)


@router.get("/v1/tenants", **documented(Page[TenantView], description="All of them."))
async def list_tenants(access: Admin) -> Response:
    """Tenants with their quotas."""
    return answer(Page(await access.service.tenants.list()))


@router.get("/v1/tenants/{tenant}", **documented(TenantView, description="The tenant."))
async def show_tenant(tenant: str, access: Admin) -> Response:
    """A tenant with its quotas, and what it uses of them now."""
    return answer(await access.service.tenants.show(tenant))


@router.patch(
    "/v1/tenants/{tenant}",
    **documented(TenantView, description="The tenant as it is now.", body=TenantChange),
)
async def change_tenant(
    tenant: str, access: Admin, body: Annotated[TenantChange, body_of(TenantChange)]
) -> Response:
    """Change quotas, or keep a tenant from using anything. Accepted runs go on."""
    changed = await access.service.tenants.set(tenant, enabled=body.enabled, quotas=body.quotas)
    return answer(changed)


@router.delete("/v1/tenants/{tenant}", **documented(status=204, description="It is deleted."))
async def delete_tenant(tenant: str, access: Admin, reason: str = "") -> Response:
    """Delete a tenant that has no live runs, and revoke its keys."""
    await access.service.tenants.delete(tenant, reason=reason)
    return Response(status_code=204)


@router.post(
    "/v1/keys",
    **documented(IssuedKey, status=201, description="Shown only now.", body=KeyRequest),
)
async def create_key(access: Admin, body: Annotated[KeyRequest, body_of(KeyRequest)]) -> Response:
    """Create a key of a tenant. Its text is answered once; stored is a digest."""
    issued = await access.service.keys.create(
        body.tenant, body.scopes, name=body.name, lifetime=body.lifetime
    )
    return answer(issued, status=201, headers={"Cache-Control": "no-store"})


@router.get("/v1/keys", **documented(Page[KeyView], description="The oldest first."))
async def list_keys(access: Admin, tenant: str | None = None) -> Response:
    """Keys with scopes, state and last use; those of one tenant if it is named."""
    return answer(Page(await access.service.keys.list(tenant)))


@router.post(
    "/v1/keys/{key}/rotate",
    **documented(IssuedKey, status=201, description="Shown only now.", body=RotateRequest),
)
async def rotate_key(
    key: str, access: Admin, body: Annotated[RotateRequest, body_of(RotateRequest)]
) -> Response:
    """Make a new key with the rights of an old one, which ends later."""
    issued = await access.service.keys.rotate(key, overlap=body.overlap)
    return answer(issued, status=201, headers={"Cache-Control": "no-store"})


@router.post("/v1/keys/{key}/revoke", **documented(KeyView, description="The key.", body=Reason))
async def revoke_key(key: str, access: Admin, body: Annotated[Reason, body_of(Reason)]) -> Response:
    """Refuse a key from now on, in every process within 5 seconds."""
    return answer(await access.service.keys.revoke(key, reason=body.reason))
