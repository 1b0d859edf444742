"""The benchmarks' own machinery: what they claim to measure exists, and figures are judged as they
are told."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from benchmarks import __main__ as program
from benchmarks import embedded, harness, judge, peers, report, servers, settings, summary
from benchmarks.bounds import Bounds, Processors, Thread, waits_for_work
from benchmarks.catalogue import (
    HOLDFAST,
    LOGGING,
    OWN,
    TUNED,
    Benchmark,
    Extra,
    Goal,
    Subject,
    Suite,
    System,
)
from benchmarks.harness import Failed, Harness, ask_process, parse
from benchmarks.judge import ExitCode

from holdfast import WorkerOptions
from holdfast.settings import load

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
    for goal in suite.goals:
        assert goal.rows <= rows_of(suite)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_system_has_a_file_and_an_environment(suite: Suite) -> None:
    folder = Path(peers.__file__).with_name("systems")
    for system in {
        subject.system for benchmark in suite.benchmarks for subject in benchmark.subjects
    }:
        assert system.environment in {peers.OURS, peers.NODE, *peers.PACKAGES}
        assert (folder / system.module).exists() or (folder / f"{system.module}.py").exists()


def test_a_benchmark_has_one_name() -> None:
    for suite in SUITES:
        names = [benchmark.name for benchmark in suite.benchmarks]
        assert len(names) == len(set(names))


def test_every_package_of_the_peers_is_pinned() -> None:
    versions = peers.versions()
    for package in ("dramatiq", "pgqueuer", "bullmq", "aioredlock", "arq"):
        assert f"{package} " in versions


def test_no_address_of_an_index_is_committed() -> None:
    for file in peers.PINS.rglob("*"):
        if file.is_file():
            assert not {"resolved", "--index-url"} & set(
                file.read_text().replace('"', " ").split()
            ), file


# --- settings -------------------------------------------------------------------------------------


def subjects_of(suite: Suite, *names: str) -> list[Subject]:
    return [
        subject
        for benchmark in suite.benchmarks
        for subject in benchmark.subjects
        if subject.system.name in names
    ]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_goals_are_judged_by_default_settings(suite: Suite) -> None:
    for subject in subjects_of(suite, HOLDFAST):
        for way in subject.ways:
            options = subject.options_of(way)
            assert options["uvloop"] is False  # of a program that is not `holdfast worker`
            assert "concurrency" not in options


def test_the_defaults_are_those_that_a_worker_starts_with() -> None:
    assert settings.AT_ONCE == WorkerOptions().concurrency == load().settings.concurrency


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_row_of_holdfast_says_its_event_loop(suite: Suite) -> None:
    for benchmark in suite.benchmarks:
        is_of_worker = benchmark.options.get("kind") in ("drain", "pickup", "start")
        for subject in benchmark.subjects:
            for way in subject.ways if subject.system.name in OWN else ():
                has_uvloop = is_of_worker or subject.options_of(way)["uvloop"]
                assert ("uvloop" if has_uvloop else "asyncio") in way.split(", ")


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_a_tuned_row_says_how_many_runs_at_once(suite: Suite) -> None:
    for subject in subjects_of(suite, TUNED):
        for way in subject.ways:
            at_once = subject.options_of(way).get("concurrency")
            assert at_once is None or way.startswith(f"{at_once} at once, ")


def test_direct_calls_are_among_the_ways_of_dbos_for_five_steps() -> None:
    benchmarks = {benchmark.name: benchmark for benchmark in servers.SUITE.benchmarks}
    five = benchmarks["five_step_postgres"]
    [dbos] = [subject for subject in five.subjects if subject.system is servers.DBOS]
    direct = [way for way in dbos.ways if dbos.options_of(way).get("verb") == "five_runs"]
    assert direct == ["direct calls, threads", "direct calls, async"]


# --- choosing -------------------------------------------------------------------------------------


def chosen(*arguments: str) -> set[tuple[str, str]]:
    options = program.parser().parse_args([*arguments])
    suite = servers.SUITE if options.servers else embedded.SUITE
    return {
        (subject.row or benchmark.name, subject.system.name)
        for benchmark in program.choose(suite, options)
        for subject in benchmark.subjects
    }


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_quick_measures_what_goals_compare_and_nothing_else(suite: Suite) -> None:
    option = ["--servers"] if suite.driver else []
    assert chosen("--quick", *option) == {row for goal in suite.goals for row in goal.rows}


def test_names_choose_benchmarks_and_systems() -> None:
    rows = chosen("--servers", "--quick", "--only", "noop_redis", "--system", "holdfast")
    assert rows == {("noop_redis", name) for name in OWN}


def test_a_name_that_nothing_has_is_a_wrong_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(["--only", "nonsense"])
    assert ended.value.code == 2
    assert "the benchmarks are noop_runs, " in capsys.readouterr().err


# --- processes ------------------------------------------------------------------------------------


def test_the_last_line_of_a_process_is_its_answer() -> None:
    output = ask_process([sys.executable, "-c", "print('noise'); print('{\"value\": 3}')"])
    assert parse(output, ["value"])["value"] == 3


def test_a_process_that_fails_says_why() -> None:
    with pytest.raises(Failed, match=r"exit status 1: ValueError: no such queue"):
        ask_process([sys.executable, "-c", "raise ValueError('no such queue')"])


def test_a_process_that_hangs_ends_with_all_that_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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


# --- rows -----------------------------------------------------------------------------------------


def measured(
    ways: tuple[str, ...], answers: dict[str, list[dict[str, Any]]], **more: Any
) -> list[dict[str, Any]]:
    benchmark = Benchmark("jobs", "runs/s", (Subject(FAST, 1, 1, ways),), **more)
    lines: list[str] = []
    machinery = Harness(Suite("test", (benchmark,), (), 1), 0, False, True, {}, {}, lines.append)
    machinery.answers = {("jobs", "holdfast", way): values for way, values in answers.items()}
    machinery.failures = {
        ("jobs", "holdfast", way): ["it broke"] for way in ways if way not in answers
    }
    return machinery.measure(benchmark)


def test_the_best_way_counts_with_its_median_and_spread() -> None:
    answers = {
        "list": [{"value": 1}, {"value": 9}, {"value": 2}],
        "stream": [{"value": 3}, {"value": 4}, {"value": 5}],
    }
    [row] = measured(("list", "stream"), answers)
    assert (row["value"], row["min"], row["max"], row["way"], row["repeats"]) == (
        4,
        3,
        5,
        "stream",
        3,
    )


def test_what_counts_does_not_hide_the_other_ways() -> None:
    [row] = measured(
        ("list", "stream"),
        {"list": [{"value": 1}, {"value": 2}], "stream": [{"value": 3}, {"value": 4}]},
    )
    assert row["ways"] == {"list": 1.5, "stream": 3.5}
    assert row["values"] == [3, 4]
    [only] = measured(("",), {"": [{"value": 1}]})
    assert "ways" not in only


def test_further_figures_of_an_answer_are_rows_of_their_own() -> None:
    answers = {"": [{"value": 2, "p99": 7, "server_cpu": 0.5, "worker_cpu": 1.0}]}
    row, tail = measured(
        ("",), answers, higher_is_better=False, extra=(Extra("p99", "jobs_p99", "ms"),)
    )
    assert row["server_cpu"] == 0.5
    assert (tail["benchmark"], tail["value"]) == ("jobs_p99", 7)


def test_what_failed_is_missing_with_its_reason() -> None:
    [row] = measured(("",), {})
    assert row["value"] is None
    assert report.failures([row]) == "jobs, holdfast: missing: it broke"


def test_an_environment_that_is_missing_fails_its_systems_alone() -> None:
    benchmark = Benchmark(
        "jobs", "runs/s", (Subject(System("peer", "peer", "redis"), 1, 1),), store="redis"
    )
    lines: list[str] = []
    suite = Suite("test", (benchmark,), (), 1)
    missing = {"redis": "no network"}
    [row] = Harness(suite, 1, False, True, missing, {}, lines.append).measure(benchmark)
    assert row["failures"] == ["redis is missing: no network"]


# --- bounds ---------------------------------------------------------------------------------------


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


# --- report ---------------------------------------------------------------------------------------


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
    assert (
        judged(goal, row("jobs", "holdfast", 20), row("jobs", "slow", 10))
        == "| twice | 2.00 × | yes |"
    )
    assert (
        judged(goal, row("jobs", "holdfast", 19), row("jobs", "slow", 10))
        == "| twice | 1.90 × | **no** |"
    )
    assert judged(goal, row("jobs", "holdfast", 19)) == "| twice | not measured | not judged |"


def test_a_goal_is_also_told_against_the_other_ways_to_use_a_peer() -> None:
    goal = Goal("ahead", "jobs", ("jobs", "peer"), 4)
    peer = row("jobs", "peer", 5, way="4 threads", ways={"1 thread": 2, "4 threads": 5})
    assert (
        judged(goal, row("jobs", "holdfast", 10), peer)
        == "| ahead | 2.00 × (1 thread: 5.00 ×) | **no** |"
    )


def test_a_goal_that_some_rounds_reach_and_some_do_not_says_so() -> None:
    goal = Goal("ahead", "jobs", ("jobs", "peer"), 1)
    ours = row("jobs", "holdfast", 10, values=[9, 11])
    unsure = judged(goal, ours, row("jobs", "peer", 10, values=[10, 10]))
    assert unsure == "| ahead | 1.00 × (rounds: 0.90 × to 1.10 ×) | yes |"
    # Both were slower in the second round: whoever compares round by round sees that holdfast was
    # always ahead.
    certain = judged(
        goal, row("jobs", "holdfast", 8, values=[11, 5]), row("jobs", "peer", 7, values=[10, 4])
    )
    assert certain == "| ahead | 1.14 × | yes |"
    a_round_lost = judged(goal, ours, row("jobs", "peer", 10, values=[10]))
    assert a_round_lost == "| ahead | 1.00 × | yes |"


def test_a_plain_number_is_judged_round_by_round_too() -> None:
    goal = Goal("quick", "jobs", 20_000, 1)
    line = judged(goal, row("jobs", "holdfast", 19_500, values=[19_000, 19_500, 21_000]))
    assert line == "| quick | 19,500 (rounds: 19,000 to 21,000) | **no** |"


def test_a_goal_says_when_other_programs_used_the_machine() -> None:
    goal = Goal("ahead", "jobs", ("jobs", "peer"), 1)
    peer = row("jobs", "peer", 10, others_occupied=0.55)
    line = judged(goal, row("jobs", "holdfast", 20, others_occupied=0.05), peer)
    assert line == "| ahead | 2.00 × (other programs used 55% of the machine) | yes |"
    line = judged(goal, row("jobs", "holdfast", 20, others_occupied=0.05), row("jobs", "peer", 10))
    assert line == "| ahead | 2.00 × | yes |"


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
    begin, end = report.marks("test")
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{begin}\nlast week\n{end}\nafter\n")
    section = report.section([row("jobs", "holdfast", 3)], suite)
    report.replace_section(readme, "test", section)
    text = readme.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "last week" not in text
    assert "a machine" in text
    assert "| twice | 3.00 | yes |" in text


def test_the_readmes_have_the_marks_of_every_section() -> None:
    sections = [(report.README, suite.name) for suite in SUITES]
    for readme, name in [*sections, (report.PROJECT_README, report.SPEED)]:
        for mark in report.marks(name):
            assert readme.read_text().count(mark) == 1


def test_a_round_that_would_take_too_long_does_not_begin() -> None:
    assert Harness._would_exceed(Benchmark("jobs", "runs/s", (), seconds=10), 6, 1)
    assert not Harness._would_exceed(Benchmark("jobs", "runs/s", (), seconds=10), 60, 0)


# --- exit codes -----------------------------------------------------------------------------------

TWICE = Suite("test", (), (Goal("twice", "jobs", ("jobs", "slow"), 2),), 1)


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([row("jobs", "holdfast", 20), row("jobs", "slow", 10)], ExitCode.OK),
        ([row("jobs", "holdfast", 19), row("jobs", "slow", 10)], ExitCode.GOAL_MISSED),
        ([row("jobs", "holdfast", 20), row("jobs", "slow", None)], ExitCode.ROW_MISSING),
        ([row("jobs", "holdfast", None), row("jobs", "slow", 10)], ExitCode.ROW_MISSING),
        (
            [row("jobs", "holdfast", 19), row("jobs", "slow", 10), row("jobs", "other", None)],
            ExitCode.ROW_MISSING,
        ),
        ([row("jobs", "holdfast", 1)], ExitCode.OK),
        ([row("jobs", TUNED, 99), row("jobs", "holdfast", 19), row("jobs", "slow", 10)], 4),
    ],
    ids=[
        "all met",
        "goal not met",
        "peer missing",
        "holdfast missing",
        "both",
        "the peer was not chosen",
        "only the tuned row would meet it",
    ],
)
def test_the_exit_code_says_what_is_wrong(rows: list[dict[str, Any]], code: int) -> None:
    assert judge.exit_code(rows, TWICE) == code


def test_help_explains_every_exit_code() -> None:
    text = program.parser().format_help()
    for code in ExitCode:
        assert f"\n  {code:d}  " in text


def test_a_run_with_a_missing_row_writes_its_rows_and_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole program, with a peer whose file does not exist."""
    absent = Benchmark("jobs", "runs/s", (Subject(System("peer", "no_such_module"), 1, 1),))
    monkeypatch.setattr(embedded, "SUITE", Suite("test", (absent,), (), 1))
    assert program.main(["--json", str(tmp_path / "rows.json")]) == ExitCode.ROW_MISSING
    assert '"value": null' in (tmp_path / "rows.json").read_text()
    assert "jobs, peer: missing: exit status 1: " in capsys.readouterr().out


# --- the table of the project's README ------------------------------------------------------------


def test_every_line_of_the_speed_table_is_measured() -> None:
    for line in summary.LINES:
        assert (line.benchmark, line.system) in rows_of(servers.SUITE)


def test_the_speed_table_shows_defaults_first_and_labels_what_is_tuned() -> None:
    rows = [
        row("noop_redis", HOLDFAST, 17_390),
        row("noop_redis", LOGGING, 12_345),
        row("noop_redis", TUNED, 31_774, way="256 at once, uvloop"),
        row("noop_redis", "slow", 755.4),
        row("noop_redis", "quick", 11_736),
        row("noop_redis", "none", None),
        row("noop_2_redis", HOLDFAST, 15_000),
    ]
    table = summary.table(rows).splitlines()
    first = "17,400 | 31,800 (256 at once, uvloop) | quick 11,700, slow 755"
    assert table[2] == f"| no-op runs/s on Redis | {first} |"
    assert table[3].startswith("| the same, two worker processes | 15,000 |")
    assert table[4] == "| the same, one worker, log level INFO | 12,300 |  |  |"
    assert table[5] == "| no-op runs/s on PostgreSQL | missing |  |  |"


def test_the_shortest_latency_comes_first_in_the_speed_table() -> None:
    rows = [
        row("pickup_p99_redis", name, value, higher_is_better=False)
        for name, value in ((HOLDFAST, 4.987), ("slow", 94.9), ("quick", 2.07))
    ]
    [line] = [line for line in summary.table(rows).splitlines() if "4.99 ms" in line]
    assert line == "| the same, p99 | 4.99 ms |  | quick 2.07 ms, slow 94.9 ms |"


def test_the_speed_table_says_when_its_figures_are_not_to_be_quoted() -> None:
    busy = "2026-11-18, 2 × CPU, 25 GB, QUICK: small sizes, not to be quoted, BUSY: 40 %"
    text = summary.section([row("noop_redis", HOLDFAST, 1, machine=busy)])
    assert "2 × CPU; QUICK: small sizes; BUSY: 40 %:" in " ".join(text.split())
