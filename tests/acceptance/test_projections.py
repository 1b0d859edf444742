"""Projections as people run them: real workers, files that others read, the commands."""

from __future__ import annotations

import json

import pytest

APP = """
from holdfast import Document, Outgoing, Pipeline

jobs = Pipeline("jobs")


@jobs.step
def work(input: dict) -> int:
    return input["n"] * 2


@jobs.publishes(events=["run.completed"])
def results(event):
    return Outgoing("results", {"job": event.subject, "output": event.result})


@jobs.publishes(events=["run.queued"])
def picky(event):
    return Outgoing("picky", event.input["must"])


@jobs.documents
def states(snapshot):
    return Document(f"jobs/{snapshot.subject}.json", {"state": snapshot.run.state})
"""


@pytest.fixture
def jobs(cli):
    """Two runs were executed by a worker that has a bus and documents."""
    (cli.folder / "jobs.py").write_text(APP)
    options = ("--app", "jobs.py")
    cli.env |= {"HOLDFAST_BUS": "memory:", "HOLDFAST_DOCUMENTS": "file:./documents"}
    for n in (1, 2):
        cli(*options, "run", "jobs", "--no-wait", "-i", f"n:={n}", "--idempotency-key", f"j-{n}")
    cli(*options, "worker", "--once")
    return cli


def listed(cli):
    return {view["name"]: view for view in cli("projections", "list", "--json").json["items"]}


def document(cli, name):
    path = cli.folder / "documents" / "jobs" / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def test_a_worker_leaves_nothing_unsent(jobs):
    views = listed(jobs)
    assert set(views) == {"events", "jobs.results", "jobs.picky", "jobs.states"}
    assert {view["behind"] for view in views.values()} <= {0, 2}  # two dead letters of picky
    assert views["jobs.states"]["kind"] == "documents"
    assert document(jobs, "j-1") == document(jobs, "j-2") == {"state": "succeeded"}


def test_what_failed_for_good_is_listed_and_can_be_redriven(jobs):
    assert listed(jobs)["jobs.picky"]["error"] == "'must'"
    letters = jobs("dlq", "list", "--json").json["items"]
    assert [letter["source"] for letter in letters] == ["projection:jobs.picky"] * 2
    refused = jobs("dlq", "redrive", letters[0]["id"], code=6).out
    assert "projection 'jobs.picky', which does not run here" in refused
    changed = APP.replace('event.input["must"]', "event.input")
    (jobs.folder / "jobs.py").write_text(changed)
    jobs("--app", "jobs.py", "dlq", "redrive", letters[0]["id"])
    assert len(jobs("dlq", "list", "--json").json["items"]) == 1


def test_documents_are_rebuilt_after_their_function_was_changed(jobs):
    (jobs.folder / "jobs.py").write_text(APP.replace('"state"', '"status"'))
    answer = jobs("projections", "rebuild", "jobs.states", "--json").json
    assert answer == {"projection": "jobs.states", "rebuilt": True}
    jobs("--app", "jobs.py", "worker", "--once")
    assert document(jobs, "j-1") == {"status": "succeeded"}


def test_messages_are_sent_again_only_when_somebody_says_so(jobs):
    assert "add --yes" in jobs("projections", "rebuild", "jobs.results", code=2).err
    jobs("projections", "rebuild", "jobs.results", "--yes")
    assert listed(jobs)["jobs.results"]["position"] == 0


def test_a_dropped_projection_is_gone(jobs):
    jobs("projections", "drop", "jobs.results", "--yes")
    assert "jobs.results" not in listed(jobs)
    assert "no projection 'jobs.results'" in jobs("projections", "drop", "jobs.results", code=7).err
    assert "no projection 'x'" in jobs("projections", "rebuild", "x", code=7).err


def test_the_table_says_what_there_is(jobs):
    table = jobs("projections", "list").out
    assert "PROJECTION" in table
    assert "'must'" in table


def test_state_documents_are_there_for_who_asks_for_them(jobs):
    jobs.env["HOLDFAST_PROJECTIONS"] = "state_documents"
    jobs("--app", "jobs.py", "worker", "--once")
    state = json.loads((jobs.folder / "documents" / "pipeline_state:j-1").read_text())
    assert (state["reportId"], state["status"]) == ("j-1", "completed")
    assert state["completedResults"]["work"]["data"] == 2
    document = jobs("--app", "jobs.py", "runs", "show", "j-1", "--format", "state").json
    assert document == state
    jobs.env["HOLDFAST_PROJECTIONS"] = "state_document"
    wrong = jobs("--app", "jobs.py", "worker", "--once", code=2).err
    assert "did you mean 'state_documents'?" in wrong


def test_check_names_projections(jobs):
    assert "events, jobs.results, jobs.picky, jobs.states" in jobs("--app", "jobs.py", "check").out


RELAY = """
from holdfast import Document, DocumentProjection, Holdfast


def names(snapshot):
    return Document(f"names/{snapshot.subject}.json", {"tenant": snapshot.run.tenant})


app = Holdfast(projections=[DocumentProjection(name="names", function=names)])
"""


def test_a_worker_may_have_projections_alone(jobs):
    (jobs.folder / "relay.py").write_text(RELAY)
    assert "none" in jobs("--app", "relay.py:app", "check").out
    worker = jobs("--app", "relay.py:app", "worker", "--once")
    assert "serves projections alone" in worker.err
    assert listed(jobs)["names"]["behind"] == 0
    assert (jobs.folder / "documents" / "names" / "j-1.json").exists()
