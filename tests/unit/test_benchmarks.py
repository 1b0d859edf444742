"""The benchmarks' own machinery: what they claim to measure exists, and figures are judged as they are told."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from benchmarks import embedded, harness, judge, peers, report, servers
from benchmarks.bounds import Bounds, Processors, Thread, waits_for_work
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
    with pytest.raises(Failed, match="no answer within 1 s"):
        ask_process(["sh", "-c", f"sleep 60 & echo $! > {shlex.quote(str(pid))}; wait"])
    deadline = time.monotonic() + 10
    while not gone(int(pid.read_text())):  # it was told to, which takes a moment
        assert time.monotonic() < deadline


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


def test_what_counts_does_not_hide_the_other_ways() -> None:
    [row] = measured(("list", "stream"), {"list": [{"value": 1}, {"value": 2}], "stream": [{"value": 3}, {"value": 4}]})
    assert row["ways"] == {"list": 1.5, "stream": 3.5}
    assert row["values"] == [3, 4]
    [only] = measured(("",), {"": [{"value": 1}]})
    assert "ways" not in only


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


# --- bounds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "waits"), [("S", True), ("R", False), ("D", False)])
def test_only_an_interruptible_sleep_waits_for_work(state: str, waits: bool) -> None:
    assert waits_for_work(f"12 (a ) S (name) {state} 1 12 12 0 -1".encode()) is waits


def test_a_thread_is_occupied_as_often_as_it_is_not_seen_waiting() -> None:
    busy = "print('busy', flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        thread = Thread(process.pid)
        for _ in range(5):
            thread.look()
        process.kill()
    assert thread.occupied == 1.0


def test_processors_are_occupied_when_they_are_used_or_stolen() -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    before = Processors.parse("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n")
    fields = " ".join(str(seconds * ticks) for seconds in (30, 5, 10, 15, 5, 2, 3, 30, 99, 99))
    after = Processors.parse(f"cpu  {fields}\ncpu0 {fields}\n")
    shares = (after - before).shares(measured=40)
    assert shares == {"machine_occupied": 0.8, "others_occupied": 0.1}


def test_a_server_that_is_not_ours_to_look_at_is_not_called_occupied() -> None:
    bounds = Bounds(None)
    bounds.look()
    assert "server_occupied" not in bounds.shares(measured=0)


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
    return judge.goals(list(rows), Suite("test", (), (goal,), 1)).splitlines()[-1]


def test_a_goal_is_a_ratio_of_two_rows() -> None:
    goal = Goal("twice", "jobs", ("jobs", "slow"), 2)
    assert judged(goal, row("jobs", "holdfast", 20), row("jobs", "slow", 10)) == "| twice | 2.00 × | yes |"
    assert judged(goal, row("jobs", "holdfast", 19), row("jobs", "slow", 10)) == "| twice | 1.90 × | **no** |"
    assert judged(goal, row("jobs", "holdfast", 19)) == "| twice | not measured | not judged |"


def test_a_goal_against_any_peer_names_the_best() -> None:
    goal = Goal("ahead", "jobs", ("jobs", ANY_PEER), 1)
    rows = row("jobs", "holdfast", 10), row("jobs", "slow", 2), row("jobs", "quick", 20), row("jobs", "none", None)
    assert judged(goal, *rows) == "| ahead | 0.50 × quick | **no** |"


def test_a_goal_is_also_told_against_the_other_ways_to_use_a_peer() -> None:
    goal = Goal("ahead", "jobs", ("jobs", "peer"), 4)
    peer = row("jobs", "peer", 5, way="4 threads", ways={"1 thread": 2, "4 threads": 5})
    assert judged(goal, row("jobs", "holdfast", 10), peer) == "| ahead | 2.00 × (1 thread: 5.00 ×) | **no** |"


def test_a_goal_that_some_rounds_reach_and_some_do_not_says_so() -> None:
    goal = Goal("ahead", "jobs", ("jobs", "peer"), 1)
    ours = row("jobs", "holdfast", 10, values=[9, 11])
    unsure = judged(goal, ours, row("jobs", "peer", 10, values=[10, 10]))
    assert unsure == "| ahead | 1.00 × (rounds: 0.90 × to 1.10 ×) | yes |"
    # Both were slower in the second round: whoever compares round by round sees that holdfast was always ahead.
    certain = judged(goal, row("jobs", "holdfast", 8, values=[11, 5]), row("jobs", "peer", 7, values=[10, 4]))
    assert certain == "| ahead | 1.14 × | yes |"
    a_round_lost = judged(goal, ours, row("jobs", "peer", 10, values=[10]))
    assert a_round_lost == "| ahead | 1.00 × | yes |"


def test_a_plain_number_is_judged_round_by_round_too() -> None:
    goal = Goal("quick", "jobs", 20_000, 1)
    found = judged(goal, row("jobs", "holdfast", 19_500, values=[19_000, 19_500, 21_000]))
    assert found == "| quick | 19,500 (rounds: 19,000 to 21,000) | **no** |"


TWO_WORKERS = Goal("more", "jobs_2", ("jobs", "holdfast"), 1.6, or_saturated=True)


def judged_two(runs: float, server: float, machine: float, others: float) -> str:
    shares = {"server_occupied": server, "machine_occupied": machine, "others_occupied": others}
    return judged(TWO_WORKERS, row("jobs", "holdfast", 10), row("jobs_2", "holdfast", runs, **shares))


def test_two_workers_may_find_the_server_or_the_machine_at_its_limit() -> None:
    told = "1.20 × (occupied: Redis' thread 0.97, processors 0.80, by others 0.02)"
    assert judged_two(12, 0.97, 0.8, 0.02) == f"| more | {told} | yes: the server is the bound |"
    assert judged_two(12, 0.5, 0.95, 0.02).endswith("| yes: the machine is the bound |")
    assert judged_two(17, 0.5, 0.5, 0.02).endswith("| yes |")


@pytest.mark.parametrize(
    ("server", "machine", "others"),
    [(0.89, 0.89, 0.0), (0.97, 0.97, 0.3), (0.3, 0.3, 0.0)],
    ids=["nearly at the limit", "at the limit because of others", "idle"],
)
def test_two_workers_that_had_room_left_do_not_reach_the_goal(server: float, machine: float, others: float) -> None:
    assert judged_two(12, server, machine, others).endswith("| **no** |")


def test_two_workers_are_no_excuse_without_evidence() -> None:
    busy = row("jobs_2", "holdfast", 12, server_cpu=0.99, worker_cpu=1.0)
    assert judged(TWO_WORKERS, row("jobs", "holdfast", 10), busy) == "| more | 1.20 × | **no** |"


def test_that_the_server_was_occupied_with_one_worker_is_no_excuse_for_two() -> None:
    full = {"server_occupied": 0.99, "machine_occupied": 0.99, "others_occupied": 0.0}
    free = {"server_occupied": 0.50, "machine_occupied": 0.70, "others_occupied": 0.0}
    found = judged(TWO_WORKERS, row("jobs", "holdfast", 10, **full), row("jobs_2", "holdfast", 12, **free))
    assert found.endswith("| **no** |")


def test_the_table_shows_ratios_and_processors() -> None:
    rows = [row("jobs", "holdfast", 1000, server_cpu=0.5, worker_cpu=1.0), row("jobs", "slow", 100)]
    table = report.table(rows, Suite("test", (), (), 1))
    assert "10 × as fast" in table
    assert "0.50 + 1.00 (500 + 1,000 µs)" in table
    assert "occupied" not in table


def test_the_table_shows_what_was_occupied() -> None:
    shares = {"server_occupied": 0.971, "machine_occupied": 0.9, "others_occupied": 0.02}
    rows = [row("jobs", "holdfast", 1000, **shares), row("jobs", "slow", 100)]
    assert "| 0.97, 0.90 (0.02) " in report.table(rows, Suite("test", (), (), 1))
    del rows[0]["server_occupied"]
    assert "| –, 0.90 (0.02) " in report.table(rows, Suite("test", (), (), 1))


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
