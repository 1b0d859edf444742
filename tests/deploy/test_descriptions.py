"""Deployments as they are described: by the linters of their formats, and by our own command line
and settings, so that nothing is described that does not exist."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from holdfast.cli.main import load_command
from holdfast.settings import CONFIG, FIELDS

from .descriptions import (
    CLOUD_RUN,
    DEPLOY,
    ROOT,
    TERRAFORM,
    UNITS,
    WORKFLOWS,
    Process,
    cloud_run,
    container,
    documents,
    processes,
    terraform,
    terraform_locals,
)

BIN = Path(sys.executable).parent
KEYS = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_AI_API_KEY", "YOUTUBE_API_KEY"}
OTHERS = {"PORT", "PUBSUB_EMULATOR_HOST", CONFIG}


def run(*words: str | Path) -> None:
    process = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, cwd=ROOT
    )
    assert process.returncode == 0, process.stdout + process.stderr


def test_the_image_is_described_well() -> None:
    run(BIN / "hadolint", "Dockerfile")


def test_nothing_but_the_package_is_sent_to_the_builder() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert lines[0] == "*"


def test_compose_follows_its_schema() -> None:
    run(
        BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml"
    )


def test_workflows_follow_their_schema() -> None:
    paths = sorted(WORKFLOWS.glob("*.yml"))
    assert paths
    run(BIN / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *paths)


def test_workflows_give_nobody_more_than_they_need() -> None:
    run(BIN / "zizmor", "--offline", "--quiet", "--min-severity", "medium", WORKFLOWS)


def test_kubernetes_accepts_the_objects() -> None:
    run(BIN / "kubernetes-validate", "--strict", DEPLOY / "kubernetes" / "holdfast.yaml")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_accepts_the_units(unit: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        assert not os.environ.get("CI"), "systemd-analyze is missing"
        pytest.skip("systemd-analyze is missing")
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/holdfast/bin/holdfast", "/bin/true"))
    run(analyze, "verify", copy)


def test_terraform_is_well_formed() -> None:
    assert terraform()
    if program := shutil.which("terraform"):
        run(program, "fmt", "-check", "-diff", TERRAFORM)


@pytest.mark.parametrize("process", processes(), ids=lambda process: process.where)
def test_every_process_is_a_command_that_exists(process: Process) -> None:
    name, *words = process.arguments
    command = load_command(name)
    assert command is not None, name
    with command.make_context(name, words, resilient_parsing=False) as context:
        assert context.params


@pytest.mark.parametrize("process", processes(), ids=lambda process: process.where)
def test_every_variable_is_a_setting(process: Process) -> None:
    names = {name for field in FIELDS for name in field.names}
    assert process.environment <= names | KEYS | OTHERS


@pytest.mark.parametrize("path", sorted(CLOUD_RUN.glob("*.yaml")), ids=lambda path: path.name)
def test_an_instance_executes_as_many_runs_as_are_sent_to_it(path: Path) -> None:
    description = cloud_run(path.name)
    if description["kind"] == "Service":
        words = container(description)["args"]
        at_once = description["spec"]["template"]["spec"]["containerConcurrency"]
        assert words[words.index("--worker") + 1] == str(at_once)
        assert "HOLDFAST_CONCURRENCY" not in str(container(description)["env"])


@pytest.mark.parametrize("path", sorted(CLOUD_RUN.glob("*.yaml")), ids=lambda path: path.name)
def test_an_account_may_read_the_secrets_of_its_process_and_no_other(path: Path) -> None:
    [account] = set(re.findall(r"serviceAccountName: ([\w-]+)@", path.read_text()))
    secrets = set(re.findall(r"secretKeyRef: {name: ([\w-]+),", path.read_text()))
    assert secrets <= set(terraform_locals()["reads"][account])


def filled(path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", CLOUD_RUN / "fill.sh", path.name],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("path", sorted(CLOUD_RUN.glob("*.yaml")), ids=lambda path: path.name)
def test_a_description_is_filled_in(path: Path) -> None:
    """What is filled in is only what is meant: names of variables stay."""
    given = {"IMAGE": "host/image:1", "PROJECT": "my-project", "ENDPOINT": "https://here.run.app"}
    done = filled(path, **given)
    assert done.returncode == 0, done.stderr
    assert "${" not in done.stdout
    before, after = cloud_run(path.name), yaml.safe_load(done.stdout)
    assert container(after)["image"] == given["IMAGE"]
    variables = {it["name"]: it.get("value") for it in container(after)["env"]}
    assert list(variables) == [it["name"] for it in container(before)["env"]]
    assert variables.get("PUBSUB_PROJECT_ID", "my-project") == "my-project"
    endpoint = "https://here.run.app/pubsub"
    assert variables.get("HOLDFAST_PUSH_ENDPOINT", endpoint) == endpoint
    for name in (
        "IMAGE",
        "PROJECT",
        *(["ENDPOINT"] if "HOLDFAST_PUSH_ENDPOINT" in variables else []),
    ):
        refused = filled(path, **{key: value for key, value in given.items() if key != name})
        assert refused.returncode != 0
        assert name in refused.stderr


def test_the_workflow_and_the_guide_fill_descriptions_in() -> None:
    for text in (WORKFLOWS / "deploy-cloud-run.yml", ROOT / "docs" / "howto" / "cloud-run.md"):
        assert "deploy/cloudrun/fill.sh" in text.read_text()
        assert "sed " not in text.read_text()


def test_what_pubsub_gives_up_is_kept() -> None:
    """A topic without a subscription keeps nothing."""
    subscriptions = terraform_locals()["subscriptions"]
    topics = {subscription["topic"] for subscription in subscriptions.values()}
    assert "dead-letters" in topics
    assert set(terraform_locals()["dead_letters"]) <= set(subscriptions)


@pytest.mark.parametrize("path", sorted(CLOUD_RUN.glob("*.yaml")), ids=lambda path: path.name)
def test_every_process_reaches_its_store_and_has_a_bucket(path: Path) -> None:
    template = cloud_run(path.name)["spec"]["template"]
    annotations = template["metadata"]["annotations"]
    assert json.loads(annotations["run.googleapis.com/network-interfaces"])
    names = {variable["name"] for variable in container(cloud_run(path.name))["env"]}
    assert names & {"GCS_BUCKET_NAME", "STORAGE_BUCKET_NAME"}


def test_prometheus_and_grafana_of_compose_find_what_they_read() -> None:
    [compose] = documents(DEPLOY / "compose.yaml")
    [prometheus] = documents(DEPLOY / "prometheus" / "prometheus.yml")
    aliases = {
        alias
        for service in compose["services"].values()
        for alias in service.get("networks", {}).get("default", {}).get("aliases", ())
    }
    for job in prometheus["scrape_configs"]:
        named = [it for it in job.get("static_configs", ()) for it in it["targets"]]
        named += [it for it in job.get("dns_sd_configs", ()) for it in it["names"]]
        assert named
        assert {name.partition(":")[0] for name in named} <= aliases
    mounted = [volume.split(":") for volume in compose["services"]["grafana"]["volumes"]]
    assert all((DEPLOY / source).exists() for source, *_ in mounted)
    provisioning = DEPLOY / "grafana" / "provisioning"
    [sources] = documents(provisioning / "datasources" / "prometheus.yaml")
    assert sources["datasources"][0]["url"] == "http://prometheus:9090"
    [dashboards] = documents(provisioning / "dashboards" / "holdfast.yaml")
    folder = dashboards["providers"][0]["options"]["path"]
    assert any(target == f"{folder}/holdfast.json" for _, target, *_ in mounted)
