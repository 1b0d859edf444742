"""`holdfast report` as people use it: real processes, real files, a worker killed in the middle."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy", reason="reports need holdfast[report]")

from holdfast.apps.report.outputs import problems
from holdfast.apps.report.service import load_report
from holdfast.apps.report.testing.brain import ReportBrain
from holdfast.testing.fakellm import FakeLLM

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "examples" / "data" / "riverside.csv"
VOTES = ROOT / "examples" / "data" / "riverside-votes.csv"
SHARED = ROOT.parent / "shared" / "data"
TIMEOUT = 110
OURS = ("comments", "opinions", "report")
"""Steps that the earlier report worker did not have."""
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")
}


def holdfast(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *words],
        cwd=cwd,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def built(file: Path, *words: str, cwd: Path, **environment: str) -> dict[str, Any]:
    ended = holdfast(
        "report", "build", str(file), "-o", "out", "--json", *words, cwd=cwd, **environment
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


# --- reviewed by people ---------------------------------------------------------------------------


def test_topics_wait_for_people_and_the_same_command_goes_on_with_theirs(tmp_path: Path) -> None:
    command = ("report", "build", str(SAMPLE), "-o", "out", "--review")
    first = holdfast(*command, cwd=tmp_path)
    assert first.returncode == 3
    assert "topics are in out/topics.json" in first.stderr
    file = tmp_path / "out" / "topics.json"
    document = json.loads(file.read_text())
    document["topics"][0]["name"] = "Named by people"
    file.write_text(json.dumps(document))
    assert holdfast(*command, cwd=tmp_path).returncode == 0
    report = load_report(tmp_path / "out")
    assert "Named by people" in [topic.name for topic in report.topics]
    assert problems(report) == []


def test_a_file_in_place_of_the_folder_is_an_error_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    ended = holdfast("report", "build", str(SAMPLE), "-o", "out", cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr == "holdfast: out is a file: give a folder for the report with -o FOLDER\n"
    assert (tmp_path / "out").read_text() == "mine"


# --- offline --------------------------------------------------------------------------------------


def test_the_demo_makes_a_report_that_holds_and_finds_it_again(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "demo.py")]
    for text in ("report completed", "has made this report already"):
        ended = subprocess.run(
            command,
            cwd=tmp_path,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert text in ended.stderr
        assert "every quote, citation and figure holds" in ended.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["holdfast-demo"]
    assert sorted(path.name for path in (tmp_path / "holdfast-demo" / "report").iterdir()) == [
        "claims.csv",
        "crux_matrix.csv",
        "cruxes.csv",
        "groups.csv",
        "quotes.csv",
        "report.html",
        "report.json",
        "report.md",
        "rows.csv",
        "topics.csv",
    ]


def test_the_same_file_twice_is_the_same_report_to_the_byte_apart_from_times(
    tmp_path: Path,
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        built(SAMPLE, "--votes", str(VOTES), cwd=tmp_path / name)
    first, second = (files(tmp_path / name / "out") for name in ("one", "two"))
    assert first.keys() == second.keys()
    for name, data in first.items():
        assert data == second[name], name


def files(folder: Path) -> dict[str, list[str]]:
    """The lines of each file, without times: when it was made, and how long that took."""
    provenance = json.loads((folder / "report.json").read_text())["made"]
    return {
        path.name: untimed(path.read_text(encoding="utf-8"), provenance["at"])
        for path in folder.iterdir()
    }


def untimed(text: str, at: str) -> list[str]:
    lines = text.replace(at, "…").replace(at[:10], "…").splitlines()
    return [TAKEN.sub("…", line) for line in lines if '"made"' not in line]


TAKEN = re.compile(r"\d[\d.,]*\s?(?:ms|s|min)\b|\d+ [A-Z][a-z]+ \d{4}, \d\d:\d\d UTC")


@pytest.mark.parametrize("votes", [False, True])
@pytest.mark.parametrize(
    "name", sorted(path.name for path in SHARED.glob("*.csv")) or ["(../shared/data is absent)"]
)
def test_a_real_file_becomes_a_report_that_holds(name: str, votes: bool, tmp_path: Path) -> None:
    if not SHARED.exists():
        pytest.skip("../shared/data is not here: real comment files are not part of the project")
    matrix = next(SHARED.glob(f"votes/{name.removeprefix('polis_').split('_')[0]}*.csv"), None)
    if votes and matrix is None:
        pytest.skip("this file has no matrix of votes")
    output = built(SHARED / name, *(["--votes", str(matrix)] if votes else []), cwd=tmp_path)
    report = load_report(tmp_path / "out")
    assert problems(report) == []
    assert output["comments"] + sum(1 for row in report.left_out) == report.counts.rows
    assert output["claims"] > 0
    with (tmp_path / "out" / "rows.csv").open(encoding="utf-8-sig", newline="") as rows:
        assert sum(1 for _ in csv.DictReader(rows)) == report.counts.rows


def test_rows_come_from_standard_input_and_columns_by_name(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "holdfast",
        "report",
        "build",
        "-",
        "-o",
        "out",
        "--column",
        "comment=Antwort",
    ]
    lines = "\n".join(
        json.dumps({"Antwort": f"Der Park braucht {n} neue Bäume und mehr Licht."})
        for n in range(5)
    )
    ended = subprocess.run(
        command,
        input=lines.encode(),
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    assert load_report(tmp_path / "out").language == "de"


def test_a_file_without_comments_is_refused_before_a_run_is_made(tmp_path: Path) -> None:
    (tmp_path / "ab.csv").write_text("a,b\n1,2\n")
    ended = holdfast("report", "build", "ab.csv", cwd=tmp_path)
    assert ended.returncode == 2
    assert "Columns found: a, b" in ended.stderr
    assert "--column comment=NAME" in ended.stderr
    assert holdfast("runs", "list", "--json", cwd=tmp_path).stdout.count('"id"') == 0


def test_votes_of_another_conversation_are_no_reason_to_repeat_the_command(tmp_path: Path) -> None:
    (tmp_path / "comments.csv").write_text("comment-id,comment-body\n1,More trees.\n2,No cars.\n")
    (tmp_path / "votes.csv").write_text("participant,7,8,9\n0,1,-1,1\n1,1,1,-1\n")
    ended = holdfast("report", "build", "comments.csv", "--votes", "votes.csv", cwd=tmp_path)
    assert ended.returncode == 5
    assert "votes.csv does not fit the comments" in ended.stderr
    assert "the same command" not in ended.stderr


# --- with a model ---------------------------------------------------------------------------------


def test_kill_9_in_the_middle_of_claims_costs_at_most_the_calls_in_flight(tmp_path: Path) -> None:
    asyncio.run(kill_in_the_middle(tmp_path))


async def kill_in_the_middle(folder: Path) -> None:
    in_flight = 4
    async with FakeLLM(ReportBrain(), latency=0.05) as fake:
        address = fake.address(in_flight=in_flight)
        command = [
            sys.executable,
            "-m",
            "holdfast",
            "report",
            "build",
            str(SAMPLE),
            "-o",
            "out",
            "--json",
        ]
        environment = {**ENVIRONMENT, "HOLDFAST_LLM": address, **fake.environment, **SHORT_LEASE}

        async def start() -> asyncio.subprocess.Process:
            pipe = asyncio.subprocess.PIPE
            return await asyncio.create_subprocess_exec(
                *command,
                cwd=folder,
                env=environment,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,
            )

        first = await start()
        async with asyncio.timeout(60):
            while sum(call.task == "extraction" for call in fake.calls) < 8:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.005)
        os.kill(first.pid, signal.SIGKILL)
        await first.wait()
        second = await start()
        out, err = await second.communicate()
        assert second.returncode == 0, err.decode()
        counts = Counter((call.task, call.text) for call in fake.calls)
        repeated = sum(times - 1 for times in counts.values())
        comments = Counter(
            line for call in fake.calls if call.task == "extraction" for line in texts(call.text)
        )
        assert repeated <= in_flight
        assert sum(times - 1 for times in comments.values()) <= in_flight * 10
        assert json.loads(out)["created"] is False
        assert problems(load_report(folder / "out")) == []


SHORT_LEASE = {
    f"HOLDFAST_LEASE_{name}": value
    for name, value in {"TTL": "3s", "RENEW": "1s", "MARGIN": "500ms", "SWEEP": "500ms"}.items()
}


def texts(data: str) -> list[str]:
    """The comments in a question's data."""
    return [comment["text"] for comment in json.loads(data.splitlines()[1])["comments"]]


def test_a_budget_pauses_the_run_and_more_of_it_goes_on(tmp_path: Path) -> None:
    asyncio.run(run_out_of_budget(tmp_path))


async def run_out_of_budget(folder: Path) -> None:
    async with FakeLLM(ReportBrain()) as fake:
        # Dollars per million tokens: a small file becomes expensive.
        address = fake.address(in_flight=4, input_price=1000, output_price=1000)
        environment = {"HOLDFAST_LLM": address, **fake.environment}
        words = ("report", "build", str(SAMPLE), "-o", "out", "--json", "--budget")
        paused = await asyncio.to_thread(lambda: holdfast(*words, "120", cwd=folder, **environment))
        assert paused.returncode == 3, paused.stderr
        assert "of the budget of $120.00 is spent" in paused.stderr
        assert "--budget MORE" in paused.stderr
        before = len(fake.calls)
        ended = await asyncio.to_thread(
            lambda: holdfast(*words, "10000", cwd=folder, **environment)
        )
        assert ended.returncode == 0, ended.stderr
        assert 0 < before < len(fake.calls)
        assert max(Counter((call.task, call.text) for call in fake.calls).values()) == 1
    spent = load_report(folder / "out").made.cost
    assert spent is not None
    assert spent > 120


# --- the earlier report worker's words ------------------------------------------------------------


def test_the_job_of_seed_000_becomes_a_report_once_and_its_state_is_told_in_its_words(
    tmp_path: Path,
) -> None:
    job = {
        "config": {
            "firebaseDetails": {"reportId": "r-123", "userId": "u-1"},
            "llm": {"model": "local:"},
            "instructions": {"outputLanguage": "English"},
            "options": {"cruxes": False, "sortStrategy": "numPeople"},
        },
        "data": [
            {"id": str(n), "comment": f"Bus {n} is late every day.", "interview": f"p{n}"}
            for n in range(4)
        ],
        "reportDetails": {
            "title": "Buses",
            "description": "d",
            "question": "What now?",
            "filename": "buses.csv",
        },
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    first = built(tmp_path / "job.json", cwd=tmp_path)
    again = holdfast("run", "report", "--input-file", "job.json", "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    status = json.loads(again.stdout)
    assert (status["run"], status["created"]) == (first["run"], False)
    state = json.loads(
        holdfast("runs", "show", first["run"], "--format", "state", cwd=tmp_path).stdout
    )
    assert (state["reportId"], state["status"]) == ("r-123", "completed")
    assert [step for step in state["stepAnalytics"] if step not in OURS] == [
        "clustering",
        "claims",
        "sort_and_deduplicate",
        "cruxes",
        "summaries",
    ]
    assert state["stepAnalytics"]["cruxes"]["status"] == "skipped"
