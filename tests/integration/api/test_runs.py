"""Runs over HTTP, on every store."""

from __future__ import annotations

import threading

import httpx2
import pytest
from tests.integration.api.live import LiveApi


def test_a_run_is_submitted_watched_and_read(api: LiveApi) -> None:
    accepted = api.post(
        "/v1/pipelines/greet/runs", {"input": {"name": "Ada"}, "labels": {"user": "42"}}
    )
    assert accepted.status_code == 202
    body = accepted.json()
    run = body["run"]["id"]
    assert accepted.headers["location"] == f"/v1/runs/{run}" == body["links"]["self"]
    assert (body["created"], body["run"]["tenant"]) == (True, "default")

    assert api.ended(run)["state"] == "succeeded"
    result = api.get(f"/v1/runs/{run}/result")
    assert result.json()["text"] == "hello Ada"
    again = api.get(f"/v1/runs/{run}/result", headers={"If-None-Match": result.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")

    assert [item["id"] for item in api.get("/v1/runs?label=user=42").json()["items"]] == [run]
    assert api.get("/v1/runs?label=user=43").json()["items"] == []
    [line] = api.get(f"/v1/runs/{run}/logs").json()["items"]
    assert line["message"] == "greeting Ada"


def test_artifacts_are_listed_and_downloaded(api: LiveApi) -> None:
    run = api.submit("Ada")
    api.ended(run)
    [artifact] = api.get(f"/v1/runs/{run}/artifacts").json()["items"]
    assert (artifact["name"], artifact["step"]) == ("card-1.txt", "card")
    file = api.get(f"/v1/runs/{run}/artifacts/{artifact['id']}")
    assert file.content == b"hello Ada"
    assert file.headers["content-disposition"] == 'attachment; filename="card-1.txt"'
    for other in ("../../secret", "card/1/0000-card", artifact["id"] + "x"):
        assert api.get(f"/v1/runs/{run}/artifacts/{other}").status_code == 404


def test_the_same_key_gives_the_same_run_and_never_other_work(api: LiveApi) -> None:
    path, header = "/v1/pipelines/greet/runs", {"Idempotency-Key": '"r-1"'}
    first = api.post(path, {"input": {"name": "Ada"}}, headers=header)
    again = api.post(path, {"input": {"name": "Ada"}}, headers={"Idempotency-Key": "r-1"})
    assert again.json()["run"]["id"] == first.json()["run"]["id"]
    assert (again.status_code, again.headers["idempotency-replayed"]) == (202, "true")
    other = api.post(path, {"input": {"name": "Bob"}}, headers=header)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    assert other.json()["run_id"] == first.json()["run"]["id"]
    assert api.get("/v1/runs/r-1").json()["run"]["id"] == first.json()["run"]["id"]


def test_prefer_wait_answers_with_the_result(api: LiveApi) -> None:
    answer = api.post(
        "/v1/pipelines/greet/runs", {"input": {"name": "Eve"}}, headers={"Prefer": "wait=20"}
    )
    assert (answer.status_code, answer.headers["preference-applied"]) == (200, "wait=20")
    assert answer.json()["result"]["text"] == "hello Eve"


def test_a_unique_pipeline_answers_with_its_live_run(api: LiveApi) -> None:
    path = "/v1/pipelines/slow/runs"
    first = api.post(path, {"input": "a"}).json()["run"]["id"]
    second = api.post(path, {"input": "b"})
    assert (second.status_code, second.headers["holdfast-existing"]) == (200, "true")
    assert second.json()["run"]["id"] == first
    refused = api.post(path + "?on_conflict=reject", {"input": "b"})
    assert (refused.status_code, refused.json()["run_id"]) == (409, first)
    api.post(f"/v1/runs/{first}/cancel")


def test_the_course_of_a_run_is_changed(api: LiveApi) -> None:
    run = api.submit("x", "slow")
    paused = api.post(f"/v1/runs/{run}/pause", {"reason": "lunch"})
    assert paused.json() == {"run": run, "state": "paused"}
    assert api.get(f"/v1/runs/{run}/result").json()["code"] == "not-ended"
    assert api.post(f"/v1/runs/{run}/resume").json()["state"] in ("queued", "running")
    assert api.post(f"/v1/runs/{run}/cancel", {"reason": "enough"}).json()["state"] == "cancelled"
    history = api.get(f"/v1/runs/{run}").json()["history"]
    assert [event["data"]["actor"] for event in history if "actor" in event["data"]] == [
        "local"
    ] * 3
    again = api.post(f"/v1/runs/{run}/cancel")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


def test_a_run_is_rerun_from_a_step(api: LiveApi) -> None:
    run = api.submit("Ada")
    api.ended(run)
    answer = api.post(f"/v1/runs/{run}/rerun", {"from_step": "card"})
    new = answer.json()["run"]
    assert (answer.status_code, answer.headers["location"]) == (202, f"/v1/runs/{new}")
    assert api.ended(new)["parent"] == run
    steps = {step["name"]: step for step in api.get(f"/v1/runs/{new}").json()["steps"]}
    assert steps["hello"]["inherited"]
    assert not steps["card"]["inherited"]


def test_pages_follow_one_another(api: LiveApi) -> None:
    inputs = [{"name": f"n{number}"} for number in range(5)]
    batch = api.post("/v1/pipelines/greet/runs/batch", {"inputs": inputs, "delay": 3600})
    ids = [item["run"]["id"] for item in batch.json()["items"]]
    assert batch.status_code == 202
    listed: list[str] = []
    page = api.get("/v1/runs?limit=2&state=queued")
    while True:
        listed += [run["id"] for run in page.json()["items"]]
        if page.json()["next_cursor"] is None:
            break
        page = api.get(page.links["next"]["url"])
    assert listed == ids[::-1]


def test_a_batch_with_a_wrong_input_is_refused_whole(api: LiveApi) -> None:
    answer = api.post("/v1/pipelines/greet/runs/batch", {"inputs": [{"name": "a"}, {"name": 7}]})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-input")
    assert api.get("/v1/runs").json()["items"] == []


def test_a_job_is_queued_when_it_was_put_into_a_queue(api: LiveApi) -> None:
    """Also where the worker of the same process has claimed it before the answer is written."""
    for number in range(20):
        queued = api.post("/api/v1/enqueue/greet", {"name": f"{number}"})
        assert (queued.status_code, queued.json()["status"]) == (202, "Queued")
        assert queued.json()["queued"]


@pytest.mark.parametrize("ways", [("POST", "/v1/pipelines/slow/runs"), ("GET", "/v1/runs/long")])
def test_who_waits_is_answered_when_the_service_ends(ways: tuple[str, str]) -> None:
    method, path = ways
    answers: list[httpx2.Response] = []
    with LiveApi() as api, httpx2.Client(base_url=api.url, timeout=30) as http:
        if method == "GET":
            api.submit("Ada", "slow", key="long")

        def wait() -> None:
            body = None if method == "GET" else {"input": "Ada"}
            answers.append(http.request(method, path, json=body, headers={"Prefer": "wait=60"}))

        waiting = threading.Thread(target=wait)
        waiting.start()
        while api.get("/health").json()["active_messages"] == 0:
            assert waiting.is_alive()
        api.stop()
        waiting.join(20)
    [answer] = answers
    assert answer.status_code == (200 if method == "GET" else 202)
    assert answer.json()["run"]["state"] in ("running", "queued")


def test_dead_letters_are_paged_through(api: LiveApi) -> None:
    failed = []
    for number in range(5):
        body = {"input": {"name": f"{number}", "trouble": "fail"}}
        failed.append(api.post("/v1/pipelines/greet/runs", body).json()["run"]["id"])
        api.ended(failed[-1])
    for filters in ({}, {"pipeline": "greet"}, {"since": "2020-01-01T00:00:00Z"}):
        seen: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            params = {"limit": "2", **filters, **cursor}
            page = api.get("/v1/dead-letters", params=params).json()
            seen += [letter["run"] for letter in page["items"]]
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert seen == failed[::-1]
    for filters in ({"pipeline": "slow"}, {"since": "2100-01-01T00:00:00Z"}):
        nothing = api.get("/v1/dead-letters", params=filters).json()
        assert nothing == {"items": [], "next_cursor": None}
    assert api.get("/v1/dead-letters?cursor=run:nobody").status_code == 422


def test_a_run_is_resumed_with_a_number_of_attempts_that_can_be(api: LiveApi) -> None:
    body = {"input": {"name": "Ada", "trouble": "fail"}}
    run = api.post("/v1/pipelines/greet/runs", body).json()["run"]["id"]
    for attempts in (-1, 0, 1_000_001, 2**63, 10**30):
        api.ended(run)
        refused = api.post(f"/v1/runs/{run}/resume", {"attempts": attempts})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid-input"), attempts
    for attempts in (1, 1_000_000, 1_000_000):
        assert api.post(f"/v1/runs/{run}/resume", {"attempts": attempts}).status_code == 200
        assert api.ended(run)["state"] == "failed"
