"""A report worker: a job message with comments in, a report out, its state in Redis.

Tests are named after the rows of the list of features; see conftest.py."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec import structs
from tests.acceptance.seeds.pubsub_deployment import PubSubDeployment
from tests.acceptance.seeds.redis_deployment import SHORT_LEASE, RedisDeployment
from tests.bucket_servers import fresh_gcs, fresh_name, shared_gcs
from tests.deploy.descriptions import (
    ROOT,
    WORKFLOWS,
    cloud_run,
    container,
    documents,
    terraform,
    terraform_locals,
)
from tests.emulators import fresh_firestore, shared_firestore
from tests.integration.redis.helpers import a_server
from tests.redis_server import free_port, fresh_prefix, shared_server
from tests.unit.conftest import Lab

from holdfast import Context, Holdfast, Permanent, Pipeline, Transient
from holdfast.adapters.buckets.documents import BucketDocuments
from holdfast.adapters.firestore.documents import FirestoreDocuments
from holdfast.adapters.inprocess.bus import InProcessBus
from holdfast.adapters.llm.answer_cache import AnswerCache
from holdfast.adapters.memory.documents import MemoryDocuments
from holdfast.adapters.redis.store import RedisStore
from holdfast.apps.compat import errors
from holdfast.apps.report.pipeline import report
from holdfast.apps.report.report_documents import report_documents
from holdfast.apps.report.request import ReportRequest, time_limit
from holdfast.apps.report.testing.brain import ReportBrain
from holdfast.bootstrap import Options
from holdfast.errors import ConfigurationError, NotFound, RunFailed, StoreUnavailable
from holdfast.model.commands import Submit
from holdfast.model.options import PipelineOptions, Retention, WorkerOptions
from holdfast.model.projection import document_version
from holdfast.model.receive import Receive
from holdfast.ports.bus import Message
from holdfast.ports.store import RunFilter
from holdfast.settings import load
from holdfast.testing import TestEngine
from holdfast.testing.fakellm import FakeLLM

ROWS = 80
OPEN = {}

JOBS = "pipeline-jobs"
CANARY = "sk-canary-000-77aa31d2"
STEPS = ("clustering", "claims", "sort_and_deduplicate", "summaries", "cruxes")

COMMENTS = [
    "The buses are late every single morning and nobody tells us why.",
    "I want more trees in the park because there is no shade in summer.",
    "Bus tickets are too expensive for families with children.",
    "The park should stay open until ten in the evening.",
    "Late buses make me miss my connection at the station.",
    "Please plant trees along the main street, it is too hot to walk.",
    "Cheaper bus tickets would make people leave their cars at home.",
    "The benches in the park are broken and should be repaired.",
]


def job(report_id: str = "abc123", **options: Any) -> dict[str, Any]:
    """A job message as the web server publishes it."""
    instructions = {
        "systemInstructions": "You are a researcher.",
        "clusteringInstructions": "Find topics.",
        "extractionInstructions": "Find claims.",
        "dedupInstructions": "Merge claims.",
        "summariesInstructions": "Summarise.",
        "cruxInstructions": "Find cruxes.",
    }
    return {
        "config": {
            "firebaseDetails": {"reportId": report_id, "userId": "user456"},
            "llm": {"model": ""},
            "instructions": instructions,
            "options": {"cruxes": True, **options},
            "env": {"OPENAI_API_KEY": CANARY},
        },
        "data": [
            {"id": str(number), "comment": comment, "interview": f"Person {number % 5}"}
            for number, comment in enumerate(COMMENTS)
        ],
        "reportDetails": {
            "title": "Our town",
            "description": "What people say",
            "question": "What should change?",
            "filename": "town.csv",
        },
    }


MANY = [
    {"id": str(n), "comment": f"{COMMENTS[n % 8]} I say so as number {n}.", "interview": f"P{n}"}
    for n in range(300)
]


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    """A worker process that receives job messages, and what became of them."""
    deployment = RedisDeployment(
        tmp_path_factory.mktemp("deployment"),
        HOLDFAST_PROJECTIONS="state_documents",
        HOLDFAST_RECEIVE=f"{JOBS}=report",
    )
    deployment.start("-m", "holdfast", "worker")
    wishes = job(bridging=True, evaluations=True)
    try:
        broken = json.dumps(job("bad2"))[:-40].encode()
        deployment.publish(
            JOBS,
            ("m-1", wishes, {"requestId": "req-9"}),
            ("m-1", wishes, {"requestId": "req-9"}),
            ("m-2", broken, {}),
            ("m-3", job("bad1") | {"data": "nothing"}, {}),
            ("m-4", job("large", cruxes=False) | {"data": MANY}, {}),
            ("m-5", job("silent") | {"data": []}, {}),
        )
        deployment.wait(lambda: state_of(deployment, "abc123").get("status") == "completed")
        deployment.publish(JOBS, ("m-6", wishes, {}))  # a new message for a completed report
        deployment.wait(lambda: state_of(deployment, "large").get("status") == "completed")
        deployment.wait(lambda: state_of(deployment, "silent").get("status") == "failed")
        deployment.wait(lambda: len(deployment.letters()) == 3)
        deployment.wait(lambda: deployment.pending(JOBS, "holdfast-report") == 0)
        deployment.exit_codes = deployment.stop()
        yield deployment
    finally:
        deployment.kill()


def state_of(deployment: RedisDeployment, report_id: str) -> dict[str, Any]:
    """`redis-cli GET pipeline_state:abc123`"""
    [value] = deployment._ask(("GET", f"{deployment._prefix}pipeline_state:{report_id}"))
    return json.loads(value) if value else {}


# --- the report -----------------------------------------------------------------------------------


def test_rows_02_03_04_05_06_14_a_job_message_becomes_a_report(deployment):
    runs = {run.key: run for run in deployment.runs()}
    assert {run.pipeline for run in runs.values()} == {"report"}
    assert (runs["abc123"].state, runs["large"].state) == ("succeeded", "succeeded")
    analytics = state_of(deployment, "abc123")["stepAnalytics"]
    assert {name: analytics[name]["status"] for name in STEPS} == dict.fromkeys(STEPS, "completed")
    assert state_of(deployment, "large")["stepAnalytics"]["cruxes"]["status"] == "skipped"
    assert "cruxes" not in state_of(deployment, "large")["completedResults"]


def report_of(folder: Path, *words: str, **more: str) -> dict[str, Any]:
    """`holdfast report build comments.csv`"""
    with (folder / "comments.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "comment", "interview"])
        writer.writeheader()
        writer.writerows(job()["data"])
    command = [sys.executable, "-m", "holdfast", "report", "build", "comments.csv", "-o", "out"]
    environment = {
        name: text for name, text in os.environ.items() if not name.startswith("HOLDFAST_")
    }
    subprocess.run(
        [*command, *words],
        check=True,
        cwd=folder,
        env=environment | more,
        capture_output=True,
        timeout=60,
    )
    return json.loads((folder / "out" / "report.json").read_text())


def test_row_01_a_csv_of_comments_becomes_a_report_offline(tmp_path):
    document = report_of(tmp_path)
    assert document["counts"]["comments"] == len(COMMENTS)
    assert "<html" in (tmp_path / "out" / "report.html").read_text()


def test_row_01_a_csv_of_comments_becomes_a_report_with_a_model(tmp_path):
    async def story():
        async with FakeLLM(ReportBrain()) as fake:
            settings = {"HOLDFAST_LLM": fake.address(), **fake.environment}
            document = await asyncio.to_thread(report_of, tmp_path, **settings)
            return document, {call.task for call in fake.calls}

    document, calls = asyncio.run(story())
    assert document["counts"]["comments"] == len(COMMENTS)
    assert {"clustering", "extraction", "summaries"} <= calls


def test_row_07_what_a_step_brings_feeds_the_next(deployment):
    """Topics by name, claims below them with words of the comments, then the same claims sorted."""
    results = {
        name: result["data"]
        for name, result in state_of(deployment, "large")["completedResults"].items()
    }
    topics = {topic["topicName"]: topic for topic in results["clustering"]}
    comments = {row["id"]: row["comment"] for row in MANY}
    total = 0
    for name, tree in results["claims"].items():
        below = [sub["subtopicName"] for sub in topics[name]["subtopics"]]
        for subtopic, leaf in tree["subtopics"].items():
            assert subtopic in below
            assert leaf["total"] == len(leaf["claims"])
            assert all(claim["quote"] in comments[claim["commentId"]] for claim in leaf["claims"])
            total += leaf["total"]
    assert total >= len(MANY)
    merged = [
        claim
        for _, topic in results["sort_and_deduplicate"]
        for _, subtopic in topic["topics"]
        for claim in subtopic["claims"]
    ]
    assert sum(1 + len(claim["duplicates"]) for claim in merged) == total
    assert any(claim["duplicates"] for claim in merged)
    assert [summary["topicName"] for summary in results["summaries"]] == [
        name for name, _ in results["sort_and_deduplicate"] if name in topics
    ]


def test_row_11_the_viewers_json_is_made_of_the_run(deployment):
    [run] = [run for run in deployment.runs() if run.key == "abc123"]
    files = json.loads(run.result)["files"]
    folder = deployment.folder / "out"
    folder.mkdir()
    name = next(name for name in files if name.endswith("report.json"))
    (folder / "report.json").write_bytes((deployment.folder / "blobs" / files[name]).read_bytes())
    command = [sys.executable, "-m", "holdfast", "report", "export", "t3c", str(folder)]
    subprocess.run(
        [*command, "-o", str(folder / "t3c.json")], check=True, env=deployment.environment
    )
    exported = json.loads((folder / "t3c.json").read_text())
    assert exported["data"][0] == "v0.2"


TOPIC = {"topicName", "topicShortDescription", "subtopics"}
CLAIM = {"claim", "quote", "speaker", "topicName", "subtopicName", "commentId"}


def test_rows_08_31_32_33_75_the_state_has_results_usage_and_cost(deployment):
    state = state_of(deployment, "abc123")
    assert (state["reportId"], state["status"]) == ("abc123", "completed")
    assert set(state["completedResults"]) == set(STEPS)
    for name in STEPS:
        assert set(state["completedResults"][name]) == {"data", "usage", "cost"}
        usage = state["completedResults"][name]["usage"]
        assert set(usage) == {"input_tokens", "output_tokens", "total_tokens"}
    assert (state["totalTokens"], state["totalCost"]) == (0, 0.0)
    assert state["totalDurationMs"] > 0


def test_row_08_results_have_the_shapes_that_readers_know_whatever_their_size(deployment):
    [text] = deployment._ask(("GET", f"{deployment._prefix}pipeline_state:large"))
    assert len(text) > 100_000
    assert b"@blob" not in text.encode() if isinstance(text, str) else b"@blob" not in text
    data = {name: result["data"] for name, result in json.loads(text)["completedResults"].items()}
    assert all(set(topic) == TOPIC for topic in data["clustering"])
    [first, *_] = data["clustering"][0]["subtopics"]
    assert set(first) == {"subtopicName", "subtopicShortDescription"}
    for tree in data["claims"].values():
        assert set(tree) == {"total", "subtopics"}
        for leaf in tree["subtopics"].values():
            assert all(set(claim) == CLAIM for claim in leaf["claims"])
    for _, topic in data["sort_and_deduplicate"]:
        assert set(topic) == {"topics", "speakers", "counts"}
        assert set(topic["counts"]) == {"claims", "speakers"}
        for _, subtopic in topic["topics"]:
            assert set(subtopic) == {"claims", "speakers", "counts"}
            for claim in subtopic["claims"]:
                assert set(claim) == CLAIM | {"duplicates", "duplicated"}
    assert all(set(summary) == {"topicName", "summary"} for summary in data["summaries"])
    cruxes = state_of(deployment, "abc123")["completedResults"]["cruxes"]["data"]
    assert set(cruxes) == {"subtopicCruxes", "topicScores", "speakerCruxMatrix"}


def test_row_33_the_command_line_finds_a_report_by_its_id(deployment):
    command = [sys.executable, "-m", "holdfast", "runs", "show", "abc123", "--format", "state"]
    process = subprocess.run(
        command, env=deployment.environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert (
        json.loads(process.stdout)["completedResults"]
        == (state_of(deployment, "abc123")["completedResults"])
    )


def test_rows_15_17_whose_report_it_is_and_which_request(deployment):
    [run] = [run for run in deployment.runs() if run.key == "abc123"]
    assert run.labels["userId"] == "user456"
    assert run.labels["requestId"] == "req-9"
    assert run.attributes["requestId"] == "req-9"
    assert state_of(deployment, "abc123")["userId"] == "user456"


def test_row_16_wishes_without_effect_are_said(deployment):
    async def story(app):
        run = await app.run("abc123")
        return [line.message for line in await app.store.logs(run.id)]

    output = "\n".join(deployment.look(story))
    assert "options.bridging has no effect" in output
    assert "options.evaluations has no effect" in output
    assert "reportDetails.filename has no effect" in output


def test_rows_18_19_20_23_39_69_the_worker_process_consumes_the_topic(deployment):
    """Of seven messages one came twice, and one is for a report that was completed."""
    assert f"receives {JOBS}=report" in deployment.log()
    assert sorted(run.key for run in deployment.runs()) == ["abc123", "large", "silent"]
    assert {letter.id for letter in deployment.letters() if letter.run is None} == {
        f"message:{JOBS}:m-2",
        f"message:{JOBS}:m-3",
    }

    async def attempts(app):
        run = await app.run("abc123")
        return [event.type for event in await app.store.history(run.id)].count("run.started")

    assert deployment.look(attempts) == 1


def test_rows_45_47_a_pipeline_error_is_recorded_and_its_message_is_not_delivered_again(deployment):
    [run] = [run for run in deployment.runs() if run.key == "silent"]
    assert (run.state, run.attributes["delivery-attempt"]) == ("failed", "1")
    assert deployment.pending(JOBS, "holdfast-report") == 0
    error = state_of(deployment, "silent")["error"]
    assert set(error) == {"message", "name", "step"}
    assert (error["message"], error["name"]) == (run.error.message, run.error.name)
    assert error["step"] == state_of(deployment, "silent")["currentStep"]


def test_row_35_states_live_for_a_day_and_failed_ones_for_an_hour(deployment):
    lives = deployment._ask(
        *(("TTL", f"{deployment._prefix}pipeline_state:{id}") for id in ("abc123", "silent"))
    )
    assert 86_000 < lives[0] <= 86_400
    assert 3_200 < lives[1] <= 3_600


def test_row_53_the_worker_stops_cleanly(deployment):
    assert deployment.exit_codes == [0]


def test_row_73_api_keys_are_never_kept(deployment):
    assert CANARY not in deployment.log()
    assert CANARY not in deployment.everything(excluded=f"topic:{JOBS}")
    for path in deployment.folder.rglob("*"):
        assert path.is_dir() or CANARY.encode() not in path.read_bytes(), path


# --- exclusion and state --------------------------------------------------------------------------


def gated(name: str = "gated", **options: Any) -> tuple[Pipeline[Any], list[str]]:
    pipeline: Pipeline[Any] = Pipeline(name, input=dict, key=lambda job: job["id"], **options)
    executed: list[str] = []

    @pipeline.step
    async def clustering(request: dict) -> int:
        executed.append("clustering")
        return 1

    @pipeline.step(max_attempts=1)
    async def claims(request: dict, clustering: int) -> int:
        executed.append("claims")
        if request.get("fails") and executed.count("claims") <= request["fails"]:
            raise Permanent("the model is away")
        await asyncio.sleep(60)
        return clustering + 1

    return pipeline, executed


@pytest.mark.parametrize("damages", [0, 1])
def test_rows_21_22_24_34_67_redis_shows_who_has_the_lock_and_what_failed_validation(
    damages, tmp_path
):
    """`redis-cli GET pipeline_lock:abc123`, `KEYS pipeline_validation_failure:abc123:*`"""
    server, prefix = shared_server(), fresh_prefix()
    url = server.url(prefix)
    pipeline: Pipeline[Any] = Pipeline("gated", input=dict, key=lambda job: job["id"])
    allowed = asyncio.Event()
    executed: list[str] = []

    @pipeline.step
    async def clustering(request: dict) -> list[str]:
        executed.append("clustering")
        return ["topic"]

    @pipeline.step(max_attempts=1)
    async def claims(request: dict, clustering: list[str]) -> int:
        executed.append("claims")
        if damages and executed.count("claims") == 1:
            raise Permanent("the model is away")
        await allowed.wait()
        return 1

    def get(key: str) -> str:
        return server.call("GET", f"{prefix}{key}")

    async def story() -> None:
        options = {"documents": url, "projections": ["state_documents"], "blobs": "memory:"}
        async with Holdfast(url, [pipeline], **options) as app:
            run = await app.submit(pipeline, {"id": "abc123"})
            if damages:
                await run.wait(30)
                damage(server, prefix, run.id)
                await app.operations.resume("abc123", actor="ada")
            await appears(lambda: get("pipeline_lock:abc123"))
            again = await app.submit(pipeline, {"id": "abc123"})
            assert (again.id, again.created) == (run.id, False)
            holder = get("pipeline_lock:abc123")
            assert holder == (await run.info()).worker
            # The name can't be known in advance: host, process and a random part.
            assert re.fullmatch(rf".+-{os.getpid()}-[0-9a-f]{{8}}", holder), holder
            if damages:
                keys = server.call("KEYS", f"{prefix}pipeline_validation_failure:abc123:*")
                assert keys.split() == [f"{prefix}pipeline_validation_failure:abc123:clustering"]
                assert get("pipeline_validation_failure:abc123:clustering") == "1"
            allowed.set()
            assert await run.result(30) == 1
            await appears(lambda: not get("pipeline_lock:abc123"))
            state = json.loads(get("pipeline_state:abc123"))
            assert state["validationFailures"] == ({"clustering": 1} if damages else {})

    asyncio.run(story())
    assert executed.count("clustering") == 1 + damages


DAMAGE = """
local changed = 0
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*' .. ARGV[2] .. '*')) do
  if redis.call('TYPE', key).ok == 'hash' then
    for _, field in ipairs(redis.call('HKEYS', key)) do
      local value = redis.call('HGET', key, field)
      local damaged = string.gsub(value, 'topic', 'tobic')
      if damaged ~= value then
        redis.call('HSET', key, field, damaged)
        changed = changed + 1
      end
    end
  end
end
return changed
"""


def damage(server: Any, prefix: str, run: str) -> None:
    """Change a stored result directly in the store."""
    assert int(server.call("EVAL", DAMAGE, "0", prefix, run)) == 1


async def appears(condition: Callable[[], Any]) -> None:
    """What another connection sees soon."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  (a server of its own)
            await asyncio.sleep(0.02)


def test_row_78_a_report_that_is_stuck_in_running_is_repaired():
    pipeline, executed = gated()
    documents = MemoryDocuments()
    engine = Lab(pipeline, documents=documents, projections=["state_documents"])
    run = engine.submit(pipeline, {"id": "abc123"})
    engine.advance(10)
    state = json.loads(documents.read("pipeline_state:abc123") or b"{}")
    assert (state["status"], state["currentStep"]) == ("running", "claims")
    engine.kill()
    engine.advance(40)
    assert engine.info(run).attempts == 2
    assert executed == ["clustering", "claims", "claims"]
    engine.drain()
    engine.advance(2)
    assert engine.info(run).state == "succeeded"
    assert documents.read("pipeline_lock:abc123") is None
    engine.close()


def test_rows_30_40_70_a_crash_repeats_one_step_at_most():
    pipeline, executed = gated()
    engine = TestEngine(pipeline)
    run = engine.submit(pipeline, {"id": "abc123"})
    engine.crash_after("clustering")
    engine.drain()
    engine.advance(300)
    assert engine.result(run) == 2
    assert executed.count("clustering") == 1
    engine.close()


def test_rows_25_26_a_worker_that_lost_its_lease_writes_nothing():
    pipeline, executed = gated()
    engine = Lab(pipeline)
    run = engine.submit(pipeline, {"id": "abc123"})
    engine.advance(2)
    engine.freeze(120)  # longer than the lease
    engine.join()
    engine.advance(400)
    assert engine.result(run) == 2
    assert executed == ["clustering", "claims", "claims"]
    assert engine.events(run).count("run.completed") == 1
    engine.close()


def test_row_38_a_new_message_for_a_failed_report_resumes_it():
    pipeline, executed = gated()

    async def story():
        bus = InProcessBus()
        options = WorkerOptions(poll=0.05)
        async with Holdfast("memory:", [pipeline], bus=bus, worker=options) as app:
            await app.receive(Receive(JOBS, "gated"))
            body = json.dumps({"id": "abc123", "fails": 2}).encode()
            for number, attempts in ((1, 1), (2, 2)):
                await bus.publish(JOBS, Message(f"m-{number}", body))
                change = 0
                async with asyncio.timeout(20):
                    while executed.count("claims") < attempts or not await failed(app):
                        change = await app.store.wait(change, 1.0)
            assert executed.count("clustering") == 1  # reused

    async def failed(app):
        return await app.store.runs(RunFilter(state="failed"))

    asyncio.run(story())


def test_rows_27_28_43_61_settings_of_the_worker_act_or_say_why_not(tmp_path):
    env = {
        "HOME": str(tmp_path),
        "REDIS_HOST": "cache.internal",
        "REDIS_PORT": "6380",
        "PIPELINE_TIMEOUT_MS": "2700000",
        "MAX_VALIDATION_FAILURES": "5",
        "LOCK_TTL_SECONDS": "2106",
        "LOCK_EXTENSION_SECONDS": "594",
    }
    loaded = load(env=env, cwd=tmp_path)
    options = Options().with_settings(loaded)
    assert options.store == "redis://cache.internal:6380/0"
    app = Holdfast.from_options(Options(pipeline=options.pipeline), [report])
    assert app.pipelines["report"].time_limit(ReportRequest(rows=())) == 2700.0
    assert app.pipelines["report"].max_validation_failures == 5
    useless = {entry.name: entry.reason for entry in loaded.useless}
    assert set(useless) == {"LOCK_TTL_SECONDS", "LOCK_EXTENSION_SECONDS"}
    assert all("lease.ttl" in reason for reason in useless.values())


def test_row_62_the_bucket_is_where_files_go(tmp_path):
    for name in ("GCS_BUCKET_NAME", "STORAGE_BUCKET_NAME", "GCLOUD_STORAGE_BUCKET"):
        loaded = load(env={"HOME": str(tmp_path), name: "tttc-reports"}, cwd=tmp_path)
        assert Options().with_settings(loaded).blobs == "gs://tttc-reports"
        assert not loaded.useless


# --- on Pub/Sub -----------------------------------------------------------------------------------


def test_rows_13_49_64_65_jobs_are_consumed_from_pubsub(tmp_path):
    deployment = PubSubDeployment(
        tmp_path, PUBSUB_TOPIC_NAME="pipeline-jobs", PUBSUB_SUBSCRIPTION_NAME="pipeline-worker"
    )
    deployment.settings["PUBSUB_PROJECT_ID"] = deployment.project
    assert deployment.holdfast("setup", "pubsub").returncode == 0
    deployment.start("-m", "holdfast.worker")
    try:
        for _ in range(2):
            deployment.google.publish("pipeline-jobs", job(cruxes=False), {"requestId": "req-9"})
        deployment.wait(lambda: [run.state for run in deployment.runs()] == ["succeeded"])
    finally:
        codes = deployment.stop()
    assert codes == [0]
    assert "at most 5 messages and 500.0 MiB at once" in deployment.log()
    [run] = deployment.runs()
    assert (run.key, run.labels["requestId"]) == ("abc123", "req-9")
    assert deployment.google.pull("pipeline-worker", timeout=0.5) == []
    assert CANARY not in deployment.log()


def test_row_60_doctor_says_whether_concurrency_matches_the_messages(tmp_path):
    from holdfast.bootstrap.pubsub import flow_findings

    env = {"HOME": str(tmp_path), "PUBSUB_PROJECT_ID": "p-roject", "PUBSUB_TOPIC_NAME": JOBS}
    for concurrency, status in (("5", "ok"), ("64", "ok"), ("3", "warn")):
        loaded = load(env=env | {"HOLDFAST_CONCURRENCY": concurrency}, cwd=tmp_path)
        [finding] = flow_findings(loaded)
        assert (finding.check, finding.status) == (f"flow {JOBS}", status)


def test_row_63_credentials_are_decoded_in_memory():
    from base64 import b64encode

    from holdfast.adapters.google_credentials import (
        ENCODED,
        FIREBASE_ENCODED,
        service_account_info,
    )

    def encoded(name: str) -> str:
        account = {"client_email": name, "private_key": CANARY, "token_uri": "https://t.example"}
        return b64encode(json.dumps(account).encode()).decode()

    env = {ENCODED: encoded("storage@x.example"), FIREBASE_ENCODED: encoded("documents@x.example")}
    for name, email in ((ENCODED, "storage@x.example"), (FIREBASE_ENCODED, "documents@x.example")):
        info = service_account_info(name, environment=env)
        assert info is not None
        assert info["client_email"] == email


# --- the ending: a file in the bucket, then a reference to it -------------------------------------


class Ending:
    """An app with a bucket and a Firestore of its own."""

    def __init__(self, pipeline: Pipeline[Any], documents: Any = None) -> None:
        self.bucket = fresh_gcs()
        self.firestore = FirestoreDocuments(fresh_firestore())
        self.app = Holdfast(
            "memory:",
            pipelines=[pipeline],
            blobs=self.bucket,
            documents=documents(self.firestore) if documents else self.firestore,
            projections=[report_documents(self.bucket)],
        )

    def file(self, name: str) -> Any:
        objects = shared_gcs().objects(self.bucket.removeprefix("gs://").partition("?")[0])
        return json.loads(objects[name].data) if name in objects else None

    async def reference(self, id: str) -> dict[str, Any]:
        client = self.firestore._client
        return (await client.get(client.document("reports", id))).to_dict() or {}

    async def reference_with(self, id: str, status: str) -> dict[str, Any]:
        for _ in range(600):
            if (reference := await self.reference(id)).get("status") == status:
                return reference
            await asyncio.sleep(0.05)
        raise AssertionError(f"reports/{id} is {await self.reference(id)}")


def test_rows_09_10_12_the_report_is_in_the_bucket_and_then_in_firestore():
    async def story():
        ending = Ending(report)
        async with ending.app as app:
            run = await app.submit(report, ReportRequest.model_validate(job()))
            await run.result()
            reference = await ending.reference_with("abc123", "completed")
            stored = await app.store.run(run.id)
            late = document_version(0, structs.replace(stored, events=stored.events - 1))
            stale = BucketDocuments(ending.bucket)
            assert not await stale.put("abc123.json", b"late", version=late)
            assert not await ending.firestore.put(
                "reports/abc123", b'{"status": "failed"}', version=late
            )
            return ending.file("abc123.json"), reference

    file, reference = asyncio.run(story())
    assert file["data"][0] == "v0.2"
    assert reference["userId"] == "user456"
    assert reference["title"] == "Our town"
    assert reference["numTopics"] > 0
    assert reference["reportDataUri"].endswith("/abc123.json")
    assert "errorMessage" not in reference
    with urllib.request.urlopen(reference["reportDataUri"]) as answer:
        assert json.load(answer) == file


class DiesOnce:
    """Documents whose first write of a finished report does not arrive."""

    def __init__(self, documents: Any) -> None:
        self._documents = documents
        self.died = 0

    async def put(self, key: str, body: bytes, **options: Any) -> bool:
        if b"completed" in body and not self.died:
            self.died += 1
            raise Transient("the process that wrote this is gone")
        return await self._documents.put(key, body, **options)

    async def delete(self, key: str, *, version: str) -> bool:
        return await self._documents.delete(key, version=version)

    async def close(self) -> None:
        await self._documents.close()


def test_rows_09_12_what_is_lost_between_the_two_is_repaired(fake_report):
    async def story():
        ending = Ending(fake_report, DiesOnce)
        async with ending.app as app:
            run = await app.submit(fake_report, {"title": "Our town"}, key="r-1")
            await run.result()
            reference = await ending.reference_with("r-1", "completed")
            assert ending.app.options.documents.died == 1
            return ending.file("r-1.json"), reference

    file, reference = asyncio.run(story())
    assert file == {"made": "of report.json"}
    assert reference["reportDataUri"].endswith("/r-1.json")


@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "late"])
def test_rows_09_10_12_a_worker_that_ends_between_the_two_is_made_up_for(tmp_path, fate):
    """The file is in the bucket and Firestore does not answer when it happens. The next worker
    finishes; the one that was only late wakes up, and changes nothing."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.firestore import Client

    gcs, bucket, url = shared_gcs(), fresh_name(), fresh_firestore()
    gcs.url(bucket)
    emulator = shared_firestore()
    project = url.removeprefix("firestore://")
    reference = Client(project, AnonymousCredentials()).collection("reports").document("r-1")
    deployment = RedisDeployment(
        tmp_path,
        HOLDFAST_APP="tests/acceptance/gated_report.py",
        HOLDFAST_RECEIVE="jobs=report",
        HOLDFAST_PROJECTIONS="report_documents",
        HOLDFAST_DOCUMENTS=f"{url}?timeout=30s",
        HOLDFAST_BLOBS="",
        GCS_BUCKET_NAME=bucket,
        STORAGE_EMULATOR_HOST=gcs.address,
        **SHORT_LEASE,
        GATE=str(tmp_path / "gate"),
    )
    first = deployment.start("-m", "holdfast", "worker")
    try:
        deployment.publish("jobs", ("m-1", {"id": "r-1", "title": "Our town"}, {}))
        deployment.wait(lambda: (reference.get().to_dict() or {}).get("status") == "processing")
        emulator.pause()
        (tmp_path / "gate").touch()
        deployment.wait(lambda: "r-1.json" in gcs.objects(bucket))
        first.send_signal(fate)
        emulator.resume()
        assert reference.get().get("status") == "processing"
        deployment.start("-m", "holdfast", "worker")
        deployment.wait(lambda: reference.get().get("status") == "completed")
        written = reference.get().update_time
        first.send_signal(signal.SIGCONT)
        codes = deployment.stop()
    finally:
        emulator.resume()
        deployment.kill()
    assert codes == [-signal.SIGKILL if fate == signal.SIGKILL else 0, 0]
    assert reference.get().update_time == written
    assert reference.get().get("reportDataUri") == f"{gcs.address}/{bucket}/r-1.json"
    assert json.loads(gcs.objects(bucket)["r-1.json"].data) == {"made": "of report.json"}


def test_row_46_a_failure_is_in_firestore_with_its_message_and_goes_when_it_is_resumed(fake_report):
    async def story():
        ending = Ending(fake_report)
        async with ending.app as app:
            run = await app.submit(fake_report, {"title": "no"}, key="r-1")
            with pytest.raises(RunFailed):
                await run.result()
            failed = await ending.reference_with("r-1", "failed")
            assert ending.file("r-1.json") is None
            fake_report.may_succeed = True
            await app.operations.resume(run.id)
            return failed, await ending.reference_with("r-1", "completed")

    failed, completed = asyncio.run(story())
    assert "nobody wrote a comment" in failed["errorMessage"]
    assert "errorMessage" not in completed


@pytest.fixture
def fake_report(monkeypatch):
    """A pipeline that ends as reports do, sooner."""
    from holdfast.apps.report import report_documents as module

    pipeline: Any = Pipeline("report")
    pipeline.may_succeed = False

    @pipeline.step(name="report", max_attempts=1)
    async def report_(request: Any, ctx: Context) -> dict[str, Any]:
        if request["title"] == "no" and not pipeline.may_succeed:
            raise Permanent("nobody wrote a comment")
        artifact = await ctx.artifact("report.json", b"{}")
        return {"files": {"report.json": artifact}, "topics": 1, "claims": 2, "people": 3}

    monkeypatch.setattr(module, "viewer_json", lambda data: b'{"made": "of report.json"}')
    return pipeline


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [("rpm=10", 2 * 60 * 1000 / 10), ("tpm=10000", 2 * 60 * 700 * 1000 / 1e4)],
)
def test_row_28_a_report_has_half_an_hour_and_more_where_a_limit_makes_it_necessary(
    limits, seconds
):
    rows = tuple({"id": str(n), "comment": "x"} for n in range(1000))
    assert time_limit(ReportRequest(rows=rows)) == 1800
    slow = ReportRequest(rows=rows, model=f"openai:gpt-4o-mini?{limits}")
    assert time_limit(slow) == seconds


def test_row_28_the_estimate_says_how_long_a_report_takes_and_may_take(tmp_path):
    (tmp_path / "comments.csv").write_text("comment\n" + "The bus is late again.\n" * 1000)

    def estimate(*words: str, **more: str) -> tuple[str, dict[str, Any]]:
        model = ("--model", "openai:gpt-4o-mini?rpm=1")
        command = [sys.executable, "-m", "holdfast", "report", "estimate", "comments.csv", *model]
        process = subprocess.run(
            [*command, *words],
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path), **more},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return process.stdout, json.loads(process.stdout) if words else {}

    assert "make it take" in estimate()[0]
    _, estimated = estimate("--json")
    calls = sum(step["calls"] for step in estimated["steps"])
    assert estimated["least_seconds"] == 60 * calls
    assert estimated["timeout_seconds"] == 2 * 60 * 1000 > estimated["least_seconds"]
    assert estimate("--json", PIPELINE_TIMEOUT_MS="60000")[1]["timeout_seconds"] == 60


def test_rows_29_71_a_time_out_stops_the_work_and_keeps_progress():
    pipeline, executed = gated(timeout="30s")
    engine = TestEngine(pipeline)
    run = engine.submit(pipeline, {"id": "abc123"})
    engine.advance(120)
    with pytest.raises(RunFailed, match="RunTimeout"):
        engine.result(run)
    assert engine.info(run).state == "failed"
    assert executed == ["clustering", "claims"]
    engine.call(engine.app.operations.resume("abc123", actor="ada"))
    engine.advance(1)
    assert executed == ["clustering", "claims", "claims"]  # progress was kept
    engine.close()


def test_row_36_user_data_is_gone_after_its_time(tmp_path):
    """The run, its files, and what a model said about it. With `HOLDFAST_RETENTION_FINISHED=24h`
    that is a day; here it is the usual month."""
    env = {"HOME": str(tmp_path), "HOLDFAST_RETENTION_FINISHED": "24h"}
    assert load(env=env, cwd=tmp_path).settings.retention.finished == 86_400
    day, month = 86_400.0, Retention().finished
    big: Pipeline[Any] = Pipeline("big", input=dict)

    @big.step
    async def work(request: dict) -> int:
        return len(request["text"])

    engine = TestEngine(big)
    run = engine.submit(big, {"text": "x" * 50_000}, tenant="User-A")
    cache = AnswerCache(engine._blobs, engine.clock, month)
    engine.call(cache.put("User-A", ("what does she say?",), "an answer about her"))
    engine.advance(3700)

    def files() -> list[str]:
        return list(engine.call(engine._blobs.list("")))

    assert engine.result(run) == 50_000
    assert any("/answers/" in file for file in files())
    assert any(f"/{run.id}/" in file for file in files())
    engine.clock.jump_wall(month - day)
    engine.advance(3700)
    assert engine.info(run).state == "succeeded"
    engine.clock.jump_wall(3 * day)
    engine.advance(3700)
    assert engine.call(engine.store.runs(RunFilter())) == []
    assert files() == []
    engine.close()


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tries"),
    [("ValidationError", 1), ("StorageError", 3), ("HandlerError", 1), ("PipelineStepError", 1)],
)
def test_rows_44_45_errors_have_the_workers_names_and_storage_alone_is_tried_again(name, tries):
    failing: Pipeline[Any] = Pipeline("failing", max_attempts=1)
    executed: list[int] = []

    @failing.step(max_attempts=3)
    def claims() -> int:
        executed.append(1)
        raise getattr(errors, name)("no answer")

    documents = MemoryDocuments()
    engine = TestEngine(failing, documents=documents, projections=["state_documents"])
    engine.submit(failing, key="abc123")
    engine.advance(30)
    state = json.loads(documents.read("pipeline_state:abc123") or b"{}")
    assert state["error"] == {"message": "no answer", "name": name, "step": "claims"}
    assert (state["status"], len(executed)) == ("failed", tries)
    engine.close()


@pytest.mark.parametrize("error", [TimeoutError, ConnectionError, errors.StorageError])
def test_row_41_after_a_network_time_out_results_are_reused_and_the_step_is_tried_again(error):
    shaky: Pipeline[Any] = Pipeline("shaky")
    executed: list[str] = []

    @shaky.step
    def claims() -> int:
        executed.append("claims")
        return 1

    @shaky.step(max_attempts=3)
    def summaries(claims: int) -> int:
        executed.append("summaries")
        if executed.count("summaries") < 3:
            raise error("the network is away")
        return claims + 1

    engine = TestEngine(shaky)
    run = engine.submit(shaky)
    engine.advance(120)
    assert engine.result(run) == 2
    assert executed == ["claims", "summaries", "summaries", "summaries"]
    engine.close()


@pytest.mark.parametrize(("allowed", "damages", "ends"), [(3, 2, "succeeded"), (3, 3, "failed"),
                                                          (4, 3, "succeeded")])  # fmt: skip
def test_rows_42_43_72_damaged_results_are_counted_made_again_and_then_fail(allowed, damages, ends):
    pipeline, executed = gated()
    pipeline = pipeline.with_options(PipelineOptions(max_validation_failures=allowed))
    engine = Lab(pipeline)
    run = engine.submit(pipeline, {"id": "abc123"})
    engine.advance(10)
    for _ in range(damages):
        engine.kill()
        engine.damage(run, "clustering")
        engine.advance(60)
    engine.drain()
    assert engine.info(run).state == ends
    if ends == "failed":
        assert "failed validation 3 times" in str(engine.info(run).error)
    else:
        assert executed.count("clustering") == 1 + damages
    engine.close()


def test_row_48_while_storage_is_away_a_message_comes_again(monkeypatch):
    async def story():
        pipeline, _ = gated()
        bus = InProcessBus()
        async with Holdfast("memory:", [pipeline], bus=bus, worker=False) as app:
            await app.receive(Receive(JOBS, "gated"))
            apply, away, refused = app.store.apply, [True], asyncio.Event()

            async def sometimes(commands):
                if away[0] and any(isinstance(command, Submit) for command in commands):
                    refused.set()
                    raise StoreUnavailable("away")
                return await apply(commands)

            monkeypatch.setattr(app.store, "apply", sometimes)
            monkeypatch.setattr("holdfast.engine.receiver.NACK_DELAY", 0.05)
            await bus.publish(JOBS, Message("m-1", b'{"id": "abc123"}'))
            await asyncio.wait_for(refused.wait(), 20)
            away[0] = False
            change = 0
            async with asyncio.timeout(20):
                while not (runs := await app.store.runs(RunFilter(key="abc123"))):
                    change = await app.store.wait(change, 1.0)
            assert int(runs[0].attributes["delivery-attempt"]) > 1

    asyncio.run(story())


@pytest.mark.parametrize("size", [400, 40_000])
def test_row_50_flow_control_by_bytes_is_strict(size):
    """Whether inputs are in the store or, being large, in the blob store."""
    assert WorkerOptions().max_bytes == 500 * 1024 * 1024
    assert Receive(JOBS, "report").max_bytes == 500 * 1024 * 1024
    together: list[int] = []
    pipeline: Pipeline[Any] = Pipeline("sized", input=str)

    @pipeline.step
    async def work(request: str) -> int:
        busy.append(len(request))
        together.append(sum(busy))
        await asyncio.sleep(10)
        busy.remove(len(request))
        return 1

    busy: list[int] = []
    engine = TestEngine(pipeline, worker=WorkerOptions(max_bytes=5 * size // 2))
    runs = [engine.submit(pipeline, "x" * size) for _ in range(7)]
    engine.submit(pipeline, "x" * 3 * size)  # one is always let in
    engine.drain()
    assert [engine.result(run) for run in runs] == [1] * 7
    assert sorted(set(together)) == [size, 2 * size, 3 * size]
    assert together.count(3 * size) == 1
    engine.close()


def test_row_66_unsafe_redis_settings_are_refused():
    """The advice of the worker's own runbook would lose locks and state."""
    refused = pytest.raises(ConfigurationError, match=r"allkeys-lru.*noeviction")
    with a_server("--maxmemory-policy", "allkeys-lru") as redis, refused:
        asyncio.run(RedisStore(redis.url()).open())


def test_row_68_a_step_is_added_by_declaring_it():
    pipeline, _ = gated("more")

    @pipeline.step
    def translations(claims: int) -> int:
        return 10 * claims

    documents = MemoryDocuments()
    engine = TestEngine(pipeline, documents=documents, projections=["state_documents"])
    run = engine.submit(pipeline, {"id": "abc123"})
    engine.drain()
    engine.advance(2)
    state = json.loads(documents.read("pipeline_state:abc123") or b"{}")
    assert list(state["stepAnalytics"]) == ["clustering", "claims", "translations"]
    assert state["completedResults"]["translations"]["data"] == engine.result(run) == 20
    engine.close()


def test_row_76_the_six_instructions_are_what_the_model_is_told(tmp_path):
    message = job()
    prompts = message["config"]["instructions"]
    for number, name in enumerate(prompts):
        prompts[name] = f"Instruction {number}: {prompts[name]}"

    async def story():
        async with FakeLLM(ReportBrain()) as fake:
            message["config"]["llm"]["model"] = fake.address()
            (tmp_path / "job.json").write_text(json.dumps(message))
            environment = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
            settings = environment | fake.environment
            command = [sys.executable, "-m", "holdfast", "report", "build", "job.json", "-o", "out"]
            build = partial(subprocess.run, command, check=True, cwd=tmp_path, env=settings)
            await asyncio.to_thread(build, capture_output=True, timeout=60)
            return fake.calls

    sent_prompts: dict[str, str] = {}
    for call in asyncio.run(story()):
        sent_prompts[call.task] = sent_prompts.get(call.task, "") + call.system + call.text
    assert all(prompts["systemInstructions"] in text for text in sent_prompts.values())
    for task, name in (
        ("clustering", "clusteringInstructions"),
        ("extraction", "extractionInstructions"),
        ("dedup", "dedupInstructions"),
        ("summaries", "summariesInstructions"),
        ("crux", "cruxInstructions"),
    ):
        assert prompts[name] in sent_prompts[task], sorted(sent_prompts)


def test_row_77_steps_run_side_by_side_stream_and_answers_are_batched_and_reused(tmp_path):
    assert "clustering" not in report.steps["opinions"].waits_for
    assert "opinions" not in report.steps["clustering"].waits_for
    assert set(report.steps["sort_and_deduplicate"].streams) == {"claims"}

    async def story():
        async with FakeLLM(ReportBrain()) as fake:
            settings = {"HOLDFAST_LLM": fake.address(), **fake.environment}
            await asyncio.to_thread(report_of, tmp_path, **settings)
            counts = Counter(call.task for call in fake.calls)
            await asyncio.to_thread(report_of, tmp_path, "--no-cruxes", **settings)
            return counts, Counter(call.task for call in fake.calls)

    once, twice = asyncio.run(story())
    assert once["extraction"] < len(COMMENTS)  # several comments in one question
    assert twice["extraction"] == once["extraction"]  # answers are reused


def test_row_79_a_jobs_lock_is_released_by_force():
    """`redis-cli DEL pipeline_lock:…` is `holdfast locks release` here: nobody can write under the
    old lock."""
    pipeline, executed = gated()
    engine = TestEngine(pipeline)
    run = engine.submit(pipeline, {"id": "abc123"})
    engine.advance(2)
    epoch = engine.info(run).epoch
    locks = engine.app.service(tenant=None, actor="ada").locks
    engine.call(locks.release("pipeline_lock:abc123", reason="stuck"))
    engine.advance(2)
    assert engine.info(run).epoch > epoch
    audit = engine.call(engine.store.audit())
    assert {(entry.actor, entry.action) for entry in audit} >= {
        ("ada", "run.pause"),
        ("ada", "run.resume"),
    }
    engine.advance(200)
    assert engine.info(run).state == "succeeded"
    assert executed == ["clustering", "claims", "claims"]
    with pytest.raises(NotFound, match="is not held"):
        engine.call(locks.release("pipeline_lock:abc123"))
    engine.close()


def test_row_80_failures_stand_in_the_log_with_time_and_reason_and_are_listed_since(deployment):
    buried = [line for line in deployment.log().splitlines() if "buried" in line]
    assert len(buried) == 2
    assert all(re.match(r"\d\d:\d\d:\d\d WARNING message m-", line) for line in buried), buried
    [run] = [run for run in deployment.runs() if run.key == "silent"]
    failed = [line for line in deployment.log().splitlines() if " ERROR " in line]
    assert len(failed) == 1
    assert run.id in failed[0]
    assert run.error.message in deployment.log()

    def listed(*words: str) -> list[dict[str, Any]]:
        command = [sys.executable, "-m", "holdfast", "dlq", "list", "--json", *words]
        process = subprocess.run(
            command,
            env=deployment.environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return json.loads(process.stdout)["items"]

    assert len(listed("--since", "1h")) == 3
    assert listed("--since", "1ms") == []


def test_row_37_an_operator_resumes_from_the_last_completed_step():
    pipeline, executed = gated()
    engine = TestEngine(pipeline)
    run = engine.submit(pipeline, {"id": "abc123", "fails": 1})
    engine.advance(10)
    assert engine.info(run).state == "failed"
    engine.call(engine.app.operations.resume("abc123", actor="ada"))
    engine.advance(200)
    assert engine.result(run) == 2
    assert executed == ["clustering", "claims", "claims"]
    engine.close()


@pytest.mark.parametrize(
    ("stage", "most", "cpu", "memory"),
    [("staging", 10, "2", "4Gi"), ("production", 20, "4", "8Gi")],
)
def test_rows_55_56_cloud_run_has_the_figures_of_the_worker(stage, most, cpu, memory):
    service = cloud_run(f"pipeline-worker-{stage}.yaml")
    template = service["spec"]["template"]
    annotations, spec = template["metadata"]["annotations"], template["spec"]
    assert annotations["autoscaling.knative.dev/minScale"] == "0"
    assert annotations["autoscaling.knative.dev/maxScale"] == str(most)
    assert (spec["containerConcurrency"], spec["timeoutSeconds"]) == (5, 3600)
    assert container(service)["resources"]["limits"] == {"cpu": cpu, "memory": memory}


@pytest.mark.parametrize(("stage", "suffix"), [("staging", ""), ("production", "-production")])
def test_row_57_workflows_deploy_by_the_names_that_are_known(stage, suffix):
    [workflow] = documents(WORKFLOWS / f"deploy-pipeline-worker{suffix}.yml")
    job = workflow["jobs"]["deploy"]
    assert job["with"] == {"environment": stage, "description": f"pipeline-worker-{stage}.yaml"}
    [called] = documents(ROOT / job["uses"])
    steps = " ".join(step.get("run", "") for step in called["jobs"]["deploy"]["steps"])
    assert "docker build" in steps
    assert "gcloud run services replace" in steps


def test_row_58_pushes_wake_the_service_and_it_goes_on_after_the_answer():
    """A service that pulls would sleep beside its backlog: instances come with requests."""
    for stage in ("staging", "production"):
        service = cloud_run(f"pipeline-worker-{stage}.yaml")
        annotations = service["spec"]["template"]["metadata"]["annotations"]
        assert annotations["run.googleapis.com/cpu-throttling"] == "false"
        assert container(service)["args"][0] == "serve"
    pushed = terraform()["google_pubsub_subscription.subscription"]["dynamic"]
    assert any("push_config" in block for block in pushed)


def test_row_59_the_runbooks_have_the_worker_s_commands():
    page = (ROOT / "docs" / "howto" / "cloud-run.md").read_text()
    for command in (
        "gcloud run services describe stage-t3c-pipeline-worker",
        'gcloud logging read \'resource.type="cloud_run_revision"',
        "gcloud pubsub subscriptions describe pipeline-worker",
        "--max-instances",
        "--concurrency",
    ):
        assert command in page


def test_row_74_each_service_has_an_account_that_may_do_its_own_work_only():
    resources = terraform()
    assert terraform_locals()["consumes"]["pipeline-worker"]
    roles = {name: body["role"] for name, body in resources.items() if "role" in body}
    assert set(roles.values()) == {
        "roles/pubsub.subscriber",
        "roles/pubsub.publisher",
        "roles/storage.objectUser",
        "roles/datastore.user",
        "roles/secretmanager.secretAccessor",
    }
    assert "secret_id" in resources["google_secret_manager_secret_iam_member.reader"]
    project_wide = {name for name in roles if name.startswith("google_project_iam")}
    assert project_wide == {"google_project_iam_member.documents"}
    for stage in ("staging", "production"):
        spec = cloud_run(f"pipeline-worker-{stage}.yaml")["spec"]["template"]["spec"]
        assert spec["serviceAccountName"].startswith("pipeline-worker@")


@contextmanager
def a_process(*words, folder, **env):
    """`holdfast WORDS` with its first lines on stderr read until it says that it listens."""
    environment = {
        name: text for name, text in os.environ.items() if not name.startswith("HOLDFAST_")
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "--app", str(GATED), *words],
        cwd=folder,
        env=environment | env,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def asked(url):
    for _ in range(600):
        try:
            return httpx2.get(url, timeout=5)
        except httpx2.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"{url} does not answer")


GATED = Path(__file__).parents[1] / "gated_pipeline.py"


def test_rows_51_52_the_service_and_the_worker_answer_health_on_their_port(tmp_path):
    port = free_port()
    with a_process("serve", folder=tmp_path, PORT=str(port)):
        for path in ("/health", "/"):
            body = asked(f"http://127.0.0.1:{port}{path}").json()
            assert (body["status"], body["active_messages"]) == ("ok", 0)
            assert body["uptime_seconds"] > 0
    port = free_port()
    with a_process("worker", "--port", str(port), folder=tmp_path):
        for path in ("/health", "/", "/health/live", "/health/startup"):
            asked(f"http://127.0.0.1:{port}{path}")
        until(lambda: asked(f"http://127.0.0.1:{port}/health/ready").status_code == 200)
        assert asked(f"http://127.0.0.1:{port}/health").json()["status"] == "ok"
        assert asked(f"http://127.0.0.1:{port}/other").status_code == 404


def test_row_54_the_health_server_is_closed_first_and_the_process_ends_cleanly(tmp_path):
    port = free_port()
    options = ("worker", "--port", str(port), "--drain-timeout", "30s")
    with a_process(*options, folder=tmp_path) as process:
        until(lambda: asked(f"http://127.0.0.1:{port}/health/ready").status_code == 200)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    with pytest.raises(httpx2.TransportError):
        httpx2.get(f"http://127.0.0.1:{port}/health", timeout=5)


def until(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("not within 30 s")
