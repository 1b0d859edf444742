"""The state of a run as the report service's tools read it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from tests.unit.test_views import finished, report

from holdfast import Pipeline
from holdfast.adapters.memory.documents import MemoryDocuments
from holdfast.apps.compat.state_documents import LIFE, LIFE_OF_FAILED, state_documents
from holdfast.engine.snapshots import Snapshots
from holdfast.model.projection import Document, Removal

__all__ = ["finished"]


def documents(engine: Any, pipeline: Pipeline[Any], run: Any) -> dict[str, Document | Removal]:
    snapshots = Snapshots(engine.store, engine.app.runtime.payloads)
    reading = snapshots.read(run.id, engine.clock.now(), list(pipeline.steps), results=True)
    return {change.key: change for change in state_documents.documents(engine.call(reading))}


def state(engine: Any, pipeline: Pipeline[Any], run: Any, id: str | None = None) -> Any:
    document = documents(engine, pipeline, run)[f"pipeline_state:{id or run.id}"]
    assert isinstance(document, Document)
    return msgspec.json.decode(document.body)


def test_it_has_the_names_of_the_report_service(finished):
    document = state(*finished, id="k")
    assert set(document) == {
        "version", "reportId", "userId", "createdAt", "updatedAt", "status", "stepAnalytics",
        "completedResults", "validationFailures", "totalTokens", "totalCost", "totalDurationMs",
    }  # fmt: skip
    assert (document["version"], document["status"], document["userId"]) == (
        "1.0",
        "completed",
        "acme",
    )
    assert document["reportId"] == "k"
    assert document["stepAnalytics"]["claims"]["totalTokens"] == 33
    assert document["stepAnalytics"]["cruxes"]["status"] == "skipped"
    assert document["totalTokens"] == 148


def test_results_carry_data_usage_and_cost(finished):
    results = state(*finished, id="k")["completedResults"]
    assert {step: result["data"] for step, result in results.items()} == {
        "clustering": "x",
        "claims": 6,
        "summaries": 6,
    }
    assert results["clustering"] == {
        "data": "x",
        "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110},
        "cost": 0.5,
    }


def test_a_failed_run_names_the_step_and_the_error_and_goes_after_an_hour(lab):
    pipeline = report(break_at="summaries")
    engine = lab(pipeline)
    run = engine.submit(pipeline, "x")
    engine.drain()
    state_documents = state(engine, pipeline, run)
    assert (state_documents["status"], state_documents["currentStep"]) == ("failed", "summaries")
    assert state_documents["error"] == {
        "message": "the model refused",
        "name": "Permanent",
        "step": "summaries",
    }
    assert state_documents["stepAnalytics"]["summaries"]["errorName"] == "Permanent"
    document = documents(engine, pipeline, run)[f"pipeline_state:{run.id}"]
    assert isinstance(document, Document)
    assert (document.ttl, LIFE) == (LIFE_OF_FAILED, 24 * LIFE_OF_FAILED)


def test_a_cancelled_run_is_a_failure_that_says_so(lab):
    pipeline = report()
    engine = lab(pipeline)
    run = engine.submit(pipeline, "x")
    engine.operate("cancel", run.id, reason="wrong file")
    document = state(engine, pipeline, run)
    assert (document["status"], document["error"]) == (
        "failed",
        {"message": "wrong file", "name": "Cancelled"},
    )


def test_the_lock_is_there_while_a_worker_has_the_run(lab):
    pipeline = report()
    engine = lab(pipeline)
    run = engine.submit(pipeline, "x", key="r-1")
    assert documents(engine, pipeline, run)["pipeline_lock:r-1"] == Removal("pipeline_lock:r-1")
    engine.advance(5.0)
    lock = documents(engine, pipeline, run)["pipeline_lock:r-1"]
    assert isinstance(lock, Document)
    assert lock.body == engine.info(run).worker


def test_results_that_failed_validation_are_counted_in_keys_of_their_own(lab):
    pipeline = report()
    engine = lab(pipeline)
    run = engine.submit(pipeline, "x", key="r-1")
    engine.advance(5.0)
    engine.kill()
    engine.damage(run, "claims")
    engine.advance(60.0)
    document = documents(engine, pipeline, run)
    counter = document["pipeline_validation_failure:r-1:claims"]
    assert isinstance(counter, Document)
    assert counter.body == "1"
    assert state(engine, pipeline, run, id="r-1")["validationFailures"] == {"claims": 1}


@pytest.mark.parametrize("label", ["userId", "user_id"])
def test_who_asked_is_the_label_or_else_the_tenant(lab, label):
    from holdfast.model.commands import Submit

    pipeline = report()
    engine = lab(pipeline)
    run = engine.submit(pipeline, "x", tenant="acme")
    assert state(engine, pipeline, run)["userId"] == "acme"
    labelled = Submit("r9", "acme", "report", "default", '"x"', "f", labels={label: "ann"})
    engine.call(engine.store.apply([labelled]))
    run.id = "r9"
    assert state(engine, pipeline, run)["userId"] == "ann"


def test_a_worker_keeps_the_documents_up_to_date(lab):
    pipeline = report()
    pipeline.steps["summaries"].timeout = pipeline.timeout = 7200.0
    documents = MemoryDocuments()
    engine = lab(pipeline, documents=documents, projections=["state_documents"])
    engine.submit(pipeline, "x", key="r-1")
    engine.advance(5.0)

    def read(key: str) -> Any:
        body = documents.read(key)
        return None if body is None else json.loads(body)

    document = read("pipeline_state:r-1")
    assert (document["status"], document["currentStep"]) == ("running", "summaries")
    assert set(document["completedResults"]) == {"clustering", "claims"}
    assert documents.read("pipeline_lock:r-1")
    engine.drain()
    engine.advance(2.0)
    assert read("pipeline_state:r-1")["status"] == "completed"
    assert documents.read("pipeline_lock:r-1") is None
