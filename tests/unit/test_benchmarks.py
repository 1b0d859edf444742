"""The benchmarks' own machinery: what they claim to measure exists, and figures are judged as they are told."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import embedded, harness, peers, report, servers
from benchmarks.catalogue import ANY_PEER, Benchmark, Extra, Goal, Subject, Suite, System
from benchmarks.harness import Failed, Harness, ask_process, parse

SUITES = [embedded.SUITE, servers.SUITE]
FAST = System("holdfast", "fast")


def rows_of(suite: Suite) -> set[tuple[str, str]]:
    """Every row that a complete measurement writes."""
    return {
        (name, subject.system.name)
        for benchmark in suite.benchmarks
        for subject in benchmark.subjects
        for name in (subject.row or benchmark.name, *(extra.row for extra in benchmark.extra))
    }


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_goal_is_about_rows_that_are_measured(suite: Suite) -> None:
    rows = rows_of(suite)
    names = {name for name, _ in rows}
    for goal in suite.goals:
        assert (goal.ours, "holdfast") in rows
        if isinstance(goal.theirs, tuple):
            assert goal.theirs in rows or (goal.theirs[1] == ANY_PEER and goal.theirs[0] in names)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_system_has_a_file_and_an_environment(suite: Suite) -> None:
    folder = Path(peers.__file__).with_name("systems")
    for system in {subject.system for benchmark in suite.benchmarks for subject in benchmark.subjects}:
        assert system.environment in {peers.OURS, peers.NODE, *peers.PACKAGES}
        assert (folder / system.module).exists() or (folder / f"{system.module}.py").exists()


def test_a_benchmark_has_one_name() -> None:
    for suite in SUITES:
        names = [benchmark.name for benchmark in suite.benchmarks]
        assert len(names) == len(set(names))


def test_every_package_of_the_peers_is_pinned() -> None:
    said = peers.versions()
    for package in ("dramatiq", "pgqueuer", "bullmq", "aioredlock", "arq"):
        assert f"{package} " in said


def test_no_address_of_an_index_is_committed() -> None:
    for file in peers.PINS.rglob("*"):
        if file.is_file():
            assert not {"resolved", "--index-url"} & set(file.read_text().replace('"', " ").split()), file


# --- processes -------------------------------------------------------------------------------------------------


def test_the_last_line_of_a_process_is_its_answer() -> None:
    output = ask_process([sys.executable, "-c", "print('noise'); print('{\"value\": 3}')"])
    assert parse(output, ["value"])["value"] == 3


def test_a_process_that_fails_says_why() -> None:
    with pytest.raises(Failed, match=r"exit status 1: ValueError: no such queue"):
        ask_process([sys.executable, "-c", "raise ValueError('no such queue')"])


def test_a_process_that_hangs_ends_with_all_that_it_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(harness, "TIMEOUT", 1.0)
    pid = tmp_path / "pid"
    child = "import subprocess, sys, time; p = subprocess.Popen(['sleep', '60']); "
    child += f"open({str(pid)!r}, 'w').write(str(p.pid)); time.sleep(60)"
    with pytest.raises(Failed, match="no answer within 1 s"):
        ask_process([sys.executable, "-c", child])
    assert gone(int(pid.read_text()))


def gone(pid: int) -> bool:
    """Whether a process has ended; whoever inherited it may not have noticed yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


# --- rows ------------------------------------------------------------------------------------------------------


def measured(ways: tuple[str, ...], answers: dict[str, list[dict[str, Any]]], **more: Any) -> list[dict[str, Any]]:
    benchmark = Benchmark("jobs", "runs/s", (Subject(FAST, 1, 1, ways),), **more)
    said: list[str] = []
    machinery = Harness(Suite("test", (benchmark,), (), 1), 0, False, True, False, {}, {}, said.append)
    machinery.answers = {("jobs", "holdfast", way): found for way, found in answers.items()}
    machinery.failures = {("jobs", "holdfast", way): ["it broke"] for way in ways if way not in answers}
    return machinery.measure(benchmark)


def test_the_best_way_counts_with_its_median_and_spread() -> None:
    answers = {"list": [{"value": 1}, {"value": 9}, {"value": 2}], "stream": [{"value": 3}, {"value": 4}, {"value": 5}]}
    [row] = measured(("list", "stream"), answers)
    assert (row["value"], row["min"], row["max"], row["way"], row["repeats"]) == (4, 3, 5, "stream", 3)


def test_further_figures_of_an_answer_are_rows_of_their_own() -> None:
    answers = {"": [{"value": 2, "p99": 7, "server_cpu": 0.5, "worker_cpu": 1.0}]}
    row, tail = measured(("",), answers, higher_is_better=False, extra=(Extra("p99", "jobs_p99", "ms"),))
    assert row["server_cpu"] == 0.5
    assert (tail["benchmark"], tail["value"]) == ("jobs_p99", 7)


def test_what_failed_is_missing_with_its_reason() -> None:
    [row] = measured(("",), {})
    assert row["value"] is None
    assert report.failures([row]) == "jobs, holdfast: missing: it broke"


def test_an_environment_that_is_missing_fails_its_systems_alone() -> None:
    benchmark = Benchmark("jobs", "runs/s", (Subject(System("peer", "peer", "redis"), 1, 1),), store="redis")
    said: list[str] = []
    suite = Suite("test", (benchmark,), (), 1)
    [row] = Harness(suite, 1, False, True, False, {"redis": "no network"}, {}, said.append).measure(benchmark)
    assert row["failures"] == ["redis is missing: no network"]


# --- report ----------------------------------------------------------------------------------------------------


def row(benchmark: str, system: str, value: float | None, **more: Any) -> dict[str, Any]:
    spread = {"min": value, "max": value, "repeats": 1, "machine": "a machine"}
    return {
        "benchmark": benchmark,
        "system": system,
        "store": "redis",
        "value": value,
        "unit": "runs/s",
        "higher_is_better": True,
        **spread,
        **more,
    }


def judged(goal: Goal, *rows: dict[str, Any]) -> str:
    return report.goals(list(rows), Suite("test", (), (goal,), 1)).splitlines()[-1]


def test_a_goal_is_a_ratio_of_two_rows() -> None:
    goal = Goal("twice", "jobs", ("jobs", "slow"), 2)
    assert judged(goal, row("jobs", "holdfast", 20), row("jobs", "slow", 10)) == "| twice | 2.00 × | yes |"
    assert judged(goal, row("jobs", "holdfast", 19), row("jobs", "slow", 10)) == "| twice | 1.90 × | **no** |"
    assert judged(goal, row("jobs", "holdfast", 19)) == "| twice | not measured | not judged |"


def test_a_goal_against_any_peer_names_the_best() -> None:
    goal = Goal("ahead", "jobs", ("jobs", ANY_PEER), 1)
    rows = row("jobs", "holdfast", 10), row("jobs", "slow", 2), row("jobs", "quick", 20), row("jobs", "none", None)
    assert judged(goal, *rows) == "| ahead | 0.50 × quick | **no** |"


def test_two_workers_may_find_the_server_or_the_machine_at_its_limit() -> None:
    goal = Goal("more", "jobs_2", ("jobs", "holdfast"), 1.6, or_saturated=True)
    busy = row("jobs_2", "holdfast", 12, server_cpu=0.97, worker_cpu=0.4)
    assert "the server is the bound (0.97 + 0.40 processors)" in judged(goal, row("jobs", "holdfast", 10), busy)
    processors = os.cpu_count() or 1
    full = row("jobs_2", "holdfast", 12, server_cpu=0.5, worker_cpu=processors - 0.55)
    assert "the machine is the bound" in judged(goal, row("jobs", "holdfast", 10), full)
    idle = row("jobs_2", "holdfast", 12, server_cpu=0.3, worker_cpu=0.3)
    assert "**no**" in judged(goal, row("jobs", "holdfast", 10), idle)


def test_the_table_shows_ratios_and_processors() -> None:
    rows = [row("jobs", "holdfast", 1000, server_cpu=0.5, worker_cpu=1.0), row("jobs", "slow", 100)]
    table = report.table(rows, Suite("test", (), (), 1))
    assert "10 × as fast" in table
    assert "0.50 + 1.00 (500 + 1,000 µs)" in table


def test_figures_go_between_their_suite_s_marks_in_the_readme(tmp_path: Path) -> None:
    suite = Suite("test", (), (Goal("twice", "jobs", 2.0, 1),), 1)
    begin, end = report.marks(suite)
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{begin}\nlast week\n{end}\nafter\n")
    report.rewrite_readme([row("jobs", "holdfast", 3)], suite, readme)
    text = readme.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "last week" not in text
    assert "a machine" in text
    assert "| twice | 3.00 | yes |" in text


def test_the_readme_has_the_marks_of_every_suite() -> None:
    text = report.README.read_text()
    for suite in SUITES:
        for mark in report.marks(suite):
            assert text.count(mark) == 1


def test_a_round_that_would_take_too_long_does_not_begin() -> None:
    assert Harness._would_exceed(Benchmark("jobs", "runs/s", (), seconds=10), 6, 1)
    assert not Harness._would_exceed(Benchmark("jobs", "runs/s", (), seconds=10), 60, 0)
