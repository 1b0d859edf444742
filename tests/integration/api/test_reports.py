"""Reports over HTTP: upload a file, watch its progress, open the page."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.api.live import LiveApi, store_url

from holdfast.apps.report import report
from holdfast.apps.report.progress_page import NAMES
from holdfast.apps.report.routes import STEP_WORDS

COMMENTS = Path(__file__).parents[3] / "examples" / "data" / "riverside.csv"
PAGE = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveApi]:
    folder = tmp_path_factory.mktemp("reports")
    with LiveApi(store_url("sqlite", folder), pipelines=(report,)) as opened:
        yield opened


def finished(live: LiveApi, url: str) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        state = live.get(url).json()
        if state["status"] in ("finished", "failed"):
            return state
        time.sleep(0.1)
    raise AssertionError(f"{url} is still {state['status']}")


def test_a_file_becomes_a_page(live: LiveApi) -> None:
    form = {"title": "A better town", "question": "What should change?"}
    with COMMENTS.open("rb") as file:
        created = live.http.post("/create", data=form, files={"file": ("comments.csv", file)})
    assert created.status_code == 202, created.text
    body = created.json()
    assert body["filename"] == "comments.csv"
    url = body["reportUrl"]
    assert created.headers["location"] == url
    waiting = live.get(url, headers=PAGE)
    assert "A better town" in waiting.text
    state = finished(live, url)
    assert state["status"] == "finished"
    assert state["metadata"]["numComments"] > 100
    page = live.get(url, headers=PAGE)
    assert page.headers["content-type"].startswith("text/html")
    assert "What should change?" in page.text
    assert live.get(body["jsonUrl"]).json()["title"] == "A better town"
    assert live.get(f"{url}/claims.csv").text.startswith("\ufeffclaim_id,")
    assert live.get(f"{url}/../../etc/passwd").status_code == 404
    assert live.get(f"{url}/other.csv").status_code == 404


def test_every_step_has_words_for_people_and_for_the_earlier_service() -> None:
    assert set(NAMES) == set(STEP_WORDS) == set(report.steps)


def test_what_the_command_line_sends_beside_the_file(live: LiveApi) -> None:
    with COMMENTS.open("rb") as file:
        fields = {"request": '{"title": "By command", "topics": 3, "file": "no"}'}
        created = live.http.post("/create", data=fields, files={"file": ("comments.csv", file)})
    assert finished(live, created.json()["reportUrl"])["metadata"]["title"] == "By command"
    for wrong in ("[", "7", '{"topics": "many"}'):
        files = {"file": ("comments.csv", b"comment\nyes\n")}
        assert live.http.post("/create", data={"request": wrong}, files=files).status_code == 422


def test_the_json_of_the_earlier_service_is_understood(live: LiveApi) -> None:
    rows = [
        {"id": str(number), "comment": f"The buses should run later, reason {number}."}
        for number in range(12)
    ]
    config = {"title": "Buses", "description": "", "cruxesEnabled": False}
    created = live.post("/create", {"userConfig": config, "data": ["csv", rows]})
    assert created.status_code == 202, created.text
    assert created.json()["message"] == "Request received."
    assert finished(live, created.json()["reportUrl"])["metadata"]["title"] == "Buses"


def test_a_service_without_the_pipeline_accepts_no_report(memory_api: LiveApi) -> None:
    rows = [{"id": "0", "comment": "The buses should run later."}]
    refused = memory_api.post("/create", {"userConfig": {}, "data": ["csv", rows]})
    assert (refused.status_code, refused.json()["code"]) == (404, "unknown-pipeline")
    assert memory_api.get("/v1/runs").json()["items"] == []


def test_what_is_no_report_is_refused(live: LiveApi) -> None:
    assert live.http.post("/create", content=b"x").status_code == 415
    assert live.http.post("/create", data={"title": "x"}, files={"other": b""}).status_code == 422
    assert live.post("/create", {"data": "x"}).status_code == 422
    assert live.get("/report/unknown").status_code == 404
