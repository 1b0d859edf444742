"""Tenants, their quotas and their keys."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from holdfast.cli.render.tables import Cell, empty, moment, table
from holdfast.model.tenant import QUOTA_NAMES
from holdfast.services.api_keys import KeyView
from holdfast.services.tenants import TenantView

STYLES = {"active": "green", "expired": "dim", "revoked": "red"}


def tenant_table(items: Sequence[TenantView]) -> RenderableType:
    if not items:
        return empty("tenants", "`holdfast tenants create NAME` makes one")
    quotas = [name.replace("_", " ").upper() for name in QUOTA_NAMES]
    headings = ["TENANT", "STATE", *quotas]
    rows = [[item.name, _state(item), *map(_number, _quotas(item))] for item in items]
    return table(headings, rows, right=quotas, whole=("TENANT",))


def tenant_page(tenant: TenantView) -> RenderableType:
    rows: list[list[Cell]] = [["tenant", tenant.name], ["state", _state(tenant)]]
    for name, limit in zip(QUOTA_NAMES, _quotas(tenant), strict=True):
        used = "" if tenant.usage is None else f"{getattr(tenant.usage, name):,}, "
        rows.append([name.replace("_", " "), used + _limit(limit)])
    page = table(("", ""), rows)
    page.show_header = False
    return page


def key_table(items: Sequence[KeyView]) -> RenderableType:
    if not items:
        return empty("keys", "`holdfast tenants keys create --first` makes the first one")
    headings = ("KEY", "TENANT", "STATE", "SCOPES", "EXPIRES", "LAST USED", "NAME")
    return table(headings, map(_key_row, items), whole=("KEY", "TENANT"), free="NAME")


def _key_row(key: KeyView) -> list[Cell]:
    return [
        key.id,
        key.tenant,
        Text(key.state, style=STYLES[key.state]),
        ",".join(key.scopes),
        moment(key.expires) or "never",
        moment(key.last_used) or "never",
        key.name,
    ]


def _quotas(tenant: TenantView) -> list[int | None]:
    return [getattr(tenant.quotas, name) for name in QUOTA_NAMES]


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _limit(value: int | None) -> str:
    return "no limit" if value is None else f"at most {value:,}"


def _state(tenant: TenantView) -> Text:
    return Text("enabled", style="green") if tenant.enabled else Text("disabled", style="red")
