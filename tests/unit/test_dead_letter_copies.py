"""Copies of dead letters, and the seeds' shapes of what leaves."""

from __future__ import annotations

import asyncio
import json

import pytest

from holdfast import CommittedEvent, Holdfast, Permanent, Pipeline, Receive
from holdfast.adapters.inprocess.bus import InProcessBus
from holdfast.apps.compat.jobs import job_dead_letters, job_results
from holdfast.errors import ConfigurationError
from holdfast.model.dead_letter_copies import dead_letter_copies
from holdfast.model.options import PipelineOptions
from holdfast.ports.bus import Message
from holdfast.settings import load

RECEIVE = Receive("orders", "jobs", dead_letter_topic="orders-dlq")


def jobs() -> Pipeline:
    pipeline = Pipeline("jobs", input=dict)

    @pipeline.step
    def work(request: dict) -> int:
        raise Permanent("the machine is broken")

    return pipeline


def test_what_a_topic_brought_and_can_not_go_on_is_published():
    async def story():
        bus = InProcessBus()
        copies = bus.subscribe("orders-dlq", "test")
        projections = [dead_letter_copies(RECEIVE)]
        async with Holdfast("memory:", [jobs()], bus=bus, projections=projections) as app:
            await app.receive(RECEIVE)
            await bus.publish("orders", Message("m1", b"{", {"kind": "a"}))
            await bus.publish("orders", Message("m2", b'{"n":1}', {"kind": "b"}))
            run = await app.submit("jobs", {"n": 2})  # came by no message: nobody's copy
            await run.wait()
            async with asyncio.timeout(20):
                return [(await anext(copies)).message for _ in range(2)]

    published = {m.attributes["kind"]: m for m in asyncio.run(story())}
    assert published["a"].body == b"{"
    assert published["a"].attributes["dead-letter-id"] == "message:orders:m1"
    assert json.loads(published["b"].body) == {"n": 1}
    assert "the machine is broken" in published["b"].attributes["dead-letter-reason"]
    assert published["b"].attributes["message-id"] == "m2"


def test_copies_have_to_be_declared():
    async def story():
        async with Holdfast("memory:", [jobs()], bus=InProcessBus(), worker=False) as app:
            with pytest.raises(ConfigurationError, match="has to be declared"):
                await app.receive(RECEIVE)

    asyncio.run(story())


def event(type: str, data: dict, **more) -> CommittedEvent:
    before, after = more.pop("states", ("running", "failed"))
    return CommittedEvent(
        id="r1:3", type=type, seq=3, at=1_700_000_000.0, data=data, text="", before=before,
        after=after, run="r1", tenant="t", pipeline="p", **more,
    )  # fmt: skip


def test_a_run_without_a_key_goes_by_its_id():
    completed = event("run.completed", {"execution_time_ms": 7}, states=("running", "succeeded"))
    [(id, message)] = job_results("out").messages(completed)
    assert (id, message.topic, message.ordering_key) == ("job_results:r1:3", "out", "r1")
    assert message.body == {
        "job_id": "r1",
        "status": "completed",
        "output": None,
        "error": None,
        "execution_time_ms": 7,
    }


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"job_id": 5}', b"\xff", b"[" * 5000])
def test_a_dead_letter_of_a_message_without_a_job_id_has_none(body):
    dead = event("message.dead_lettered", {"reason": "odd", "source": "t"}, body=body,
                 states=(None, None))  # fmt: skip
    [(_, message)] = job_dead_letters("dlq").messages(dead)
    assert (message.body["job_id"], message.body["error"]) == (None, "odd")


def test_dead_letters_of_projections_are_no_jobs():
    dead = event("message.dead_lettered", {"reason": "x", "source": "projection:job_results"})
    assert job_dead_letters("dlq").messages(dead) == []


def test_settings_of_one_pipeline_lie_over_those_of_all(tmp_path):
    (tmp_path / "holdfast.toml").write_text(
        '[pipeline]\nmax_attempts = 10\ntimeout = "15m"\n'
        '[pipelines.jobs]\ntimeout = "1h"\nbackoff = "5s"\n'
    )
    loaded = load(env={"HOME": str(tmp_path)}, cwd=tmp_path)
    app = Holdfast.from_settings(loaded, [jobs(), Pipeline("other")], worker=False)
    declared, other = app.pipelines["jobs"], app.pipelines["other"]
    assert (declared.timeout, declared.max_attempts) == (3600.0, 10)
    assert declared.steps["work"].retry.base == 5.0
    assert (other.timeout, other.max_attempts) == (900.0, 10)


def test_a_pipeline_itself_is_not_changed_by_settings():
    pipeline = jobs()
    changed = pipeline.with_options(PipelineOptions(backoff=9.0, max_attempts=1))
    assert (pipeline.max_attempts, pipeline.steps["work"].retry.base) == (5, 1.0)
    assert (changed.max_attempts, changed.steps["work"].retry.base) == (1, 9.0)


def test_a_wrong_setting_of_a_pipeline_says_what_there_is(tmp_path):
    (tmp_path / "holdfast.toml").write_text("[pipelines.jobs]\nretries = 3\n")
    with pytest.raises(ConfigurationError, match=r"pipeline 'jobs': retries is unknown; use timeo"):
        load(env={"HOME": str(tmp_path)}, cwd=tmp_path)
