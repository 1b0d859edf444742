"""Every name in the environment that users of other systems set has effect, or its lack of effect
is explained: when a worker starts, in `holdfast config show` and to `holdfast doctor`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.acceptance.conftest import Cli

from holdfast.adapters.llm.address import parse
from holdfast.adapters.llm.api_key import read_key
from holdfast.settings import FIELDS, load

NAMES = {
    "REDIS_HOST": "cache.internal",
    "REDIS_URL": "redis://cache.internal:6379/0",
    "DATABASE_URL": "postgresql://db.internal/jobs",
    "GCS_BUCKET_NAME": "tttc-reports",
    "STORAGE_BUCKET_NAME": "your-bucket-name",
    "GCLOUD_STORAGE_BUCKET": "tttc-reports",
    "GOOGLE_CREDENTIALS_ENCODED": "c2VjcmV0",
    "FIREBASE_CREDENTIALS_ENCODED": "c2VjcmV0",
    "GOOGLE_APPLICATION_CREDENTIALS": "path/to/credentials.json",
    "GOOGLE_CLOUD_PROJECT": "aiprod-484120",
    "PUBSUB_PROJECT_ID": "tttc-light-js",
    "PUBSUB_EMULATOR_HOST": "localhost:8085",
    "PUBSUB_TOPIC_NAME": "pipeline-jobs",
    "PUBSUB_SUBSCRIPTION_NAME": "pipeline-worker",
    "NODE_WORKER_TOPIC_NAME": "pipeline-jobs",
    "NODE_WORKER_SUBSCRIPTION_NAME": "pipeline-worker",
    "PUBSUB_TOPIC": "pipeline-jobs",
    "PUBSUB_SUBSCRIPTION": "pipeline-worker",
    "PUBSUB_TOPIC_WORK": "job-processing",
    "PUBSUB_TOPIC_EVENTS": "other-events",
    "PUBSUB_SUBSCRIPTION_METADATA": "metadata-worker-subscription",
    "PUBSUB_SUBSCRIPTION_TRANSCRIPTION": "transcription-worker-subscription",
    "PORT": "8081",
    "PIPELINE_LOCK_TIMEOUT_SECONDS": "7200",
    "LOCK_ACQUISITION_RETRIES": "3",
    "LOCK_ACQUISITION_RETRY_DELAY_SECONDS": "7",
    "LOCK_METRICS_ENABLED": "false",
    "LOCK_EXPIRATION_ALERT_THRESHOLD": "0.9",
    "HOLDFAST_PIPELINE_LOCK_TIMEOUT_SECONDS": "7200",
    "HOLDFAST_LOCK_ACQUISITION_RETRIES": "3",
    "HOLDFAST_LOCK_ACQUISITION_RETRY_DELAY_SECONDS": "7",
    "HOLDFAST_LOCK_METRICS_ENABLED": "false",
    "HOLDFAST_LOCK_EXPIRATION_ALERT_THRESHOLD": "0.9",
    "COMPUTE_QUEUE_LEADER_KEY": "locks:compute:generate:leader:v1",
    "COMPUTE_QUEUE_LEADER_TTL_MS": "30000",
    "COMPUTE_QUEUE_LEADER_RENEW_MS": "15000",
    "PIPELINE_TIMEOUT_MS": "1800000",
    "LOCK_TTL_SECONDS": "2100",
    "LOCK_EXTENSION_SECONDS": "600",
    "MAX_VALIDATION_FAILURES": "5",
    "LOG_LEVEL": "debug",
    "LOG_FORMAT": "json",
    "OTEL_SERVICE_NAME": "worker",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4317",
}
"""With values that are not the defaults."""


@pytest.mark.parametrize("name", NAMES)
def test_a_name_changes_a_setting_or_says_why_it_does_not(name, tmp_path):
    home = {"HOME": str(tmp_path)}
    loaded = load(env=home | {name: NAMES[name]}, cwd=tmp_path)
    usual = load(env=home, cwd=tmp_path)
    changed = [
        field.name for field in FIELDS if loaded.shown(field.name) != usual.shown(field.name)
    ]
    reasons = [useless.reason for useless in loaded.useless if useless.name == name]
    assert len(changed) + len(reasons) == 1, (changed, reasons)
    if changed:
        assert loaded.origins[changed[0]] == f"environment {name}"


@pytest.mark.parametrize("name", ["REDIS_PORT", "REDIS_PASSWORD", "REDIS_TLS"])
def test_parts_of_an_address_act_beside_the_host_and_say_so_when_they_are_alone(name, tmp_path):
    value = {"REDIS_PORT": "6380", "REDIS_PASSWORD": "pa/ss", "REDIS_TLS": "true"}[name]
    alone = load(env={"HOME": str(tmp_path), name: value}, cwd=tmp_path)
    assert "REDIS_HOST is not given" in alone.useless[0].reason
    assert "pa/ss" not in alone.useless[0].value
    env = {"HOME": str(tmp_path), "REDIS_HOST": "cache", name: value}
    together = load(env=env, cwd=tmp_path)
    assert together.useless == []
    assert (
        together.settings.store
        == {
            "REDIS_PORT": "redis://cache:6380/0",
            "REDIS_PASSWORD": "redis://:pa%2Fss@cache:6379/0",
            "REDIS_TLS": "rediss://cache:6379/0",
        }[name]
    )


def test_two_addresses_that_disagree_are_a_warning_that_says_which_wins(tmp_path):
    env = {"HOME": str(tmp_path), "REDIS_URL": "redis://a:6379/0", "REDIS_HOST": "b"}
    loaded = load(env=env, cwd=tmp_path)
    assert loaded.settings.store == "redis://a:6379/0"
    [warning] = loaded.warnings
    assert warning.startswith("environment REDIS_HOST is ignored: store comes from environment RED")
    assert load(env=env | {"REDIS_HOST": "a"}, cwd=tmp_path).warnings == []


@pytest.mark.parametrize("name", ["GOOGLE_AI_API_KEY", "GEMINI_API_KEY"])
def test_the_keys_of_the_model_are_used(name):
    key = read_key(parse("google:gemini-2.5-flash"), {name: "your-gemini-api-key"})
    assert key.reveal() == "your-gemini-api-key"


SECRET = "canary-3f9a"


def test_a_worker_and_config_show_say_what_has_no_effect_and_show_no_secret(tmp_path):
    environment = {
        name: text for name, text in os.environ.items() if not name.startswith("HOLDFAST_")
    }
    env = environment | {
        "HOME": str(tmp_path),
        "HOLDFAST_STORE": "memory:",
        "LOCK_TTL_SECONDS": "2100",
        "GOOGLE_CREDENTIALS_ENCODED": SECRET,
        "YOUTUBE_API_KEY": SECRET,
        "REDIS_PASSWORD": SECRET,
    }
    useless = sorted(entry.name for entry in load(env=env, cwd=tmp_path).useless)
    assert "LOCK_TTL_SECONDS" in useless

    def said(*words: str) -> str:
        command = [sys.executable, "-m", "holdfast", *words]
        process = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
        )
        assert process.returncode in (0, 8), process.stderr
        return process.stdout + process.stderr

    log, shown, doctor = said("worker", "--once"), said("config", "show"), said("doctor")
    for name in useless:
        assert log.count(f"{name} has no effect: ") == 1, log
        assert name in shown
        assert name in doctor
    assert SECRET not in log + shown + doctor


def test_config_show_tells_what_the_report_workers_own_file_means(tmp_path):
    (tmp_path / ".env").write_text(
        """# Redis (state persistence)
REDIS_HOST=localhost
REDIS_PORT=6379

# Google Cloud Storage (report files)
GCS_BUCKET_NAME=tttc-reports

# Pub/Sub (job queue)
PUBSUB_PROJECT_ID=tttc-light-js
PUBSUB_TOPIC_NAME=pipeline-jobs
PUBSUB_SUBSCRIPTION_NAME=pipeline-worker
LOCK_EXPIRATION_ALERT_THRESHOLD=0.7
"""
    )
    cli = Cli(tmp_path)
    (tmp_path / "holdfast.toml").unlink()
    answer = cli.here("config", "show", "--json").json["items"]
    prefix = f"{tmp_path}/"
    values = {item["name"]: (item["value"], item["origin"].removeprefix(prefix)) for item in answer}
    assert values["store"] == ("redis://localhost:6379/0", ".env REDIS_HOST")
    assert values["blobs"] == ("gs://tttc-reports", ".env GCS_BUCKET_NAME")
    assert values["bus"] == ("pubsub://tttc-light-js", ".env PUBSUB_PROJECT_ID")
    assert values["pubsub.topic"] == ("pipeline-jobs", ".env PUBSUB_TOPIC_NAME")
    assert values["pubsub.subscription"] == ("pipeline-worker", ".env PUBSUB_SUBSCRIPTION_NAME")
    assert values["locks.alert_threshold"][0] == "0.7"
