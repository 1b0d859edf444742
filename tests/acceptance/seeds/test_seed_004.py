"""Two stages on one work topic: metadata, then transcription, with domain events for all that
happens.

Tests are named after the rows of the list of features; see conftest.py."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.server
import json
import re
import threading
from typing import Any
from urllib.parse import quote

import pytest
from msgspec.structs import replace
from tests.acceptance.seeds.pubsub_deployment import PubSubDeployment
from tests.acceptance.seeds.web import STORES as WEB_STORES
from tests.bucket_servers import fresh_name, shared_gcs
from tests.deploy.descriptions import ROOT, cloud_run, container, terraform, terraform_locals
from tests.emulators import fresh_project, shared_pubsub
from tests.integration.api.live import LiveApi, store_url
from tests.integration.pubsub.test_push import ACCOUNT, AUDIENCE, PushService, envelope
from tests.integration.test_alerts import ALERTS, DASHBOARD, TESTS, named, promtool
from tests.redis_server import free_port, fresh_prefix, shared_server
from tests.speech import TALK, recording
from tests.unit.transcription.harness import FIRST as METADATA_STAGE
from tests.unit.transcription.harness import FakeTranscriber, Harness
from tests.unit.transcription.harness import work as work_message
from tests.unit.transcription.test_hosted import VIDEO, Answers

from holdfast import CommittedEvent, Holdfast, Outgoing, Permanent, Pipeline, Transient
from holdfast.adapters.inprocess.bus import InProcessBus
from holdfast.adapters.pubsub.bus import PubSubBus
from holdfast.adapters.pubsub.signing_keys import SigningKeys
from holdfast.adapters.pubsub.tokens import TokenVerifier
from holdfast.adapters.redis.bus import RedisBus
from holdfast.apps.compat.job_events import STATUS, job_events
from holdfast.apps.transcription import metadata as metadata_stage
from holdfast.apps.transcription.testing import word_error_rate
from holdfast.bootstrap import Options
from holdfast.bootstrap.pubsub import receives, topology
from holdfast.errors import ConfigurationError, Conflict, StoreUnavailable
from holdfast.model.cloudevent import to_attributes, unwrap
from holdfast.model.commands import Submit
from holdfast.model.filters import Filter
from holdfast.model.metrics import BY_NAME
from holdfast.model.receive import Receive
from holdfast.model.run import TRANSITIONS, RunState
from holdfast.ports.bus import Bus, Message
from holdfast.ports.store import RunFilter
from holdfast.services.discovery import discover
from holdfast.services.projections import rebuild_projection
from holdfast.settings import load
from holdfast.testing import TestEngine
from holdfast.testing.google_tokens import TokenService

ROWS = 57
OPEN = {}

WORK, EVENTS = "job-processing", "job-events"
METADATA = Receive(WORK, "metadata", "metadata-worker-subscription", "NOT attributes:worker-type")
TRANSCRIPTION = Receive(
    WORK,
    "transcription",
    "transcription-worker-subscription",
    'attributes.worker-type = "transcription"',
)
JOB = {"id": "job_7", "requestId": "req_1", "media": {"url": "https://example.org/v"}}


def stages(broken: bool = False) -> list[Pipeline[Any]]:
    metadata: Pipeline[Any] = Pipeline("metadata", input=dict, key=lambda job: f"{job['id']}:1")
    transcription: Pipeline[Any] = Pipeline("transcription", input=dict, key=lambda job: job["id"])

    @metadata.step
    async def enrich(request: dict) -> dict:
        return {**request, "metadata": {"title": "A talk"}}

    @metadata.publishes(events=["run.completed"], name="hand_over")
    def hand_over(event: CommittedEvent) -> Outgoing:
        return Outgoing(WORK, event.result, {"worker-type": "transcription"}, event.subject)

    @transcription.step(max_attempts=1)
    async def transcribe(request: dict) -> str:
        if broken:
            raise Permanent("no sound in it")
        return f"transcript of {request['metadata']['title']}"

    return [metadata, transcription]


class Outcome:
    """What was published while messages were processed, and the app's runs and dead letters."""

    def __init__(self) -> None:
        self.events: list[Message] = []
        self.runs: list[Any] = []
        self.letters: list[Any] = []

    def bodies(self, kind: str) -> list[dict[str, Any]]:
        unique = {m.id: m for m in self.events if m.attributes["event-type"] == kind}
        return [json.loads(message.body) for message in unique.values()]


def receive_messages(
    bus: Bus, *messages: Message, runs: int, letters: int = 0, broken: bool = False
) -> Outcome:
    """Publish messages, wait until there are this many runs and dead letters and everything is
    published."""
    outcome = Outcome()

    async def story() -> None:
        pipelines = stages(broken)
        await bus.open()
        deliveries = bus.subscribe(EVENTS, "reader")
        await deliveries.begun()
        options = {"bus": bus, "projections": [job_events(EVENTS)]}
        async with Holdfast("memory:", pipelines, **options) as app:
            await app.receive(METADATA)
            await app.receive(TRANSCRIPTION)
            for message in messages:
                await bus.publish(WORK, message)
            async with asyncio.timeout(30):
                while len(outcome.events) < 3 * runs + (1 if broken else 0):
                    delivery = await anext(deliveries)
                    outcome.events.append(delivery.message)
                    await delivery.ack()
                change = 0
                while len(buried := await app.store.dead_letters()) < letters:
                    change = await app.store.wait(change, 1.0)
            outcome.letters = buried
            outcome.runs = await app.store.runs(RunFilter())

    asyncio.run(story())
    return outcome


def work(id: str = "m-1", body: Any = JOB, **attributes: str) -> Message:
    headers = {name.replace("_", "-"): value for name, value in attributes.items()}
    return Message(id, json.dumps(body).encode(), headers)


@pytest.fixture(params=["in process", "redis", "pubsub"])
def bus(request) -> Bus:
    if request.param == "redis":
        return RedisBus(shared_server().url(fresh_prefix()))
    if request.param == "pubsub":
        return PubSubBus(f"pubsub://{fresh_project()}?emulator={shared_pubsub().host}")
    return InProcessBus()


def test_rows_02_13_14_15_19_two_stages_share_a_topic_by_filters(bus):
    outcome = receive_messages(bus, work(), runs=2)
    inputs = {run.pipeline: json.loads(run.input) for run in outcome.runs}
    assert inputs["metadata"] == JOB
    assert inputs["transcription"] == {**JOB, "metadata": {"title": "A talk"}}
    assert {run.state for run in outcome.runs} == {"succeeded"}
    handed_over = next(run for run in outcome.runs if run.pipeline == "transcription")
    assert handed_over.attributes["worker-type"] == "transcription"


def test_rows_03_04_05_every_state_change_is_an_event(bus):
    outcome = receive_messages(bus, work(requestId="req_1"), runs=2)
    [queued] = [e for e in outcome.bodies("JobQueued") if e["jobId"] == "job_7"]
    assert queued["job"]["input"]["media"] == JOB["media"]
    changes = [e for e in outcome.bodies("JobStatusChanged") if e["jobId"] == "job_7"]
    assert [(e["from"], e["to"]) for e in changes] == [
        ("Queued", "Processing"),
        ("Processing", "Completed"),
    ]
    assert {e["requestId"] for e in changes} == {"req_1"}
    assert all(e["occurredAt"].endswith("Z") for e in changes)
    ids = [message.attributes["ce-id"] for message in outcome.events]
    assert len(ids) == len(set(ids))


def test_row_04_the_topic_of_events_is_a_setting(tmp_path):
    env = {"HOME": str(tmp_path), "PUBSUB_TOPIC_EVENTS": "my-events"}
    assert load(env=env, cwd=tmp_path).settings.jobs.events_topic == "my-events"


def test_rows_07_29_a_job_that_fails_says_so_once(bus):
    outcome = receive_messages(bus, work(body={**JOB, "metadata": {}}, worker_type="transcription"),
                  runs=1, broken=True)  # fmt: skip
    [failed] = outcome.bodies("JobFailed")
    assert (failed["jobId"], failed["error"], failed["attempts"]) == ("job_7", "no sound in it", 1)
    assert failed["requestId"] == "req_1"
    [(before, after)] = [
        (e["from"], e["to"]) for e in outcome.bodies("JobStatusChanged") if e["to"] == "Failed"
    ]
    assert (before, after) == ("Processing", "Failed")


def test_row_16_an_unknown_worker_type_is_buried(bus):
    unknown = work("m-2", {**JOB, "id": "job_8"}, worker_type="nobody")
    outcome = receive_messages(bus, work(), unknown, runs=2, letters=1)
    [letter] = outcome.letters
    assert letter.id == f"message:{WORK}:m-2"
    assert "no subscription" in letter.reason


def test_row_15_a_wrong_filter_points_at_the_place():
    with pytest.raises(ConfigurationError, match=r"\^"):
        Filter("NOT attributes.worker-type")


def test_rows_08_31_56_a_delivery_that_comes_twice_is_one_job(bus):
    outcome = receive_messages(bus, work(), work(), work(), runs=2)
    assert sorted(run.key for run in outcome.runs) == ["job_7", "job_7:1"]


@pytest.mark.parametrize("broken", [False, True])
def test_row_25_states_change_along_declared_ways_only(bus, broken):
    body = {**JOB, "metadata": {"title": "x"}}
    outcome = receive_messages(
        bus, work(body=body, worker_type="transcription"), runs=1, broken=broken
    )
    states = {word: state for state, word in STATUS.items() if state != RunState.PAUSED}
    changes = [(states[e["from"]], states[e["to"]]) for e in outcome.bodies("JobStatusChanged")]
    assert len(changes) == 2
    assert all(after in TRANSITIONS[before] for before, after in changes)


@pytest.mark.parametrize("action", ["cancel", "pause", "resume"])
def test_row_25_a_completed_job_never_changes(action):
    engine = TestEngine(*stages())
    run = engine.submit(stages()[1], {**JOB, "metadata": {"title": "x"}})
    engine.drain()
    before = engine.history(run)
    with contextlib.suppress(Conflict):
        engine.call(getattr(engine.app.operations, action)(run.id, actor="ada"))
    engine.drain()
    assert engine.info(run).state == "succeeded"
    assert engine.history(run) == before
    engine.close()


@pytest.mark.parametrize(
    ("error", "tries"), [(Transient, 3), (Permanent, 1), (ConfigurationError, 1)]
)
def test_row_28_transient_errors_are_tried_again_and_others_are_not(error, tries):
    pipeline: Pipeline[Any] = Pipeline("p")
    tried: list[int] = []

    @pipeline.step(max_attempts=3)
    def work() -> int:
        tried.append(1)
        raise error("no")

    engine = TestEngine(pipeline)
    engine.submit(pipeline)
    engine.advance(120)
    engine.close()
    assert len(tried) == tries


def test_row_30_a_failed_job_keeps_its_message(bus):
    body = {**JOB, "metadata": {}}
    outcome = receive_messages(
        bus, work(body=body, worker_type="transcription"), runs=1, letters=1, broken=True
    )
    [letter] = outcome.letters
    assert json.loads(letter.body) == body


def test_row_40_what_a_step_uses_can_be_given_in_tests():
    class Clock:
        now = 5

    pipeline: Pipeline[Any] = Pipeline("p")

    @pipeline.step
    async def look(ctx) -> int:
        return ctx.use(Clock).now

    async def story():
        async with Holdfast("memory:", [pipeline], provide={Clock: Clock()}) as app:
            return await (await app.submit(pipeline)).result()

    assert asyncio.run(story()) == 5


def test_row_43_messages_are_encoded_and_decoded_alike():
    event = CommittedEvent(
        id="r:1", type="run.queued", seq=1, at=0.0, data={}, text="{}", before=None,
        after="queued", run="r", tenant="Ada@example.org", pipeline="p",
    )  # fmt: skip
    attributes = to_attributes(event, "local")
    assert attributes["ce-source"] == "/holdfast/local/Ada%40example.org/p"
    structured = {
        name.removeprefix("ce-"): value for name, value in attributes.items() if "ce-" in name
    }
    body = json.dumps({**structured, "data": JOB}).encode()
    data, decoded = unwrap(body, {"content-type": "application/cloudevents+json"})
    assert json.loads(data) == JOB
    assert decoded == attributes


def test_row_49_a_subscription_has_a_limit_of_messages_and_bytes(monkeypatch):
    assert (METADATA.max_messages, METADATA.max_bytes) == (5, 500 * 1024 * 1024)

    async def story() -> None:
        bus, release, busy, most = InProcessBus(), asyncio.Event(), [0], [0]
        async with Holdfast("memory:", stages(), bus=bus, worker=False) as app:
            apply = app.store.apply

            async def slow(commands):
                submits = sum(isinstance(command, Submit) for command in commands)
                busy[0] += submits
                most[0] = max(most[0], busy[0])
                if submits:
                    await release.wait()
                busy[0] -= submits
                return await apply(commands)

            monkeypatch.setattr(app.store, "apply", slow)
            await app.receive(replace(METADATA, max_messages=2))
            for number in range(6):
                await bus.publish(WORK, work(f"m-{number}", {**JOB, "id": f"job_{number}"}))
            async with asyncio.timeout(20):
                while busy[0] < 2:  # noqa: ASYNC110  (nothing else tells)
                    await asyncio.sleep(0)
                for _ in range(50):
                    await asyncio.sleep(0)
                assert busy[0] == 2
                release.set()
                change = 0
                while (await app.store.count(RunFilter())).get("queued") != 6:
                    change = await app.store.wait(change, 1.0)
            assert most[0] == 2

    asyncio.run(story())


def test_row_49_no_more_messages_are_pulled_than_that():
    async def story():
        bus = PubSubBus(f"pubsub://{fresh_project()}?emulator={shared_pubsub().host}")
        await bus.open()
        deliveries = bus.subscribe(WORK, METADATA.group, most=METADATA.max_messages)
        await deliveries.begun()
        for number in range(8):
            await bus.publish(WORK, work(f"m-{number}"))
        first_batch = [await asyncio.wait_for(anext(deliveries), 10) for _ in range(5)]
        others = bus.subscribe(WORK, METADATA.group)
        second_batch = [await asyncio.wait_for(anext(others), 10) for _ in range(3)]
        assert len({delivery.message.id for delivery in (*first_batch, *second_batch)}) == 8
        await bus.close()

    asyncio.run(story())


VARIABLES = {
    "PUBSUB_PROJECT_ID": "your-project-id",
    "PUBSUB_TOPIC_WORK": WORK,
    "PUBSUB_TOPIC_EVENTS": EVENTS,
    "PUBSUB_SUBSCRIPTION_METADATA": "metadata-worker-subscription",
    "PUBSUB_SUBSCRIPTION_TRANSCRIPTION": "transcription-worker-subscription",
}


def test_rows_33_34_35_the_variables_name_project_topics_and_subscriptions(tmp_path):
    loaded = load(env={"HOME": str(tmp_path), **VARIABLES}, cwd=tmp_path)
    assert Options().with_settings(loaded).bus == "pubsub://your-project-id"
    assert receives(loaded, ["metadata", "transcription"]) == (METADATA, TRANSCRIPTION)
    assert loaded.settings.jobs.events_topic == EVENTS
    assert not loaded.useless


def test_row_46_push_subscriptions_have_endpoint_filter_and_retry(tmp_path):
    push = {
        "HOLDFAST_PUSH_ENDPOINT": "https://worker-metadata.example.org/pubsub",
        "HOLDFAST_PUSH_SERVICE_ACCOUNT": "pusher@your-project-id.iam.gserviceaccount.com",
    }
    loaded = load(env={"HOME": str(tmp_path), **VARIABLES, **push}, cwd=tmp_path)
    plans = {plan.name: plan for plan in topology(loaded).subscriptions}
    plan = plans["metadata-worker-subscription"]
    assert plan.push_endpoint == "https://worker-metadata.example.org/pubsub"
    assert plan.push_service_account == "pusher@your-project-id.iam.gserviceaccount.com"
    assert plan.filter == "NOT attributes:worker-type"
    assert (plan.minimum_backoff, plan.maximum_backoff) == (10, 600)
    assert plans["transcription-worker-subscription"].filter == TRANSCRIPTION.filter


def test_row_50_operations_inside_a_job_run_at_once():
    pipeline: Pipeline[Any] = Pipeline("p")
    together = asyncio.Barrier(3)

    @pipeline.step
    async def work(ctx) -> list[int]:
        async def meet(number: int) -> int:
            await together.wait()
            return number

        return await ctx.map(meet, [1, 2, 3])

    async def story():
        async with Holdfast("memory:", [pipeline]) as app:
            return await (await app.submit(pipeline)).result(10)

    assert asyncio.run(story()) == [1, 2, 3]


def test_row_36_the_bucket_is_named_by_its_variable(tmp_path):
    loaded = load(env={"HOME": str(tmp_path), "STORAGE_BUCKET_NAME": "transcripts"}, cwd=tmp_path)
    assert loaded.settings.blobs == "gs://transcripts"


# --- pushed ---------------------------------------------------------------------------------------


def test_rows_09_10_11_messages_are_pushed_through_both_stages(tmp_path):
    """A service of one process, the emulator pushes to it, and others use Google's client."""
    port = free_port()
    deployment = PubSubDeployment(
        tmp_path,
        **VARIABLES,
        HOLDFAST_APP="tests/acceptance/stages_app.py",
        HOLDFAST_PROJECTIONS="job_events",
        HOLDFAST_PUSH_ENDPOINT=f"http://127.0.0.1:{port}/pubsub",
        HOLDFAST_PUSH_SERVICE_ACCOUNT="none",  # the emulator sends no token
    )
    deployment.settings["PUBSUB_PROJECT_ID"] = deployment.project
    serve = ("-m", "holdfast", "serve", "--port", str(port), "--worker", "2")
    deployment.start(*serve, ready=" serves http")
    try:
        output = deployment.holdfast("setup", "pubsub")
        assert output.returncode == 0, output.stdout + output.stderr
        deployment.google.publish(WORK, JOB, {"requestId": "req_1"})
        deployment.google.publish(WORK, JOB, {"requestId": "req_1"})
        deployment.google.publish(WORK, b"poison")
        deployment.google.publish(WORK, {**JOB, "id": "job_8"}, {"worker-type": "nobody"})
        deployment.wait(lambda: [run.state for run in deployment.runs()] == ["succeeded"] * 2)
        deployment.wait(lambda: len(deployment.letters()) == 2)
        events = deployment.google.bodies(f"{EVENTS}-sub", 6)
    finally:
        codes = deployment.stop()
    assert codes == [0]
    assert {run.key: run.pipeline for run in deployment.runs()} == {
        "job_7:1": "metadata",
        "job_7": "transcription",
    }
    assert [event["to"] for event in events if event.get("to") == "Completed"] == ["Completed"] * 2
    reasons = sorted(letter.reason for letter in deployment.letters())
    assert "no subscription of topic" in reasons[1]
    assert "takes in pushes of metadata-worker-subscription" in deployment.log()


def test_rows_11_12_transient_trouble_is_503_and_the_message_comes_again(monkeypatch):
    async def away(commands):
        raise StoreUnavailable("away")

    with PushService() as service:
        with monkeypatch.context() as trouble:
            trouble.setattr(service.holdfast.store, "apply", away)
            answer = service.push(envelope())
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert service.push(envelope()).status_code == 204
        assert [run.key for run in service.runs()] == ["job-1"]


def test_row_53_a_push_without_a_token_of_the_service_account_is_refused():
    with TokenService() as tokens:
        verifier = TokenVerifier(SigningKeys(tokens.url), AUDIENCE, [ACCOUNT])
        with PushService(verifier) as service:
            assert service.push(envelope()).status_code == 401
            service.token = tokens.token(aud=AUDIENCE, email="thief@example.org")
            assert service.push(envelope()).status_code == 401
            service.token = tokens.token(aud=AUDIENCE, email=ACCOUNT)
            assert service.push(envelope()).status_code == 204


STAGES = ("metadata", "transcription")


def test_row_44_one_image_serves_port_8080():
    text = (ROOT / "Dockerfile").read_text()
    assert "EXPOSE 8080" in text
    assert "PORT=8080" in text


@pytest.mark.parametrize("stage", STAGES)
def test_rows_45_48_each_stage_is_a_service_of_its_own(stage, tmp_path):
    service = cloud_run(f"worker-{stage}.yaml")
    assert service["metadata"]["name"] == f"worker-{stage}"
    annotations = service["spec"]["template"]["metadata"]["annotations"]
    assert annotations["autoscaling.knative.dev/minScale"] == "0"
    assert annotations["autoscaling.knative.dev/maxScale"] == "10"
    assert container(service)["ports"] == [{"name": "http1", "containerPort": 8080}]
    assert container(service)["resources"]["limits"] == {"cpu": "1", "memory": "512Mi"}
    env = {entry["name"]: entry.get("value", "") for entry in container(service)["env"]}
    loaded = load(env={"HOME": str(tmp_path), **env}, cwd=tmp_path)
    assert loaded.settings.app == (f"holdfast.apps.transcription:{stage}",)
    [served] = discover(loaded.settings.app).pipelines
    [receive] = receives(loaded, [served])
    assert (receive.topic, receive.group) == ("work", f"{stage}-worker")
    assert set(loaded.settings.projections) == {"transcription_events", "transcription_jobs"}


def test_row_47_the_infrastructure_is_code():
    subscriptions = terraform_locals()["subscriptions"]
    assert subscriptions["metadata-worker"]["filter"] == "NOT attributes:worker-type"
    condition = subscriptions["transcription-worker"]["filter"]
    assert condition == 'attributes.worker-type = "transcription"'
    [policy] = terraform()["google_pubsub_subscription.subscription"]["retry_policy"]
    assert (policy["minimum_backoff"], policy["maximum_backoff"]) == ("10s", "600s")


def test_rows_32_57_port_and_health_are_those_of_cloud_run(tmp_path):
    loaded = load(env={"HOME": str(tmp_path), "PORT": "9090"}, cwd=tmp_path)
    assert loaded.settings.http.port == 9090
    with LiveApi(worker=False) as live:
        assert live.get("/health").json()["status"] == "ok"


# --- metrics --------------------------------------------------------------------------------------


def test_rows_51_52_latency_of_acks_dead_letters_durations_and_the_rate_of_success():
    """The rate of success is a rule of Prometheus, for each pipeline, that the dashboard shows and
    the alert ManyRunsFail watches; rules_test.yml has figures of transcriptions."""
    names = named(DASHBOARD.read_text())
    assert {
        "pipeline_message_processing_seconds",
        "pipeline_dlq_messages",
        "pipeline_job_duration_seconds",
        "pipeline_jobs_completed_total",
        "pipeline_jobs_failed_total",
    } <= names
    for name in ("pipeline_jobs_completed_total", "pipeline_jobs_failed_total"):
        assert "pipeline_id" in BY_NAME[name].labels
    rate = "pipeline:success:ratio15m"
    assert rate in DASHBOARD.read_text()
    assert rate in ALERTS["ManyRunsFail"]["expr"]
    assert any(test.get("promql_expr_test") for test in TESTS["tests"])
    assert "SUCCESS" in promtool("test", "rules", "rules_test.yml")


# --- the stages themselves: apps/transcription ----------------------------------------------------


@pytest.fixture(scope="module")
def job():
    """A spoken recording through both stages, and all that others see of it."""
    return Harness().process(work_message(recording("mp3"), idempotencyKey="key-1"))


def test_row_06_transcript_complete_has_the_id_and_the_location(job):
    [complete] = job.bodies("TranscriptComplete")
    transcript = job.json("transcripts/")
    assert complete["jobId"] == "job_7"
    assert complete["requestId"] == "req_1"
    assert complete["transcript"] == {
        "id": transcript["id"],
        "location": f"transcripts/{transcript['id']}.json",
    }
    assert complete["occurredAt"].endswith("Z")
    changes = [(e["from"], e["to"]) for e in job.bodies("JobStatusChanged")]
    assert changes == [
        ("Queued", "Processing"),
        ("Processing", "MetadataReady"),
        ("MetadataReady", "Processing"),
        ("Processing", "Completed"),
    ]
    assert len(job.bodies("JobQueued")) == 1


def test_rows_17_37_metadata_of_youtube_by_one_call_of_its_api(monkeypatch):
    server = Answers((200, {"items": [VIDEO]}))
    monkeypatch.setenv("YOUTUBE_API_KEY", "canary-youtube")
    harness = Harness(stages=[METADATA_STAGE], youtube_api=f"{server.url}/v")
    try:
        video = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"
        harness.process(work_message(video), until="jobs/MetadataReady/")
    finally:
        server.server.shutdown()
        server.server.server_close()
    metadata = harness.json("jobs/")["metadata"]
    assert (metadata["title"], metadata["organization"]) == ("A talk", "The town")
    assert (metadata["durationSec"], metadata["language"]) == (3723.0, "en-GB")
    [(path, headers, _)] = server.requests
    assert headers["x-goog-api-key"] == "canary-youtube"
    assert "canary" not in path
    assert all(b"canary" not in data for data in harness.objects.values())


def test_row_18_a_job_is_enriched_and_keeps_all_that_it_had():
    from holdfast.apps.transcription.model.job import MediaMetadata, TranscriptionJob

    original = TranscriptionJob.model_validate({**JOB, "team": "blue"})
    metadata = MediaMetadata(mediaResourceId="m", jobId="job_7", title="A talk", durationSec=5)
    enriched = original.enrich(metadata)
    assert enriched.metadata == metadata
    assert original.metadata is None
    unchanged = enriched.model_dump(exclude={"metadata"}, exclude_unset=True)
    assert {**JOB, "team": "blue"}.items() <= unchanged.items()


def test_rows_20_21_22_the_transcript_is_under_an_id_that_every_attempt_has(job):
    from holdfast.apps.transcription.outputs.transcript_json import transcript_id

    [key] = [key for key in job.objects if key.startswith("transcripts/")]
    transcript = job.json("transcripts/")
    assert key == f"transcripts/{transcript['id']}.json"
    assert transcript["id"] == transcript_id("job_7", "moonshine")
    assert word_error_rate(TALK, transcript["rawText"]) < 0.1


def test_rows_23_26_27_the_job_is_under_its_status_and_nowhere_else(job):
    assert [key for key in job.objects if key.startswith("jobs/")] == ["jobs/Completed/job_7.json"]
    stored = job.json("jobs/")
    assert stored["_tag"] == "CompletedJob"
    assert stored["transcriptId"] == job.json("transcripts/")["id"]
    assert {"id", "requestId", "media", "attempts", "createdAt", "updatedAt"} <= set(stored)
    assert job.json("idempotency/")["jobId"] == "job_7"
    kinds = sorted(key.rpartition("_")[2] for key in job.objects if key.startswith("events/"))
    changes = ["completed.json", "metadataready.json", "processing.json", "processing.json"]
    assert kinds == [*changes, "queued.json", "transcript.json"]


def test_row_24_the_transcript_is_there_before_the_job_is_completed(job):
    """Generations of objects rise with every write to the bucket."""
    stored = shared_gcs().objects(job.bucket.removeprefix("gs://").partition("?")[0])
    [transcript] = [o for name, o in stored.items() if name.startswith("transcripts/")]
    assert transcript.generation < stored["jobs/Completed/job_7.json"].generation


def test_row_26_objects_that_were_lost_are_written_anew(tmp_path):
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    harness = Harness(transcriber=FakeTranscriber(), store=store).process(
        work_message(recording("wav"))
    )
    before = {name: json.loads(data) for name, data in harness.objects.items()}
    gcs, bucket = shared_gcs(), harness.bucket.removeprefix("gs://").partition("?")[0]
    for name in before:
        assert gcs.handle("DELETE", f"/{bucket}/{quote(name, safe='')}", {}, b"").status == 204

    async def rebuild():
        async with harness.app as app:
            await rebuild_projection(app.runtime.records, "transcription_jobs")
            for name in before:
                await harness.until_there(name)

    asyncio.run(rebuild())
    assert {name: json.loads(data) for name, data in harness.objects.items()} == before


def test_row_38_gemini_transcribes_with_its_key(monkeypatch):
    from holdfast.apps.transcription.transcribers import AppTranscribers

    gemini = AppTranscribers().named("gemini")
    for name in ("GOOGLE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match="GOOGLE_AI_API_KEY"):
        gemini.check("de")
    monkeypatch.setenv("GOOGLE_AI_API_KEY", "key")
    gemini.check("de")
    assert gemini.name == "google:gemini-2.5-flash"


def test_row_54_media_of_our_own_network_is_not_fetched():
    fake = FakeTranscriber()
    harness = Harness(transcriber=fake)
    harness.process(work_message("https://169.254.169.254/token"), until="jobs/Failed/")
    assert "not a public address" in harness.json("jobs/")["error"]
    assert fake.calls == []


@pytest.mark.parametrize("kind", WEB_STORES)
def test_row_55_a_job_is_accepted_over_http(kind, tmp_path):
    with LiveApi(store_url(kind, tmp_path), worker=False, pipelines=(metadata_stage,)) as live:
        keys = live.holdfast.keys
        live.call(live.holdfast.tenants.create("acme", actor="test"))
        key = live.call(keys.create("acme", ["submit", "read"], actor="test")).text
        acme = {"x-api-key": key}
        request = {
            "youtubeUrl": "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
            "transcriptionContext": {"expectedSpeakers": ["Ada"]},
        }
        first = live.post("/jobs", request, headers=acme)
        assert first.status_code == 202
        body = first.json()
        assert body == {"jobId": body["jobId"], "requestId": body["requestId"]}
        assert re.fullmatch(r"job_[0-9a-f-]{36}", body["jobId"])
        assert re.fullmatch(r"req_[0-9a-f-]{36}", body["requestId"])
        run = live.get(first.headers["location"], headers=acme).json()
        assert run["run"]["key"] == f"{body['jobId']}:metadata"
        assert run["run"]["labels"] == {"requestId": body["requestId"]}
        assert run["input"]["media"] == {"url": request["youtubeUrl"], "path": ""}
        assert live.post("/jobs", request, headers=acme).json()["jobId"] != body["jobId"]

        keyed = {**request, "idempotencyKey": "k-1"}
        same = [live.post("/jobs", keyed, headers=acme).json() for _ in range(2)]
        assert same[0] == same[1]
        other = live.post("/jobs", {**keyed, "transcriptionContext": {}}, headers=acme)
        assert (other.status_code, other.json()["code"]) == (409, "key-reused")
        for wrong in ({}, {"youtubeUrl": ""}, {"youtubeUrl": 7}, []):
            assert live.post("/jobs", wrong, headers=acme).status_code == 400
        assert live.post("/jobs", request).status_code == 401


@pytest.fixture
def media(tmp_path):
    """A web server with a recording on it."""
    folder = recording("wav").parent
    handler = functools.partial(QuietFiles, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None: ...


def test_rows_01_39_41_42_two_services_on_pubsub_make_a_transcript(tmp_path, media):
    """The second is started when the first has handed over: nothing is buried meanwhile."""
    gcs, bucket = shared_gcs(), fresh_name()
    gcs.url(bucket)
    deployment = PubSubDeployment(
        tmp_path,
        PUBSUB_TOPIC_WORK=WORK,
        PUBSUB_TOPIC_EVENTS=EVENTS,
        PUBSUB_SUBSCRIPTION_METADATA="metadata-worker-subscription",
        PUBSUB_SUBSCRIPTION_TRANSCRIPTION="transcription-worker-subscription",
        HOLDFAST_PROJECTIONS="transcription_events,transcription_jobs",
        HOLDFAST_TRANSCRIPTION_HOSTS=media,
        HOLDFAST_BLOBS="",
        STORAGE_BUCKET_NAME=bucket,
        STORAGE_EMULATOR_HOST=gcs.address,
    )
    deployment.settings["PUBSUB_PROJECT_ID"] = deployment.project
    try:
        output = deployment.holdfast("setup", "pubsub")
        assert output.returncode == 0, output.stdout + output.stderr
        app = "holdfast.apps.transcription"
        deployment.start("-m", "holdfast", "worker", HOLDFAST_APP=f"{app}:metadata")
        sent = {**JOB, "media": {"url": f"http://{media}/talk.wav"}}
        for _ in range(3):
            deployment.google.publish(WORK, sent)
        deployment.wait(lambda: "jobs/MetadataReady/job_7.json" in gcs.objects(bucket))
        deployment.start("-m", "holdfast", "worker", HOLDFAST_APP=f"{app}:transcription")
        deployment.wait(lambda: "jobs/Completed/job_7.json" in gcs.objects(bucket))
        events = deployment.google.bodies(f"{EVENTS}-sub", 6)
    finally:
        codes = deployment.stop()
    assert codes == [0, 0]
    assert sorted(run.key for run in deployment.runs()) == ["job_7", "job_7:metadata"]
    assert deployment.letters() == []
    assert sum("transcript" in event for event in events) == 1
    names = [name for name in gcs.objects(bucket) if name.startswith("transcripts/")]
    transcript = json.loads(gcs.objects(bucket)[names[0]].data)
    assert word_error_rate(TALK, transcript["rawText"]) < 0.1
