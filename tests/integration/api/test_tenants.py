"""Tenants over HTTP: no route shows one what belongs to another, and no key does what it may
not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest
from fastapi.routing import APIRoute
from tests.integration.api.live import LiveApi

from holdfast import Holdfast
from holdfast.api import create_app
from holdfast.api.app import ROUTERS, app_routers
from holdfast.model.api_key import make_key
from holdfast.model.tenant import Quotas

ROUTES = sorted(
    (method, route.path)
    for router in (*ROUTERS, *app_routers())
    for route in router.routes
    if isinstance(route, APIRoute)
    for method in route.methods
)
PUBLIC = re.compile(r"/|/docs|/health.*|/livez|/readyz|/ready")
"""What needs no key."""
SHARED = {"pipeline": "greet", "pipeline_id": "greet", "lane": "default"}
"""Parts of paths that belong to no tenant."""
SCOPES = ["submit", "read", "operate"]


@dataclass
class World:
    """acme has runs, a dead letter, an artifact, a lock and a webhook; other has nothing but a
    key."""

    api: LiveApi
    keys: dict[str, str]
    run: str
    failed: str
    artifact: str
    webhook: str = ""

    def ask(self, who: str, method: str, path: str, **options) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.keys[who]}"} | options.pop("headers", {})
        return self.api.http.request(method, path, headers=headers, **options)

    def filled(self, path: str, **more: str) -> str:
        values = SHARED | {
            "artifact": self.artifact,
            "id": f"run:{self.failed}",
            "tenant": "acme",
            "lock": "unique:acme:slow",
            "key": self.keys["acme"].split("_")[1],
            "webhook": self.webhook,
            "event": f"{self.run}:1",
        }
        for name in re.findall(r"{(\w+)(?::\w+)?}", path):
            value = (values | more).get(name, self.run)
            path = re.sub(rf"{{{name}(:\w+)?}}", value, path)
        return path


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with LiveApi() as api:
        holdfast = api.holdfast
        keys: dict[str, str] = {}
        for tenant in ("acme", "other"):
            api.call(holdfast.tenants.create(tenant, Quotas(per_minute=None), actor="test"))
            issued = api.call(holdfast.keys.create(tenant, SCOPES, actor="test"))
            keys[tenant] = issued.text
        keys["admin"] = api.call(holdfast.keys.create("default", ["admin"], actor="test")).text
        for scope in SCOPES:
            keys[scope] = api.call(holdfast.keys.create("acme", [scope], actor="test")).text
        world = World(api, keys, "", "", "")
        runs = "/v1/pipelines/greet/runs"
        body = {"input": {"name": "marker"}, "key": "marker-key", "labels": {"user": "marker"}}
        world.run = world.ask("acme", "POST", runs, json=body).json()["run"]["id"]
        body = {"input": {"name": "marker", "trouble": "fail"}}
        world.failed = world.ask("acme", "POST", runs, json=body).json()["run"]["id"]
        world.ask("acme", "POST", "/v1/pipelines/slow/runs", json={"input": "marker"})
        for run in (world.run, world.failed):
            world.ask("acme", "GET", f"/v1/runs/{run}", headers={"Prefer": "wait=20"})
        [artifact] = world.ask("acme", "GET", f"/v1/runs/{world.run}/artifacts").json()["items"]
        world.artifact = artifact["id"]
        # Nobody listens there: what is sent to it stays a record.
        hook = world.ask("acme", "POST", "/v1/webhooks", json={"url": "http://127.0.0.1:9/marker"})
        world.webhook = hook.json()["id"]
        yield world


def test_there_are_routes() -> None:
    assert len(ROUTES) > 40


def state_of(world: World) -> object:
    """All that acme has, as it sees it."""
    run, failed = (
        world.ask("acme", "GET", f"/v1/runs/{id}").json() for id in (world.run, world.failed)
    )
    letters = world.ask("acme", "GET", "/v1/dead-letters?all=true").json()
    webhooks = world.ask("acme", "GET", "/v1/webhooks").json()
    return run["history"], failed["history"], letters, webhooks


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=lambda part: part)
def test_a_route_gives_nothing_of_another_tenant(world: World, method: str, path: str) -> None:
    before = state_of(world)
    names = set(re.findall(r"{(\w+)", path)) - set(SHARED)
    answer = world.ask("other", method, world.filled(path), json={} if method != "GET" else None)
    assert answer.status_code < 500
    if names:
        assert answer.status_code in (401, 403, 404, 422), answer.text
    assert "marker" not in answer.text
    for id in (world.run, world.failed):
        # An id that the caller itself has named may be in the answer, and nothing else of the run.
        assert id not in answer.text or id in world.filled(path)
    assert state_of(world) == before


@pytest.mark.parametrize(
    ("method", "path"), [route for route in ROUTES if "{run}" in route[1]], ids=lambda part: part
)
def test_what_belongs_to_another_is_what_does_not_exist(
    world: World, method: str, path: str
) -> None:
    """By id, by key, and by the start of an id: the answers are the same."""
    body = {} if method != "GET" else None
    for name in (world.run, world.run[:20], "marker-key"):
        foreign = world.ask("other", method, world.filled(path, run=name), json=body)
        response = world.ask("other", method, world.filled(path, run="x" * len(name)), json=body)
        assert foreign.status_code == response.status_code == 404
        assert foreign.json()["detail"].replace(name, "x" * len(name)) == response.json()["detail"]


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=lambda part: part)
def test_without_a_key_only_probes_answer(world: World, method: str, path: str) -> None:
    answer = world.api.http.request(method, world.filled(path))
    if PUBLIC.fullmatch(path):
        assert answer.status_code != 401
    else:
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")


V1 = [route for route in ROUTES if route[1].startswith("/v1/")]


@pytest.mark.parametrize(("method", "path"), V1, ids=lambda part: part)
def test_a_scope_opens_the_routes_that_it_is_for(world: World, method: str, path: str) -> None:
    """Of names that nobody has, so that nothing changes."""
    allowed = [
        scope
        for scope in SCOPES
        if world.ask(scope, method, re.sub(r"{[^}]+}", "nobody", path), content=b"[").status_code
        != 403
    ]
    operating = re.fullmatch(r".*/(cancel|pause|resume|rerun|redrive|discard)", path) or (
        path.startswith("/v1/webhooks") and method != "GET"
    )
    installation = re.match(r"/v1/(lanes|locks|workers|projections|audit|tenants|keys)", path)
    expected = (
        []
        if installation
        else ["operate"]
        if operating
        else ["read"]
        if method == "GET"
        else ["submit"]
    )
    assert allowed == expected


def test_the_tenant_is_that_of_the_key_whatever_is_said(world: World) -> None:
    header = {"Holdfast-Tenant": "acme"}
    runs = "/v1/pipelines/greet/runs"
    assert world.ask("other", "GET", "/v1/runs", headers=header).status_code == 404
    listed = world.ask("other", "GET", "/v1/runs?tenant=acme").json()["items"]
    assert {run["tenant"] for run in listed} <= {"other"}
    body = {"input": {"name": "x"}, "tenant": "acme"}
    for who in ("other", "admin"):
        assert world.ask(who, "POST", runs, json=body, headers=header).status_code == 403


def test_an_administrator_names_the_tenant_that_it_looks_at(world: World) -> None:
    path = f"/v1/runs/{world.run}"
    assert world.ask("admin", "GET", path).status_code == 404
    for tenant in ("acme", "*"):
        response = world.ask("admin", "GET", path, headers={"Holdfast-Tenant": tenant})
        assert response.json()["run"]["tenant"] == "acme"
    everybody = {"Holdfast-Tenant": "*"}  # that it may see: a tenant's key sees its own
    assert world.ask("other", "GET", path, headers=everybody).status_code == 404
    body = {"input": {"name": "x"}, "delay": 3600}
    for who, tenant in (("other", "other"), ("admin", "default")):
        submitted = world.ask(who, "POST", "/v1/pipelines/greet/runs", json=body, headers=everybody)
        assert submitted.json()["run"]["tenant"] == tenant
    assert world.ask("admin", "GET", path, headers={"Holdfast-Tenant": "other"}).status_code == 404


def test_events_of_others_are_in_no_feed(world: World) -> None:
    events, others = (
        {event["id"].partition(":")[0] for event in feed["items"]}
        for who in ("acme", "other")
        for feed in [world.ask(who, "GET", "/v1/events?after=0").json()]
    )
    assert events >= {world.run, world.failed}
    assert not events & others


def test_quotas_are_answers_with_a_time() -> None:
    with LiveApi() as api:
        api.call(api.holdfast.tenants.create("small", Quotas(per_minute=1), actor="test"))
        key = api.call(api.holdfast.keys.create("small", ["submit"], actor="test")).text
        headers = {"X-Api-Key": key}
        body = {"input": {"name": "Ada"}}
        assert api.post("/v1/pipelines/greet/runs", body, headers=headers).status_code == 202
        refused = api.post("/v1/pipelines/greet/runs", body, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (429, "quota-exceeded")
        assert 1 <= int(refused.headers["retry-after"]) <= 61


def test_a_tenant_that_asks_too_often_is_told_when_to_come_back() -> None:
    with LiveApi(make=lambda holdfast: create_app(holdfast, rate=0.5)) as api:
        keys = [
            api.call(api.holdfast.keys.create(name, ["read"], actor="test")).text
            for name in ("busy", "busy", "calm")
            if api.call(_ensure(api.holdfast, name)) is None
        ]
        busy, also_busy, calm = ({"X-Api-Key": key} for key in keys)
        assert api.get("/v1/runs", headers=busy).status_code == 200
        refused = api.get("/v1/runs", headers=also_busy)  # a second key is no second tenant
        assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")
        assert 1 <= int(refused.headers["retry-after"]) <= 2
        assert api.get("/v1/runs", headers=calm).status_code == 200
        assert api.get("/health").status_code == 200


async def _ensure(holdfast: Holdfast, tenant: str) -> None:
    if tenant not in [existing.name for existing in await holdfast.tenants.list()]:
        await holdfast.tenants.create(tenant, actor="test")


def bad_keys(good: str) -> dict[str, dict[str, str]]:
    """12 kinds of keys that are none."""
    bearer = lambda text: {"Authorization": f"Bearer {text}"}  # noqa: E731
    return {
        "none": {},
        "empty": {"Authorization": "Bearer"},
        "another word": bearer("secret"),
        "cut": bearer(good[:-1]),
        "longer": bearer(good + "0"),
        "one letter changed": bearer(good[:-20] + ("0" if good[-20] != "0" else "1") + good[-19:]),
        "never made": bearer(make_key().text),
        "upper case": bearer(good.upper()),
        "another scheme": {"Authorization": f"Basic {good}"},
        "in the cookie": {"Cookie": f"api_key={good}"},
        "twice": bearer(f"{good} {good}"),
        "quoted": bearer(f'"{good}"'),
    }


def test_a_key_that_is_none_is_refused_without_a_reason(world: World) -> None:
    for kind, headers in bad_keys(world.keys["acme"]).items():
        answer = world.api.get("/v1/runs", headers=headers)
        assert answer.status_code == 401, kind
        assert answer.json()["code"] == "unauthenticated"
    assert world.api.get(f"/v1/runs?api_key={world.keys['acme']}").status_code == 401


def test_a_revoked_key_is_refused_at_once_where_it_was_revoked(world: World) -> None:
    issued = world.api.call(world.api.holdfast.keys.create("acme", ["read"], actor="test"))
    world.keys["new"] = issued.text
    assert world.ask("new", "GET", "/v1/runs").status_code == 200
    revoked = world.ask("admin", "POST", f"/v1/keys/{issued.key.id}/revoke", json={"reason": "x"})
    assert revoked.json()["state"] == "revoked"
    assert world.ask("new", "GET", "/v1/runs").status_code == 401
