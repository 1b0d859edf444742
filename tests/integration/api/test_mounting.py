"""The API inside another application, under any path; and routes that apps bring."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from fastapi import APIRouter, FastAPI
from tests.integration.api.live import LiveApi

from holdfast import App, Holdfast
from holdfast.api import Admin, Reader, Submitter, answer, create_app
from holdfast.bootstrap import apps
from holdfast.services.service import Submission

router = APIRouter()


@router.post("/gardens")
async def rake(name: str, access: Submitter):
    accepted = await access.service.runs.submit("greet", {"name": name}, about=Submission())
    return {"run": accepted.run.id, "tenant": access.tenant}


@router.get("/gardens/{run}")
async def look(run: str, access: Reader):
    return answer((await access.service.runs.show(run)).run)


@router.get("/gardens")
async def count(access: Admin):
    return access.holdfast.name


def test_links_and_locations_have_the_path_it_is_mounted_under() -> None:
    def make(holdfast: Holdfast) -> FastAPI:
        site = FastAPI()
        site.mount("/a/b/jobs", inner := create_app(holdfast))
        site.state.health, site.state.hub = inner.state.health, inner.state.hub
        return site

    with LiveApi(make=make) as api:
        accepted = api.post("/a/b/jobs/v1/pipelines/greet/runs", {"input": {"name": "Ada"}})
        assert accepted.headers["location"].startswith("/a/b/jobs/v1/runs/")
        assert api.get(accepted.json()["links"]["self"]).status_code == 200
        api.post("/a/b/jobs/v1/pipelines/greet/runs", {"input": {"name": "Bob"}})
        page = api.get("/a/b/jobs/v1/runs?limit=1")
        assert len(api.get(page.links["next"]["url"]).json()["items"]) == 1
        page = api.get("/a/b/jobs/docs").text
        assert 'href="/a/b/jobs/openapi.json"' in page
        assert f"{api.url}/a/b/jobs/v1/runs" in page
        browser = api.get("/a/b/jobs/", headers={"Accept": "text/html,*/*"})
        assert (browser.status_code, browser.headers["location"]) == (307, "/a/b/jobs/docs")
        assert "/a/b/jobs" in str(api.get("/a/b/jobs/openapi.json").json()["servers"])


def test_an_app_brings_its_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("garden_http")
    module.router = router  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "garden_http", module)
    garden = App(name="garden", routes=("garden_http:router",))
    missing = App(name="pond", routes=("pond_http:router",), extra="pond[http]")
    monkeypatch.setattr(apps, "third_party", lambda: ([garden, missing], []))
    with LiveApi() as api:
        response = api.post("/gardens?name=Ada").json()
        assert response["tenant"] == "default"
        assert api.get(f"/gardens/{response['run']}").json()["pipeline"] == "greet"
        assert api.get("/gardens/nobody").json()["code"] == "not-found"
        assert api.get("/gardens").status_code == 200
