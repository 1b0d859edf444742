"""Topics and subscriptions as the settings want them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from datetime import timedelta

import pytest
from google.pubsub_v1.types import Subscription
from tests.emulators import fresh_project, shared_pubsub
from tests.integration.pubsub.google import Google

from holdfast import bootstrap
from holdfast.adapters.pubsub.address import parse
from holdfast.adapters.pubsub.client import Client
from holdfast.adapters.pubsub.setup import figures, planned_figures, subscription_settings
from holdfast.bootstrap.pubsub import bus_url, flow_findings, receives, set_up, topology
from holdfast.errors import ConfigurationError
from holdfast.model.topology import SubscriptionPlan
from holdfast.settings import load

STAGES = {"PUBSUB_TOPIC_WORK": "job-processing", "PUBSUB_TOPIC_EVENTS": "my-events"}
PUSH = {
    "HOLDFAST_PUSH_ENDPOINT": "https://worker.example.org/pubsub",
    "HOLDFAST_PUSH_SERVICE_ACCOUNT": "pusher@my-project.iam.gserviceaccount.com",
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", shared_pubsub().host)
    project = fresh_project()

    def loaded(settings=None, /, **env):
        env = {"HOME": str(tmp_path), "PUBSUB_PROJECT_ID": project, **env}
        return load(settings, env=env, cwd=tmp_path)

    loaded.project = project
    return loaded


def checked(loaded, *, change=False):
    async def collect():
        return {c.name: c async for c in set_up(loaded, change=change)}

    return asyncio.run(collect())


def statuses(findings):
    return {checked.status for checked in findings.values()}


def described(home, name):
    google = Google(shared_pubsub(), home.project)
    path = google.subscription(name)
    return Subscription.pb(google.subscriber.get_subscription(request={"subscription": path}))


def test_with_nothing_configured_there_are_jobs_results_and_dead_letters(home):
    assert statuses(checked(home())) == {"missing"}
    assert statuses(checked(home(), change=True)) == {"created"}
    assert statuses(checked(home())) == {"fine"}
    jobs = described(home, "aiprod-pipeline-jobs-sub")
    assert jobs.topic.endswith("/topics/aiprod-pipeline-jobs")
    assert jobs.ack_deadline_seconds == 300
    assert jobs.retry_policy.minimum_backoff.seconds == 10
    assert jobs.retry_policy.maximum_backoff.seconds == 600
    assert jobs.dead_letter_policy.dead_letter_topic.endswith("/topics/aiprod-pipeline-dlq")
    assert jobs.dead_letter_policy.max_delivery_attempts == 5
    assert jobs.enable_message_ordering
    for name in ("aiprod-pipeline-results-sub", "aiprod-pipeline-dlq-sub"):
        assert described(home, name).ack_deadline_seconds == 60


def test_stages_share_a_topic_by_filters_and_messages_are_pushed(home):
    checked(home(**STAGES, **PUSH), change=True)
    metadata = described(home, "worker-metadata")
    assert metadata.filter == "NOT attributes:worker-type"
    assert metadata.push_config.push_endpoint == "https://worker.example.org/pubsub"
    token = metadata.push_config.oidc_token
    assert token.service_account_email == PUSH["HOLDFAST_PUSH_SERVICE_ACCOUNT"]
    assert token.audience == "https://worker.example.org/pubsub"
    assert described(home, "worker-transcription").filter == (
        'attributes.worker-type = "transcription"'
    )
    assert described(home, "holdfast-unmatched.job-processing").filter == ""
    assert described(home, "my-events-sub").topic.endswith("/topics/my-events")


def test_each_stage_may_be_a_service_that_is_pushed_to(home):
    def receive(stage, **more):
        return {"topic": "job-processing", "pipeline": stage, "subscription": stage,
                "push_endpoint": f"https://{stage}.example.org/pubsub", **more}  # fmt: skip

    both = [
        receive("metadata", filter="NOT attributes:worker-type"),
        receive("transcription", filter='attributes.worker-type = "transcription"'),
    ]
    # The file is that of both services; the environment says which of them this is.
    for own in ("metadata", "transcription"):
        endpoint = f"https://{own}.example.org/pubsub"
        loaded = home({"receive": both}, **{**PUSH, "HOLDFAST_PUSH_ENDPOINT": endpoint})
        checked(loaded, change=True)
        assert statuses(checked(loaded)) == {"fine"}
    for stage in ("metadata", "transcription"):
        push = described(home, stage).push_config
        assert push.push_endpoint == f"https://{stage}.example.org/pubsub"
        assert push.oidc_token.audience == push.push_endpoint


def test_names_of_the_report_worker_are_used(home):
    env = {"PUBSUB_TOPIC_NAME": "pipeline-jobs", "PUBSUB_SUBSCRIPTION_NAME": "pipeline-worker"}
    findings = checked(home(**env), change=True)
    assert {"pipeline-jobs", "pipeline-worker"} <= set(findings)
    assert "aiprod-pipeline-results" not in findings
    [receive] = receives(home(**env), ["report"])
    assert (receive.topic, receive.group, receive.pipeline) == (
        "pipeline-jobs", "pipeline-worker", "report",
    )  # fmt: skip


def test_what_differs_is_said_and_changed_if_it_can_be(home):
    google = Google(shared_pubsub(), home.project)
    google.create("aiprod-pipeline-jobs", "aiprod-pipeline-jobs-sub", ack_deadline_seconds=30)
    findings = checked(home())["aiprod-pipeline-jobs-sub"]
    assert [str(difference) for difference in findings.differences] == [
        "ordering is off, planned on",
        "ack deadline is 30 s, planned 300 s",
        "retry is none, planned 10 to 600 s",
        "dead letters is none, planned aiprod-pipeline-dlq after 5",
    ]
    changed = checked(home(), change=True)["aiprod-pipeline-jobs-sub"]
    assert changed.status == "changed"
    assert not changed.is_right  # the ordering can't be changed
    remaining = checked(home())["aiprod-pipeline-jobs-sub"]
    assert [difference.what for difference in remaining.differences] == ["ordering"]


def test_a_token_for_somebody_else_and_an_end_for_want_of_use_are_said():
    plan = SubscriptionPlan(
        name="jobs-sub", topic="jobs", push_endpoint="https://a.example/pubsub",
        push_service_account="pusher@p.example", push_audience="https://a.example/pubsub",
    )  # fmt: skip
    address = parse("pubsub://my-project?emulator=localhost:1")
    current = Subscription(subscription_settings(address, plan))
    assert figures(current) == planned_figures(plan)
    current.push_config.oidc_token.audience = "https://b.example/pubsub"
    current.expiration_policy.ttl = timedelta(days=31)
    now, planned = figures(current), planned_figures(plan)
    assert {name for name in planned if now[name] != planned[name]} == {"push", "expires"}
    assert now["push"].endswith("as pusher@p.example for https://b.example/pubsub")
    assert now["expires"] == "after 31 days without use"


def test_a_worker_that_creates_a_subscription_meanwhile_is_no_error(home, monkeypatch):
    """Between the look and the creation somebody else was faster, with other figures."""
    google = Google(shared_pubsub(), home.project)
    find, calls = Client.call, []

    async def call(client, method, **request):
        name = request.get("subscription") or request.get("name") or ""
        if str(name).endswith("aiprod-pipeline-jobs-sub") and "ack_deadline_seconds" in request:
            calls.append(name)
            google.create("aiprod-pipeline-jobs", "aiprod-pipeline-jobs-sub",
                          enable_message_ordering=True)  # fmt: skip
        return await find(client, method, **request)

    monkeypatch.setattr(Client, "call", call)
    jobs = checked(home(), change=True)["aiprod-pipeline-jobs-sub"]
    assert (len(calls), jobs.status, jobs.is_right) == (1, "changed", True)
    assert described(home, "aiprod-pipeline-jobs-sub").ack_deadline_seconds == 300


def test_the_command_says_what_it_did_and_doctor_says_the_same(home, tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "PUBSUB_"))}
    env |= {"HOME": str(tmp_path), "PUBSUB_EMULATOR_HOST": shared_pubsub().host}

    def holdfast(*words):
        command = [sys.executable, "-m", "holdfast", *words]
        process = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
        )
        return process.returncode, process.stdout, process.stderr

    code, _, err = holdfast("setup", "pubsub")
    assert (code, "give --project NAME, or set PUBSUB_PROJECT_ID" in err) == (2, True)
    code, out, _ = holdfast("setup", "pubsub", "--project", home.project, "--dry-run", "--json")
    assert (code, {item["status"] for item in json.loads(out)["items"]}) == (8, {"missing"})
    env["PUBSUB_PROJECT_ID"] = home.project
    doctor = json.loads(holdfast("doctor", "--json")[1])["items"]
    assert [f["check"] for f in doctor if f["seen"] == "missing"][:1] == [
        "topic aiprod-pipeline-jobs"
    ]
    code, out, _ = holdfast("setup", "pubsub")
    assert (code, out.count("created")) == (0, 7)
    code, out, _ = holdfast("setup", "pubsub")
    assert (code, out.count("fine")) == (0, 7)
    doctor = json.loads(holdfast("doctor", "--json")[1])["items"]
    [resources] = [finding for finding in doctor if finding["check"] == "resources"]
    assert resources["seen"] == "4 topics and 3 subscriptions as the settings want them"


def test_doctor_says_when_more_is_taken_in_than_executed(home):
    jobs = {"HOLDFAST_RECEIVE": "pipeline-jobs=report"}
    [agrees] = flow_findings(home(**jobs, HOLDFAST_CONCURRENCY="5"))
    assert (agrees.status, agrees.check) == ("ok", "flow pipeline-jobs")
    assert "at once 5 messages, 500.0 MiB are taken in, 5 runs" in agrees.seen
    [differs] = flow_findings(home(**jobs, HOLDFAST_CONCURRENCY="4"))
    assert differs.status == "warn"
    assert "concurrency to at least 5" in differs.fix


def test_doctor_looks_at_the_flow_of_stages_and_of_the_job_worker(home):
    stages = list(flow_findings(home(**STAGES, HOLDFAST_CONCURRENCY="3")))
    assert [(f.check, f.status) for f in stages] == [("flow job-processing", "warn")] * 2
    [jobs] = flow_findings(home(HOLDFAST_CONCURRENCY="5"))
    assert (jobs.check, jobs.status) == ("flow aiprod-pipeline-jobs", "ok")
    assert "5 messages, 10.0 MiB" in jobs.seen
    assert list(flow_findings(home(HOLDFAST_BUS="redis://localhost:6379/0"))) == []


def test_doctor_names_a_filter_that_can_not_be_changed(home):
    google = Google(shared_pubsub(), home.project)
    google.create("job-processing", "worker-metadata", enable_message_ordering=True)

    async def collect():
        loaded = home(**STAGES)
        return [f async for f in bootstrap.bus_health(bus_url(loaded), None, topology(loaded))]

    findings = {finding.check: finding for finding in asyncio.run(collect())}
    finding = findings["subscription worker-metadata"]
    assert "filter is none, planned NOT attributes:worker-type" in finding.seen
    assert "gcloud pubsub subscriptions delete worker-metadata" in finding.fix


# --- what the settings mean -----------------------------------------------------------------------


def test_a_project_is_the_bus_unless_the_bus_is_named(home):
    assert bus_url(home()) == f"pubsub://{home.project}"
    assert bus_url(home(HOLDFAST_BUS="redis://localhost:6379/0")) == "redis://localhost:6379/0"
    assert bus_url(home(HOLDFAST_BUS="none")) == "none"
    assert bus_url(home(HOLDFAST_BUS="pubsub://other-one")) == "pubsub://other-one"


def test_a_project_of_the_command_line_comes_before_that_of_the_url(tmp_path):
    env = {"HOME": str(tmp_path), "HOLDFAST_BUS": "pubsub://other-one?timeout=5s"}
    loaded = load({"pubsub.project": "my-project"}, env=env, cwd=tmp_path)
    assert bus_url(loaded) == "pubsub://my-project?timeout=5s"


def test_a_job_worker_takes_five_messages_and_ten_megabytes(home):
    [jobs] = receives(home(), ["creative"], is_job_worker=True)
    assert (jobs.topic, jobs.group) == ("aiprod-pipeline-jobs", "aiprod-pipeline-jobs-sub")
    assert (jobs.max_messages, jobs.max_bytes) == (5, 10 * 1024 * 1024)
    assert receives(home(), ["creative"]) == ()
    with pytest.raises(ConfigurationError, match=r"--receive aiprod-pipeline-jobs=PIPELINE"):
        receives(home(), ["creative", "report"], is_job_worker=True)


def test_stages_are_received_by_those_who_serve_them(home):
    [receive] = receives(home(**STAGES), ["transcription"])
    assert (receive.topic, receive.group, receive.filter) == (
        "job-processing",
        "worker-transcription",
        'attributes.worker-type = "transcription"',
    )
    assert [r.pipeline for r in receives(home(**STAGES), ["metadata", "transcription"])] == [
        "metadata", "transcription",
    ]  # fmt: skip
