"""Every file in examples/ runs, as its first lines say, in a folder of its own and within a bounded
time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
CRASHES = EXAMPLES.parent / "tests" / "acceptance" / "test_crashes.py"
REPORTS = CRASHES.with_name("test_report.py")
TIMEOUT = 100

SAYS = {
    "ten_lines.py": "whatever",
    "fifo_lane.py": "booked in the order [1, 2, 3, 4, 5, 6, 7]; booking 3 took 2 tries",
    "locks.py": "the late write was refused",
    "own_tests.py": "6 passed",
}
"""What the small ones print, among other things."""

PARTS = {
    "crash_pipeline.py": "crash.py",
    "crash_summary.py": "crash.py",
    "kill_workers_check.py": "kill_workers.py",
    "kill_workers_fleet.py": "kill_workers.py",
    "kill_workers_pipeline.py": "kill_workers.py",
    "kill_workers_server.py": "kill_workers.py",
}
"""Files that another example imports."""


def call(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Nothing of the caller's settings reaches an example."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    process = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process


APPS = sorted(path.parent for path in EXAMPLES.glob("*/test_*.py"))
"""Folders with an app and its tests."""


@pytest.mark.parametrize("folder", APPS, ids=lambda folder: folder.name)
def test_the_tests_of_an_app_pass(folder: Path) -> None:
    options = ("-q", "--import-mode=prepend", "-p", "no:cacheprovider", "-p", "no:xdist")
    assert "[100%]" in call("-m", "pytest", *options, ".", cwd=folder).stdout


def test_no_example_is_forgotten() -> None:
    """A new file is named here, or is tried by the acceptance tests because it takes longer."""
    other_files = {"crash.py": CRASHES, "demo.py": REPORTS, "kill_workers.py": CRASHES}
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        *SAYS,
        *PARTS,
        *other_files,
        "comments.py",
    }
    assert all(f'"{name}"' in tests.read_text() for name, tests in other_files.items())
    assert all(
        f"from {Path(part).stem} import" in (EXAMPLES / file).read_text()
        for part, file in PARTS.items()
    )


@pytest.mark.parametrize("name", SAYS)
def test_an_example_runs_and_says_what_it_should(name: str, tmp_path: Path) -> None:
    assert SAYS[name] in call(str(EXAMPLES / name), cwd=tmp_path).stdout


def test_an_example_can_be_run_again_in_the_same_folder(tmp_path: Path) -> None:
    for _ in range(2):
        assert SAYS["locks.py"] in call(str(EXAMPLES / "locks.py"), cwd=tmp_path).stdout


def test_the_comments_pipeline_runs_from_the_command_line(tmp_path: Path) -> None:
    app = ("--app", str(EXAMPLES / "comments.py"))
    holdfast = ("-m", "holdfast", *app)
    process = call(
        *holdfast,
        "run",
        "comments",
        "--input",
        "title=Parks",
        "--input",
        "cruxes:=true",
        cwd=tmp_path,
    )
    report = json.loads(process.stdout)
    assert report["title"] == "Parks"
    assert report["topics"]["dogs"] == 2
    assert "dogs" in report["cruxes"]


def test_the_comments_pipeline_is_served_by_a_worker(tmp_path: Path) -> None:
    holdfast = ("-m", "holdfast", "--app", str(EXAMPLES / "comments.py"))
    run = call(*holdfast, "run", "comments", "--no-wait", cwd=tmp_path).stdout.strip()
    call(*holdfast, "worker", "--once", cwd=tmp_path)
    view = json.loads(call(*holdfast, "runs", "show", run, "--json", cwd=tmp_path).stdout)
    assert view["run"]["state"] == "succeeded"
    steps = {step["name"]: step for step in view["steps"]}
    assert steps["cruxes"]["status"] == "skipped"
    assert steps["claims"]["items"] == 6
    assert steps["claims"]["usage"]["calls"] == 6
