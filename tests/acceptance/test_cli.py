"""The command line, as its users meet it: real processes, a real store, exit codes that scripts
rely on."""

import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from tests.acceptance.conftest import HOLDFAST

ECHO = """
from holdfast import Pipeline

echo = Pipeline("echo")


@echo.step
async def reply(input):
    return input
"""
ID = re.compile(r"[0-9a-z]{26}")


# --- run ------------------------------------------------------------------------------------------


def test_run_prints_the_result_on_stdout_and_progress_on_stderr(cli):
    result = cli("run", "greet", "--input", "name=Ada")
    assert result.json == {"greeting": "Hello Ada!"}
    assert "hello completed in" in result.err
    assert "succeeded" in result.err


def test_run_with_json_tells_the_run_and_its_result(cli):
    answer = cli("run", "greet", "-i", "name=Ada", "-i", "shouts:=3", "--json").json
    assert ID.fullmatch(answer["run"])
    assert answer | {"run": ""} == {
        "run": "",
        "created": True,
        "state": "succeeded",
        "result": {"greeting": "Hello Ada!!!"},
    }


def test_input_comes_from_a_file_or_from_standard_input(cli):
    (cli.folder / "in.json").write_text('{"name": "Ada", "shouts": 1}')
    assert cli("run", "greet", "--input-file", "in.json", "-i", "name=Bob").json == {
        "greeting": "Hello Bob"
    }
    assert cli("run", "greet", "--input-file", "-", stdin='{"name": "Eve"}').json == {
        "greeting": "Hello Eve!"
    }


@pytest.mark.parametrize(
    ("word", "result"), [(":=[1, 2]", [1, 2]), (":=5", 5), ("=Ada", "Ada"), ("a:=1", {"a": 1})]
)
def test_an_input_need_not_be_an_object(cli, word, result):
    (cli.folder / "echo.py").write_text(ECHO)
    assert cli.here("run", "echo", "--app", "echo.py", "--input", word).json == result


@pytest.mark.parametrize("wait", ["--wait", "--no-wait"])
def test_a_pipeline_without_steps_is_refused(cli, wait):
    (cli.folder / "empty.py").write_text(
        "from holdfast import Pipeline\nempty = Pipeline('empty')\n"
    )
    refused = cli.here("run", "empty", "--app", "empty.py", wait, code=2)
    assert "has no steps: declare one with @empty.step" in refused.err
    assert cli.here("runs", "list", "--json").json["items"] == []


def test_what_is_only_submitted_is_executed_by_a_worker(cli):
    submitted = cli("run", "greet", "-i", "name=Ada", "--no-wait")
    run = submitted.out.strip()
    assert ID.fullmatch(run)
    assert cli.state(run) == "queued"
    cli("worker", "--once")
    assert cli("runs", "result", run).json == {"greeting": "Hello Ada!"}


def test_the_same_key_gives_the_same_run_and_other_input_is_a_conflict(cli):
    first = cli.here("run", "greet", "-i", "name=Ada", "--idempotency-key", "k", "--json").json
    again = cli.here("run", "greet", "-i", "name=Ada", "--idempotency-key", "k", "--json").json
    assert (again["run"], again["created"]) == (first["run"], False)
    rejected = cli.here(
        "run",
        "greet",
        "-i",
        "name=Ada",
        "--idempotency-key",
        "k",
        "--on-conflict",
        "reject",
        code=6,
    )
    assert first["run"] in rejected.err
    other = cli.here("run", "greet", "-i", "name=Bob", "--idempotency-key", "k", code=6)
    assert first["run"] in other.err
    assert "use a new key" in other.err


def test_a_failed_run_exits_with_5_and_goes_on_from_its_checkpoints_when_redriven(cli):
    failed = cli("run", "greet", "-i", "name=Ada", "-i", "trouble=fail", code=5)
    assert failed.out == ""
    assert "nobody is at home" in failed.err.splitlines()[-1]
    assert ", in deliver\n" in failed.err, "the log has the traceback"
    run = ID.search(failed.err)[0]
    assert f"holdfast runs resume {run}" in failed.err.splitlines()[-1]

    (cli.folder / "repaired").touch()
    assert cli("dlq", "redrive", run).out == f"run:{run} redriven\n"
    cli("worker", "--once")
    page = cli("runs", "show", run).out
    assert "1 step executed, 2 reused" in page
    assert cli("runs", "result", run).json == {"greeting": "Hello Ada!"}


def test_a_run_that_pauses_exits_with_3_and_says_how_to_go_on(cli):
    paused = cli.here("run", "greet", "-i", "name=Ada", "-i", "trouble=pause", code=3)
    assert "over budget" in paused.err
    assert "holdfast runs resume" in paused.err


def test_waiting_that_times_out_exits_with_3_and_hands_the_run_over(cli):
    words = ("run", "greet", "-i", "name=Ada", "-i", "trouble=wait", "--timeout", "1s")
    late = cli(*words, code=3, HOLDFAST_GRACE="0s")
    assert "handed over" in late.err
    assert cli.state(ID.search(late.err)[0]) == "queued"


def test_ctrl_c_hands_the_run_over_and_the_same_command_goes_on(cli):
    words = ("run", "greet", "-i", "name=Ada", "-i", "trouble=wait", "--idempotency-key", "k")
    running = cli.start(*words, HOLDFAST_GRACE="0s")
    running.until("deliver is waiting")
    running.tell(signal.SIGINT)
    stopped = running.end()
    assert stopped.code == 130
    assert stopped.out == ""
    assert "handed over" in stopped.err
    (cli.folder / "repaired").touch()
    again = cli(*words, "--json").json
    assert again["run"] in stopped.err
    assert again["created"] is False
    assert "1 step executed, 2 reused" in cli("runs", "show", again["run"]).out


# --- worker ---------------------------------------------------------------------------------------


def test_a_worker_told_to_stop_hands_its_runs_over_and_exits_with_0(cli):
    run = cli.submit("greet", "-i", "name=Ada", "-i", "trouble=wait")
    worker = cli.start("worker", "--drain-timeout", "0")
    worker.until("deliver is waiting")
    worker.tell(signal.SIGTERM)
    assert worker.end().code == 0
    view = cli("runs", "show", run, "--json").json
    assert (view["run"]["state"], view["run"]["attempts"]) == ("queued", 0)
    assert view["history"][-1]["type"] == "run.handed_over"


def test_a_second_signal_stops_a_worker_at_once(cli):
    cli.submit("greet", "-i", "name=Ada", "-i", "trouble=wait")
    worker = cli.start("worker", "--drain-timeout", "1h")
    worker.until("deliver is waiting")
    worker.tell(signal.SIGTERM)
    worker.until("draining 1 run")
    worker.tell(signal.SIGTERM)
    assert worker.end().code == 143


def test_a_worker_serves_only_the_lanes_it_is_told_to(cli):
    run = cli.submit("greet", "-i", "name=Ada")
    worker = cli.here("worker", "--lane", "line", "--once")
    assert "serves line" in worker.err
    assert cli.state(run) == "queued"


def test_workers_are_listed_until_they_stop(cli):
    run = cli.submit("greet", "-i", "name=Ada", "-i", "trouble=wait")
    worker = cli.start("worker", "--concurrency", "3", "--drain-timeout", "0")
    worker.until("deliver is waiting")
    [listed] = cli("workers", "list", "--json").json["items"]
    assert (listed["state"], listed["concurrency"]) == ("alive", 3)
    assert "greet" in listed["pipelines"]
    assert listed["name"] == cli("runs", "show", run, "--json").json["run"]["worker"]
    assert "alive" in cli("workers", "list").out
    worker.tell(signal.SIGTERM)
    assert worker.end().code == 0
    assert cli("workers", "list").out == "no workers; `holdfast worker` starts one\n"


def test_a_lane_is_known_by_its_order_before_its_first_worker(cli):
    cli.submit("line")
    [lane] = cli.here("lanes", "list", "--json").json["items"]
    assert (lane["name"], lane["order"], lane["head"], lane["queued"]) == (
        "line",
        "fifo",
        "block",
        1,
    )


def test_a_run_can_be_cancelled_while_the_code_declares_its_lane_differently(cli):
    run = cli.submit("line")
    code = (cli.folder / "pipelines.py").read_text()
    (cli.folder / "pipelines.py").write_text(code.replace('"fifo", "block"', '"parallel"'))
    assert "never changes its order" in cli.here("run", "line", "--no-wait", code=2).err
    assert cli.here("runs", "cancel", run).out == f"{run} cancelled\n"


def test_the_leader_of_a_lane_holds_a_lock_that_can_be_taken_away(cli):
    run = cli.submit("line")
    assert cli.submit("line") == run, "one live run for each tenant"
    worker = cli.start("worker", "--lane", "line", "--drain-timeout", "0")
    worker.until("queue is waiting")
    [lane] = [
        lane for lane in cli("lanes", "list", "--json").json["items"] if lane["name"] == "line"
    ]
    assert (lane["order"], lane["running"], lane["term"]) == ("fifo", 1, 1)
    lock, slot = cli("locks", "list", "--json").json["items"]
    assert (lock["kind"], lock["name"], lock["holder"]) == ("leader", "lane:line", lane["leader"])
    assert (slot["kind"], slot["name"], slot["held_for"]) == ("run", "unique:default:line", run)
    refused = cli("locks", "release", "unique:default:line", "--yes", code=6)
    assert f"holdfast runs cancel {run}" in refused.err

    assert "add --yes" in cli("locks", "release", "lane:line", code=2).err
    assert (
        cli("locks", "release", "lane:line", "--yes", "--reason", "test").out
        == "lane:line released\n"
    )
    view = cli("lanes", "show", "line", "--json").json
    [first] = [leader for leader in view["leaders"] if leader["term"] == 1]
    assert (first["worker"], first["until"] is None) == (lane["leader"], False)
    assert first["ended"].startswith("released by ")
    assert first["ended"].endswith(": test")
    worker.tell(signal.SIGTERM)
    assert worker.end().code == 0
    page = cli("lanes", "show", "line").out
    assert "line  fifo" in page
    assert lane["leader"] in page
    assert "known: line" in cli("lanes", "show", "nonsense", code=7).err
    assert "is not held" in cli("locks", "release", "lane:line", "--yes", code=7).err
    [entry] = cli.here("audit", "list", "--json").json["items"]
    assert (entry["target"], entry["reason"]) == ("lane:line", "test")


def test_a_leader_can_be_told_to_step_down(cli):
    cli.submit("line")
    assert "has no leader now" in cli.here("lanes", "step-down", "line", "--yes", code=7).err
    assert "no lane 'other'" in cli.here("lanes", "step-down", "other", "--yes", code=7).err
    worker = cli.start("worker", "--lane", "line", "--drain-timeout", "0")
    worker.until("queue is waiting")
    assert "add --yes" in cli("lanes", "step-down", "line", code=2).err
    result = cli("lanes", "step-down", "line", "--yes", "--reason", "host is old", "--json").json
    worker.until("leadership gained, term 3")
    [lane] = [
        lane for lane in cli("lanes", "list", "--json").json["items"] if lane["name"] == "line"
    ]
    assert lane["leader"] == result["stepped_down"]
    worker.tell(signal.SIGTERM)
    assert worker.end().code == 0
    assert "host is old" in cli.here("audit", "list").out


# --- looking --------------------------------------------------------------------------------------


def test_runs_are_listed_newest_first_with_whole_ids(stage):
    listed = stage.here("runs", "list").out
    for run in (stage.succeeded, stage.failed, stage.paused, stage.queued, stage.cancelled):
        assert run in listed
    assert listed.index(stage.cancelled) < listed.index(stage.succeeded)


def test_lists_are_items_and_a_cursor_and_pages_meet_without_gaps(stage):
    first = stage.here("runs", "list", "--json", "--limit", "2").json
    assert set(first) == {"items", "next_cursor"}
    second = stage.here(
        "runs", "list", "--json", "--limit", "2", "--cursor", first["next_cursor"]
    ).json
    third = stage.here(
        "runs", "list", "--json", "--limit", "2", "--cursor", second["next_cursor"]
    ).json
    ids = [run["id"] for page in (first, second, third) for run in page["items"]]
    assert ids == [stage.cancelled, stage.queued, stage.paused, stage.failed, stage.succeeded]
    assert third["next_cursor"] is None


def test_lists_can_be_filtered_and_streamed_as_lines(stage):
    lines = stage.here(
        "runs", "list", "-o", "jsonl", "--tenant", "acme", "--state", "paused"
    ).out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [stage.paused]
    assert stage.here("runs", "list", "--state", "running", "--json").json == {
        "items": [],
        "next_cursor": None,
    }


def test_a_run_is_shown_as_a_page_with_a_timeline(stage):
    page = stage.here("runs", "show", stage.failed).out
    assert "✘ deliver" in page
    assert "█" in page
    assert "2 steps executed, 0 reused, 1 not finished · 15 tokens · $0.2500" in page
    assert f"holdfast dlq redrive run:{stage.failed}" in page


def test_a_failed_run_is_shown_with_the_traceback_of_its_step(stage):
    page = stage.here("runs", "show", stage.failed).out
    error, *traceback = page[page.index("failed: deliver: ") :].splitlines()
    assert error == "failed: deliver: Permanent: nobody is at home"
    assert traceback[0] == "  Traceback (most recent call last):"
    assert '    raise Permanent("nobody is at home")' in page
    assert "holdfast/engine" not in page
    view = stage.here("runs", "show", stage.failed, "--json").json
    assert ", in deliver\n" in view["run"]["error"]["traceback"]
    [listed] = stage.here("runs", "list", "--state", "failed", "--json").json["items"]
    assert listed["error"] == {
        "name": "Permanent",
        "message": "nobody is at home",
        "step": "deliver",
    }


def test_a_run_is_shown_as_json_for_programs(stage):
    view = stage.here("runs", "show", stage.succeeded, "--json").json
    assert set(view) == {
        "run",
        "input",
        "attributes",
        "steps",
        "totals",
        "validation_failures",
        "dead_letter",
        "history",
    }
    assert view["input"] == {"name": "Ada", "trouble": None, "shouts": 2}
    assert [(step["name"], step["status"], step["items"]) for step in view["steps"]] == [
        ("hello", "completed", 0),
        ("louder", "completed", 2),
        ("deliver", "completed", 0),
    ]


def test_a_run_is_found_by_the_start_of_its_id(stage):
    assert (
        stage.here("runs", "show", stage.succeeded[:-2], "--json").json["run"]["id"]
        == stage.succeeded
    )
    assert "several runs begin with" in stage.here("runs", "show", stage.succeeded[:2], code=7).err


def test_the_state_document_is_what_the_report_service_wrote(stage):
    state = stage.here("runs", "show", stage.failed, "--format", "state").json
    assert (state["reportId"], state["status"], state["currentStep"]) == (
        stage.failed,
        "failed",
        "deliver",
    )
    assert state["completedResults"]["hello"] == {
        "data": "Hello Bob",
        "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
        "cost": 0.25,
    }


def test_history_and_logs_of_a_run_are_printed(stage):
    events = stage.here("runs", "events", stage.succeeded, "--json").json["items"]
    assert [event["seq"] for event in events] == list(range(1, 7))
    assert events[-1]["type"] == "run.completed"
    assert "step.completed" in stage.here("runs", "events", stage.succeeded, "--follow").out
    [line] = stage.here("runs", "logs", stage.succeeded, "--json").json["items"]
    assert (line["step"], line["message"], line["fields"]) == (
        "hello",
        "saying hello",
        {"name": "Ada"},
    )
    assert "hello: saying hello name=Ada" in stage.here("runs", "logs", stage.succeeded).out


def test_watching_ends_with_the_run(stage):
    assert "3 steps executed" in stage.here("runs", "watch", stage.succeeded).out
    assert (
        stage.here("runs", "watch", stage.failed, "--json", code=5).json["run"]["state"] == "failed"
    )
    stage.here("runs", "watch", stage.cancelled, code=5)
    stage.here("runs", "watch", stage.failed, "--expect", "failed")
    stage.here("runs", "watch", stage.failed, "--expect", "succeeded", code=8)
    assert (
        "still going" in stage.here("runs", "watch", stage.queued, "--timeout", "0.1s", code=3).err
    )


def test_results_exist_only_for_runs_that_succeeded(stage):
    assert stage.here("runs", "result", stage.succeeded).json == {"greeting": "Hello Ada!"}
    assert "nobody is at home" in stage.here("runs", "result", stage.failed, code=5).err
    assert "runs watch" in stage.here("runs", "result", stage.queued, code=3).err


def test_a_dead_letter_is_shown_with_its_original_bytes(stage):
    [letter] = stage.here("dlq", "list", "--json").json["items"]
    assert (letter["id"], letter["reason"]) == (
        f"run:{stage.failed}",
        "Permanent: nobody is at home",
    )
    view = stage.here("dlq", "show", stage.failed[:-2], "--json").json
    assert view["dead_letter"]["id"] == letter["id"]
    assert view["body"]["name"] == "Bob"
    assert ", in deliver\n" in view["error"]["traceback"]
    page = stage.here("dlq", "show", letter["id"]).out
    assert "Permanent: nobody is at home" in page
    assert ", in deliver\n" in page


def test_a_dry_run_of_redriving_changes_nothing(stage):
    planned = stage.here(
        "dlq", "redrive", "--all", "--pipeline", "greet", "--dry-run", "--json"
    ).json["items"]
    assert [entry["run"] for entry in planned] == [stage.failed]
    assert (
        stage.here("dlq", "redrive", "--all", "--pipeline", "other", "--yes", "--json").json[
            "items"
        ]
        == []
    )
    assert "add --yes" in stage.here("dlq", "redrive", "--all", code=2).err
    assert stage.state(stage.failed) == "failed"


# --- changing -------------------------------------------------------------------------------------


def test_runs_are_paused_resumed_cancelled_and_that_is_final(cli):
    run = cli.submit("greet", "-i", "name=Ada", "--delay", "1h")
    assert cli.here("runs", "pause", run, "--reason", "later").out == f"{run} paused\n"
    assert cli.here("runs", "resume", run, "--json").json == {"run": run, "state": "queued"}
    assert cli.here("runs", "cancel", run).out == f"{run} cancelled\n"
    refused = cli.here("runs", "resume", run, code=6)
    assert f"run {run} is cancelled and can't be resumed" in refused.err


def test_changing_several_runs_needs_a_confirmation(cli):
    runs = [cli.submit("greet", "-i", f"name={name}", "--delay", "1h") for name in ("Ada", "Bob")]
    assert "Cancel 2 runs?" in cli.here("runs", "cancel", *runs, code=2).err
    assert cli.state(runs[0]) == "queued"
    items = cli.here("runs", "cancel", *runs, "--yes", "--json").json["items"]
    assert [entry["state"] for entry in items] == ["cancelled", "cancelled"]


def test_a_rerun_takes_over_what_does_not_depend_on_the_step(cli):
    first = cli.here("run", "greet", "-i", "name=Ada", "--json").json["run"]
    again = cli.here("runs", "rerun", first, "--from-step", "deliver").out.strip()
    cli.here("worker", "--once")
    page = cli.here("runs", "show", again).out
    assert "1 step executed, 2 reused" in page
    assert f"rerun of {first}" in page
    assert (
        "no step 'nonsense'"
        in cli.here("runs", "rerun", first, "--from-step", "nonsense", code=7).err
    )


def test_a_dead_letter_is_discarded_once(cli):
    run = cli.here("run", "greet", "-i", "name=Ada", "-i", "trouble=fail", "--json", code=5).json[
        "run"
    ]
    assert cli.here("dlq", "discard", run, "--reason", "test").out == f"run:{run} discarded\n"
    assert "was closed before" in cli.here("dlq", "redrive", run).out
    assert cli.here("dlq", "list", "--json").json["items"] == []
    assert cli.here("dlq", "list", "--all", "--json").json["items"][0]["resolution"] == "discarded"


def test_taking_a_lock_away_by_hand_asks_for_its_name(cli):
    cli.submit("line")
    _hold_lock(cli.folder / "runs.db", "lane:line")
    assert _in_terminal(cli, "locks", "release", "lane:line", typed="nonsense\n") == 3
    assert _in_terminal(cli, "locks", "release", "lane:line", typed="lane:line\n") == 0
    assert [lock["kind"] for lock in cli("locks", "list", "--json").json["items"]] == ["run"]


def _hold_lock(path, name):
    """As if a worker on this host had taken it just now."""
    with sqlite3.connect(path) as db:
        db.execute(
            "INSERT INTO locks (name, epoch, owner, token, acquired, lease_until, lease_ttl) "
            "VALUES (?,?,?,?,?,?,?)",
            (name, 1, "worker", "token", time.time(), time.monotonic() + 60, 60.0),
        )


def _in_terminal(cli, *words, typed):
    """The exit code of a command whose user sits at a terminal and types."""
    ours, other_end = pty.openpty()
    process = subprocess.Popen(
        [*HOLDFAST, *words],
        cwd=cli.folder,
        env=cli.env,
        stdin=other_end,
        stdout=subprocess.DEVNULL,
        stderr=other_end,
    )
    os.close(other_end)
    os.write(ours, typed.encode())
    code = process.wait(60)
    os.close(ours)
    return code


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "gret", "-i", "name=Ada"], 7, "did you mean 'greet'?"),
        (["run", "greet"], 2, "name: Field required"),
        (
            ["run", "greet", "-i", "name=Ada", "-i", "shouts=many"],
            2,
            "shouts: Input should be a valid integer",
        ),
        (["run", "greet", "-i", "name"], 2, "write name=text or name:=json"),
        (["run", "greet", "-i", "name:={"], 2, "is not valid JSON"),
        (["run", "greet", "-i", "name=A", "-i", "name.first=B"], 2, "where an object is needed"),
        (["run", "greet", "--input-file", "missing.json"], 2, "No such file"),
        (
            ["run", "greet", "-i", "name=Ada", "--tenant", "No Good"],
            2,
            "tenant 'No Good' is not usable",
        ),
        (["run", "greet", "--timeout", "soon"], 2, "is not a duration"),
        (["run"], 2, "Missing argument"),
        (["rnu"], 2, "No such command 'rnu'"),
        (["runs", "show", "zzz"], 7, "holdfast runs list"),
        (["runs", "list", "--state", "dead"], 2, "is not one of"),
        (["runs", "list", "--cursor", "x"], 2, "next_cursor"),
        (["dlq", "show", "zzz"], 7, "holdfast dlq list"),
        (["dlq", "redrive"], 2, "or --all"),
        (["worker", "--lane", "nonsense"], 2, "known lanes: default, line"),
        (["worker", "--concurrency", "0"], 2, "0 is not in the range"),
        (["--store", "postgers://x:geheim@h/d", "runs", "list"], 2, "known are memory:, sqlite:"),
        (["--store", "sqlite:///other.db", "runs", "list"], 7, "there is no store at other.db"),
        (
            ["--store", "sqlite:///no/such/folder/x.db", "run", "greet", "-i", "name=A"],
            2,
            "does its folder exist",
        ),
        (["--store", "sqlite:///noise.db", "runs", "list"], 2, "is not a usable SQLite database"),
        (["--store", "sqlite:///foreign.db", "runs", "list"], 2, "another program"),
        (["--app", "missing.py:x", "pipelines", "list"], 2, "there is no file"),
        (
            ["--app", "missing_module:x", "pipelines", "list"],
            2,
            "there is no module 'missing_module'",
        ),
        (["--app", "pipelines.py:gret", "pipelines", "list"], 2, "did you mean 'greet'?"),
        (["--app", "pipelines.py:shout", "pipelines", "list"], 2, "it must be a Pipeline"),
        (["--app", "broken.py", "pipelines", "list"], 2, "broken.py:4: step 'second'"),
        (["--app", "raising.py", "pipelines", "list"], 2, "raising.py:1: ZeroDivisionError"),
        (["--app", "syntax.py", "pipelines", "list"], 2, "syntax.py:1:"),
        (["--profile", "nonsense", "runs", "list"], 2, "profile 'nonsense' is not defined"),
        (["pipelines", "schema", "nonsense"], 7, "known: greet, line"),
    ],
)
def test_a_mistake_is_explained_in_one_last_line_and_ends_with_its_code(
    stage, words, code, message
):
    _put_broken_files(stage.folder)
    answer = stage.here(*words, code=code)
    assert message in answer.err.splitlines()[-1]
    assert "Traceback" not in answer.err
    assert "geheim" not in answer.err
    assert answer.out == ""


def _put_broken_files(folder):
    (folder / "noise.db").write_bytes(
        b"this is no database, but long enough to look like one" * 100
    )
    if not (folder / "foreign.db").exists():
        with sqlite3.connect(folder / "foreign.db") as db:
            db.execute("CREATE TABLE t (x)")
    (folder / "broken.py").write_text(
        "from holdfast import Pipeline\np = Pipeline('p')\n\n@p.step\nasync def second(first: str) "
        "-> str: ...\n"
    )
    (folder / "raising.py").write_text("1 / 0\n")
    (folder / "syntax.py").write_text("def\n")


def test_an_unknown_setting_stops_every_command(cli):
    assert (
        "did you mean HOLDFAST_STORE?" in cli.here("runs", "list", code=2, HOLDFAST_STOER="x").err
    )
    (cli.folder / "holdfast.toml").write_text("stoer = 1")
    assert "did you mean store?" in cli.here("run", "greet", code=2).err


def test_debug_shows_the_traceback(cli):
    assert "Traceback" in cli("runs", "list", "--debug", code=1).err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_store_is_refused_and_left_as_it_is(cli):
    cli.submit("greet", "-i", "name=Ada")
    (cli.folder / "runs.db").chmod(0o444)
    assert "read-only" in cli.here("runs", "list", code=2).err


# --- pipelines, settings, check, version ----------------------------------------------------------


def test_pipelines_are_listed_with_graph_and_schema(stage):
    listed = stage.here("pipelines", "list", "--json").json["items"]
    assert [(entry["name"], entry["order"]) for entry in listed] == [
        ("greet", "parallel"),
        ("line", "fifo"),
    ]
    assert "hello --> louder" in stage.here("pipelines", "graph", "greet", "--mermaid").out
    assert "input hello" in stage.here("pipelines", "graph", "greet").out
    assert stage.here("pipelines", "schema", "greet").json["required"] == ["name"]


def test_every_setting_is_shown_with_its_origin_and_without_secrets(stage):
    page = stage.here("config", "show", "--origin", HOLDFAST_BUS="redis://u:geheim@h/0")
    assert "environment HOLDFAST_BUS" in page.out
    assert "geheim" not in page.out + page.err
    items = stage.here("config", "show", "--json").json["items"]
    [store] = [item for item in items if item["name"] == "store"]
    assert store["origin"].endswith("holdfast.toml")


def test_check_finds_problems_before_anything_runs(stage):
    assert "✔ pipelines" in stage.here("check").out
    _put_broken_files(stage.folder)
    problems = stage.here("check", "--app", "broken.py", "--store", "foo:", "--json", code=8).json[
        "items"
    ]
    assert [problem["check"] for problem in problems if problem["status"] != "ok"] == [
        "adapters",
        "pipelines",
    ]
    assert stage.here("check", "--profile", "nonsense", code=8).out.startswith("✘ settings")


def test_version_tells_what_is_installed(stage):
    from holdfast import __version__

    assert stage("version").out == stage("--version").out == f"holdfast {__version__}\n"
    assert set(stage("version", "--json").json) == {
        "version",
        "python",
        "platform",
        "dependencies",
        "adapters",
    }


def test_the_shell_completes_commands_pipelines_and_run_ids(stage):
    def offers(words: str) -> list[str]:
        count = str(len(words.split(" ")) - 1)
        output = stage(
            _HOLDFAST_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count, code=None
        )
        return [line.partition(",")[2] for line in output.out.splitlines()]

    assert "_HOLDFAST_COMPLETE" in stage("completion", "bash").out
    assert offers("holdfast ru") == ["run", "runs"]
    assert offers("holdfast run g") == ["greet"]
    assert offers(f"holdfast runs show {stage.succeeded[:-3]}") == [stage.succeeded]


HEAVY = ("pydantic", "sqlite3", "rich", "holdfast.engine", "holdfast.adapters", "holdfast.app")


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (["version"], (*HEAVY, "asyncio")),
        (["--help"], (*HEAVY, "asyncio")),
        (["run", "--help"], HEAVY),
    ],
)
def test_help_and_version_start_without_what_they_do_not_need(words, heavy):
    """What makes them quick is what they do not import; a timed test would tell less."""
    process = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "holdfast", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {line.rpartition("|")[2].strip() for line in process.stderr.splitlines()}
    assert "holdfast.cli.main" in imported
    assert not [name for name in imported if name.startswith(heavy)]


def test_what_was_typed_by_mistake_is_refused(cli):
    error = cli.here("worker", "--once", "--receive", "work=nope", code=2).err
    assert "--receive work=nope: there is no pipeline 'nope'; known pipelines: " in error
    assert "tenant '' is not usable" in cli.here("run", "line", "--tenant", "", code=2).err
    assert "add --yes" in cli.here("locks", "release", "anything", code=2).err
