"""Events over HTTP: streams that can be gone on with, and JSON for everybody else; on every
store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.integration.api.live import LiveApi

from holdfast.errors import StoreUnavailable
from holdfast.ports.store import Store
from holdfast.services import event_hub

STREAM = {"Accept": "text/event-stream"}


def read(
    response: httpx2.Response | Iterator[str], until: str = "end", most: int = 100
) -> list[dict[str, Any]]:
    """The events of a stream, up to one of that type."""
    lines = response.iter_lines() if isinstance(response, httpx2.Response) else response
    events: list[dict[str, Any]] = []
    event: dict[str, Any] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if name in ("id", "event", "data"):
            event[name] = json.loads(value) if name == "data" else value
        elif not line and event:
            events.append(event)
            if until in event["event"] or len(events) == most:
                break
            event = {}
    return events


def test_a_stream_follows_a_run_to_its_end(api: LiveApi) -> None:
    run = api.submit("Ada")
    with api.http.stream("GET", f"/v1/runs/{run}/events", headers=STREAM) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = read(response)
    assert [event.get("id") for event in events] == ["1", "2", "3", "4", "5", None]
    assert events[0]["event"] == "dev.holdfast.run.queued.v1"
    assert events[-2]["data"]["id"] == f"{run}:5"
    assert events[-2]["data"]["type"] == "dev.holdfast.run.completed.v1"
    assert events[-1] == {"event": "end", "data": {}}


def test_a_stream_goes_on_where_it_was_left(api: LiveApi) -> None:
    run = api.submit("Ada")
    api.ended(run)
    for last, expected in (("3", ["4", "5", None]), ("5", [None])):
        headers = STREAM | {"Last-Event-ID": last}
        with api.http.stream("GET", f"/v1/runs/{run}/events", headers=headers) as response:
            assert [event.get("id") for event in read(response)] == expected


def test_a_failure_that_was_resumed_is_not_the_end(api: LiveApi) -> None:
    input = {"name": "Eve", "trouble": "fail"}
    run = api.post("/v1/pipelines/greet/runs", {"input": input}).json()["run"]["id"]
    api.ended(run)
    api.post(f"/v1/runs/{run}/resume")
    api.ended(run)
    with api.http.stream("GET", f"/v1/runs/{run}/events", headers=STREAM) as response:
        types = [event["event"].removeprefix("dev.holdfast.") for event in read(response)]
    assert types.count("run.failed.v1") == 2
    assert types.index("run.resumed.v1") < types.index("end") == len(types) - 1


def test_history_is_json_for_others_and_can_be_waited_for(api: LiveApi) -> None:
    run = api.submit("x", "slow")
    first = api.get(f"/v1/runs/{run}/events", headers={"Prefer": "wait=20"}).json()["items"]
    assert first[0]["type"] == "run.queued"
    while first[-1]["type"] != "run.started":
        more = api.get(
            f"/v1/runs/{run}/events?after={first[-1]['seq']}", headers={"Prefer": "wait=20"}
        )
        first += more.json()["items"]
    api.post(f"/v1/runs/{run}/cancel")
    path = f"/v1/runs/{run}/events?after={first[-1]['seq']}"
    assert [event["type"] for event in api.get(path).json()["items"]] == ["run.cancelled"]


def test_the_feed_has_the_events_of_all_runs(api: LiveApi) -> None:
    before = api.submit("Ada")
    api.ended(before)
    with api.http.stream("GET", "/v1/events", headers=STREAM) as response:
        lines = response.iter_lines()
        assert next(lines).startswith("retry")
        run = api.submit("Bob")
        events = read(lines, until="completed")
    assert {event["data"]["subject"] for event in events} == {run}
    everything = api.get("/v1/events?after=0").json()
    assert {event["id"].partition(":")[0] for event in everything["items"]} == {before, run}
    assert api.get(f"/v1/events?after={everything['next_cursor']}").json()["items"] == []
    headers = STREAM | {"Last-Event-ID": "0"}
    with api.http.stream("GET", "/v1/events", headers=headers) as response:
        again = read(response, until="never", most=10)
    assert len({event["id"] for event in again}) == 10


@pytest.mark.parametrize("last", ["x", "-1", "9" * 40])
def test_a_last_event_id_that_is_none_is_a_problem(memory_api: LiveApi, last: str) -> None:
    run = memory_api.submit()
    headers = STREAM | {"Last-Event-ID": last}
    answer = memory_api.get(f"/v1/runs/{run}/events", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-input")


def test_streams_end_when_the_process_does() -> None:
    with LiveApi() as api:
        run = api.submit("x", "slow")
        with api.http.stream("GET", f"/v1/runs/{run}/events", headers=STREAM) as response:
            lines = response.iter_lines()
            assert read(lines, until="started")
            api.stop()
            assert [line for line in lines if line.startswith("event")] == []


def test_a_stream_ends_when_the_store_is_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also before its first event: a client comes again."""

    async def away(store: Store) -> int:
        raise StoreUnavailable("the store is away")

    monkeypatch.setattr(event_hub, "find_end", away)
    with LiveApi() as api:
        for path in ("/v1/events", f"/v1/runs/{api.submit()}/events"):
            stream = api.get(path, headers=STREAM)
            assert (stream.status_code, stream.content) == (200, b"")
    assert [record.levelname for record in caplog.records if "stream" in record.message] == [
        "WARNING",
        "WARNING",
    ]
