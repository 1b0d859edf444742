"""The compute queue: what it generates, what it may leave out, and that it survives crashes."""

import ast
import subprocess

import pytest
from app import compute
from compute_files import api_files
from compute_job import ComputeJob, QueueSettings
from compute_workspace import Workspace

from holdfast.testing import TestEngine, assert_crash_safe

JOB = {
    "instanceId": "inst-1",
    "microserviceId": "orders",
    "menus": ["Orders", "<b>Returns</b>"],
    "userInfo": {"name": "ann", "token": "geheim"},
    "traceId": "99d0",
}


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


@pytest.fixture
def engine(workspace):
    engine = TestEngine(compute, provide={Workspace: workspace})
    yield engine
    engine.close()


def commits(workspace, service="orders"):
    command = ["git", "-C", str(workspace.folder / service), "log", "--format=%H"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_a_job_generates_commits_and_names_a_service(engine, workspace):
    run = engine.submit(compute, JOB)
    engine.drain()
    deployment = engine.result(run)
    assert deployment.files == [
        ".github/workflows/ci.yml",
        "Dockerfile",
        "app/main.py",
        "app/page.html",
        "requirements.txt",
    ]
    assert deployment.host == "orders.example.internal."
    assert all((workspace.folder / "orders" / path).is_file() for path in deployment.files)
    assert len(commits(workspace)) == 1
    zone = (workspace.folder / "zone.db").read_text()
    assert (
        zone
        == f"; serial 1\norders\tIN\tCNAME\torders-{deployment.commit[:7]}.pods.example.internal.\n"
    )


def test_what_is_generated_can_be_read_by_python_and_by_browsers(engine, workspace):
    engine.submit(compute, JOB)
    engine.drain()
    ast.parse((workspace.folder / "orders/app/main.py").read_text())
    page = (workspace.folder / "orders/app/page.html").read_text()
    assert "&lt;b&gt;Returns&lt;/b&gt;" in page


@pytest.mark.parametrize(
    ("flag", "phase"),
    [
        ("generateApiFlag", "API_GENERATION"),
        ("generateFrontendFlag", "FRONTEND_GENERATION"),
        ("generateDevOpsFlag", "DEVOPS_GENERATION"),
        ("gitOperationsFlag", "GIT_OPERATIONS"),
        ("dnsUpdateFlag", "DNS_UPDATE"),
    ],
)
def test_each_phase_is_optional(engine, flag, phase):
    run = engine.submit(compute, JOB | {flag: False})
    engine.drain()
    assert engine.info(run).state == "succeeded"
    assert phase not in [step for _, step, _ in engine.executed]


def test_the_same_instance_is_one_job_and_a_second_instance_a_second_commit(engine, workspace):
    first, again = engine.submit(compute, JOB), engine.submit(compute, JOB)
    assert again.id == first.id
    engine.submit(compute, JOB | {"instanceId": "inst-2", "menus": ["New"]})
    engine.drain()
    assert len(commits(workspace)) == 2
    assert (workspace.folder / "zone.db").read_text().startswith("; serial 2\n")


def test_an_instance_whose_name_begins_like_another_is_another(workspace):
    first = workspace.commit("orders", "inst-1", {"a": "1"})
    assert workspace.commit("orders", "inst-.", {"a": "2"}) != first
    assert workspace.commit("orders", "inst-10", {"a": "3"}) != first
    assert workspace.commit("orders", "inst-1", {"a": "4"}) == first


def test_secrets_do_not_enter_the_queue():
    assert ComputeJob.model_validate(JOB).user_info == {"name": "ann"}


def test_files_depend_on_the_job_alone():
    job = ComputeJob.model_validate(JOB)
    assert api_files(job) == api_files(job.model_copy())


def test_the_environment_sets_attempts_delay_and_time_out(monkeypatch):
    assert QueueSettings.from_environment() == QueueSettings(10, 5.0, 900.0)
    monkeypatch.setenv("COMPUTE_GEN_MAX_ATTEMPTS", "3")
    monkeypatch.setenv("COMPUTE_GEN_RETRY_DELAY_MS", "250")
    monkeypatch.setenv("COMPUTE_GEN_TIMEOUT_MS", "60000")
    settings = QueueSettings.from_environment()
    assert (settings.max_attempts, settings.retry_delay, settings.timeout) == (3, 0.25, 60.0)


def test_it_survives_a_crash_anywhere(workspace):
    report = assert_crash_safe(compute, JOB, provide={Workspace: workspace})
    assert len(report.boundaries) >= 6
    assert len(commits(workspace)) == 1
    assert (workspace.folder / "zone.db").read_text().startswith("; serial 1\n")
