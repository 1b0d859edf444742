"""Every route that changes something leaves who did it: in the audit log or, for what happens to
one run, in its history; a submission with the run itself. The routes are walked, so that a new one
can't be forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.integration.api.live import LiveApi, greet, slow
from tests.integration.api.test_tenants import ROUTES

from holdfast import Lane, Pipeline
from holdfast.apps.report import report

ordered: Pipeline[Any] = Pipeline("ordered", input=str, lane=Lane("ordered", "fifo"))
creative: Pipeline[Any] = Pipeline("creative", input=dict)
metadata: Pipeline[Any] = Pipeline("metadata", input=dict)


@ordered.step
@creative.step
@metadata.step
def wait(input: Any) -> Any:
    return input


class Harness:
    """A service with an administrator's key; `changes` are calls of every route that changes
    something."""

    def __init__(self, api: LiveApi) -> None:
        self.api = api
        self.headers = {"Holdfast-Tenant": "*"}
        created = self.ask("POST", "/v1/keys", {"tenant": "default", "scopes": ["admin"]})
        self.headers["X-Api-Key"] = created["text"]
        self.actor = f"key {created['key']['id']}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.api.http.request(method, path, json=body, headers=self.headers)
        assert answer.status_code < 300, (method, path, answer.text)
        return answer.json() if answer.content else None

    def trace(self) -> list[str]:
        """Everything that is kept about who did what: audit entries, and events with an actor."""
        entries = self.ask("GET", "/v1/audit?limit=1000")["items"]
        log = [f"{entry['actor']}: {entry['action']} {entry['target']}" for entry in entries]
        events = self.ask("GET", "/v1/events?after=0")["items"]
        return log + [
            f"{event['data']['actor']}: {event['type']} {event['id']}"
            for event in events
            if isinstance(event["data"], dict) and event["data"].get("actor")
        ]

    # --- what is changed --------------------------------------------------------------------------

    def waiting(self) -> str:
        body = {"input": {"name": "Ada"}, "delay": 3600}
        return self.ask("POST", "/v1/pipelines/greet/runs", body)["run"]["id"]

    def done(self, **input: Any) -> str:
        body = {"input": {"name": "Ada", **input}}
        run = self.ask("POST", "/v1/pipelines/greet/runs", body)["run"]["id"]
        headers = self.headers | {"Prefer": "wait=20"}
        self.api.get(f"/v1/runs/{run}", headers=headers)
        return run

    def letter(self) -> str:
        return f"run:{self.done(trouble='fail')}"

    def paused(self) -> str:
        run = self.waiting()
        self.ask("POST", f"/v1/runs/{run}/pause")
        return run

    def tenant(self) -> str:
        name = f"t{len(self.ask('GET', '/v1/tenants')['items'])}"
        self.ask("POST", "/v1/tenants", {"name": name})
        return name

    def key(self) -> str:
        return self.ask("POST", "/v1/keys", {"tenant": self.tenant()})["key"]["id"]

    def webhook(self) -> str:
        return self.ask("POST", "/v1/webhooks", {"url": "http://127.0.0.1:9/"})["id"]

    def delivery(self) -> str:
        hook = self.webhook()
        tested = self.ask("POST", f"/v1/webhooks/{hook}/test")
        return f"{hook}/deliveries/{tested['event']}"

    def lock(self) -> str:
        self.api.call(self.api.holdfast.lock("night", wait=0).acquire())
        return "night"

    def projection(self) -> str:
        from holdfast.adapters.records import StoreRecords
        from holdfast.engine import cursors

        records = StoreRecords(self.api.holdfast.store)
        self.api.call(cursors.register(records, "old", "messages", 0))
        return "old"


Call = Callable[[Harness], tuple[str, Any]]
"""Makes what a route needs; gives its path and body."""

ROWS = [{"id": "0", "comment": "Buses should run later."}]
SUBMITS: dict[tuple[str, str], tuple[str, Any]] = {
    ("POST", "/v1/pipelines/{pipeline}/runs"): (
        "/v1/pipelines/greet/runs",
        {"input": {"name": "Ada"}},
    ),
    ("POST", "/v1/pipelines/{pipeline}/runs/batch"): (
        "/v1/pipelines/greet/runs/batch",
        {"inputs": [{"name": "Ada"}]},
    ),
    ("POST", "/pipelines/run/{pipeline_id}"): ("/pipelines/run/greet", {"name": "Ada"}),
    ("POST", "/pipelines/batch/publish"): (
        "/pipelines/batch/publish",
        {"tenant_ids": ["default"], "pipeline_id": "greet", "parameters": {"name": "Ada"}},
    ),
    ("POST", "/pipeline/run"): ("/pipeline/run", {"content": "An advertisement."}),
    ("POST", "/api/v1/enqueue/{pipeline}"): ("/api/v1/enqueue/greet", {"name": "Ada"}),
    ("POST", "/create"): ("/create", {"userConfig": {"title": "Buses"}, "data": ["csv", ROWS]}),
    ("POST", "/jobs"): ("/jobs", {"youtubeUrl": "https://example.org/talk.mp3"}),
}
"""They make runs; a run keeps who submitted it."""

CHANGES: dict[tuple[str, str], Call] = {
    ("POST", "/v1/runs/{run}/cancel"): lambda s: (f"/v1/runs/{s.waiting()}/cancel", {}),
    ("POST", "/v1/runs/{run}/pause"): lambda s: (f"/v1/runs/{s.waiting()}/pause", {}),
    ("POST", "/v1/runs/{run}/resume"): lambda s: (f"/v1/runs/{s.paused()}/resume", {}),
    ("POST", "/v1/runs/{run}/rerun"): lambda s: (f"/v1/runs/{s.done()}/rerun", {}),
    ("POST", "/v1/dead-letters/{id:path}/redrive"): lambda s: (
        f"/v1/dead-letters/{s.letter()}/redrive",
        None,
    ),
    ("POST", "/v1/dead-letters/{id:path}/discard"): lambda s: (
        f"/v1/dead-letters/{s.letter()}/discard",
        {},
    ),
    ("POST", "/v1/lanes/{lane}/step-down"): lambda s: ("/v1/lanes/ordered/step-down", {}),
    ("POST", "/v1/locks/{lock:path}/release"): lambda s: (f"/v1/locks/{s.lock()}/release", {}),
    ("POST", "/v1/projections/{projection}/rebuild"): lambda s: (
        f"/v1/projections/{s.projection()}/rebuild",
        None,
    ),
    ("DELETE", "/v1/projections/{projection}"): lambda s: (
        f"/v1/projections/{s.projection()}",
        None,
    ),
    ("POST", "/v1/tenants"): lambda s: ("/v1/tenants", {"name": "new"}),
    ("PATCH", "/v1/tenants/{tenant}"): lambda s: (f"/v1/tenants/{s.tenant()}", {"enabled": False}),
    ("DELETE", "/v1/tenants/{tenant}"): lambda s: (f"/v1/tenants/{s.tenant()}", None),
    ("POST", "/v1/keys"): lambda s: ("/v1/keys", {"tenant": s.tenant()}),
    ("POST", "/v1/keys/{key}/rotate"): lambda s: (f"/v1/keys/{s.key()}/rotate", {}),
    ("POST", "/v1/keys/{key}/revoke"): lambda s: (f"/v1/keys/{s.key()}/revoke", {}),
    ("POST", "/v1/webhooks"): lambda s: ("/v1/webhooks", {"url": "http://127.0.0.1:9/"}),
    ("DELETE", "/v1/webhooks/{webhook}"): lambda s: (f"/v1/webhooks/{s.webhook()}", None),
    ("POST", "/v1/webhooks/{webhook}/rotate"): lambda s: (
        f"/v1/webhooks/{s.webhook()}/rotate",
        None,
    ),
    ("POST", "/v1/webhooks/{webhook}/enable"): lambda s: (
        f"/v1/webhooks/{s.webhook()}/enable",
        None,
    ),
    ("POST", "/v1/webhooks/{webhook}/test"): lambda s: (f"/v1/webhooks/{s.webhook()}/test", None),
    ("POST", "/v1/webhooks/{webhook}/deliveries/{event}/replay"): lambda s: (
        f"/v1/webhooks/{s.delivery()}/replay",
        None,
    ),
    ("DELETE", "/pipelines/runs/{pipeline_logging_id}"): lambda s: (
        f"/pipelines/runs/{s.waiting()}",
        None,
    ),
    ("POST", "/api/v1/clear-queue"): lambda s: (
        "/api/v1/clear-queue?queue=default",
        {"mode": "all"} if s.waiting() else {},
    ),
}


@pytest.fixture(scope="module")
def harness():
    with LiveApi(pipelines=(greet, slow, ordered, creative, metadata, report)) as api:
        yield Harness(api)


def test_every_route_that_changes_something_is_here() -> None:
    changing = {route for route in ROUTES if route[0] not in ("GET", "HEAD")}
    assert changing == set(CHANGES) | set(SUBMITS)


@pytest.mark.parametrize("route", SUBMITS, ids=" ".join)
def test_a_run_says_who_submitted_it(harness: Harness, route: tuple[str, str]) -> None:
    path, body = SUBMITS[route]
    before = {run["id"] for run in harness.ask("GET", "/v1/runs")["items"]}
    harness.ask("POST", path, body)
    [run] = [run for run in harness.ask("GET", "/v1/runs")["items"] if run["id"] not in before]
    attributes = harness.ask("GET", f"/v1/runs/{run['id']}")["attributes"]
    assert attributes["submitted-by"].startswith(harness.actor)


@pytest.mark.parametrize("route", CHANGES, ids=" ".join)
def test_a_change_says_who_made_it(harness: Harness, route: tuple[str, str]) -> None:
    method, _ = route
    path, body = CHANGES[route](harness)
    before = harness.trace()
    harness.ask(method, path, body)
    after = harness.trace()
    for entry in before:
        after.remove(entry)
    assert after, "it left no trace"
    assert all(entry.startswith(f"{harness.actor}") for entry in after), after
