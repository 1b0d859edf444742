"""`holdfast doctor` as people and scripts call it, and that no command ever shows a password."""

from __future__ import annotations

import traceback

import pytest
from tests.acceptance.conftest import Cli
from tests.integration.redis.helpers import a_server
from tests.postgres_server import fresh_schema, shared_server

from holdfast.cli.render.findings import finding_text
from holdfast.errors import HoldfastError
from holdfast.ports.health import make_finding


def test_a_new_folder_is_fine_but_for_the_store_that_is_not_there(cli: Cli) -> None:
    answer = cli.here("doctor")
    assert "! schema" in answer.out
    assert answer.out.rstrip().endswith("no problems, 1 warning")
    assert not (cli.folder / "runs.db").exists()


def test_fix_creates_what_is_missing(cli: Cli) -> None:
    assert cli.here("doctor", "--fix").out.rstrip().endswith("no problems, no warnings")
    assert (cli.folder / "runs.db").exists()


def test_what_it_finds_is_data_for_scripts(cli: Cli) -> None:
    cli.here("run", "greet", "-i", "name=Ada", "-i", "trouble=fail", code=5)
    items = cli.here("doctor", "--json").json["items"]
    assert {item["area"] for item in items} == {
        "settings", "store", "blobs", "bus", "llm", "runs", "transcription",
    }  # fmt: skip
    [letters] = [item for item in items if item["check"] == "dead letters"]
    assert letters["status"] == "warn"
    assert letters["seen"].startswith("1 open")
    assert "dlq" in letters["fix"]
    assert set(letters) == {"area", "check", "status", "seen", "why", "fix"}


def test_problems_exit_with_8_and_say_why_and_how(cli: Cli) -> None:
    (cli.folder / "runs.db").write_text("not a database " * 100)
    answer = cli.here("doctor", code=8)
    assert "✘ usable" in answer.out
    assert "why  " in answer.out
    assert "fix  " in answer.out
    assert "1 problem," in answer.out


def test_settings_that_can_not_be_read_are_a_problem(cli: Cli) -> None:
    (cli.folder / "holdfast.toml").write_text("stoer = 1")
    answer = cli.here("doctor", code=8)
    assert "did you mean store?" in answer.out
    assert "1 problem" in answer.out


def test_a_whole_server_is_looked_at(cli: Cli) -> None:
    """The tests' servers keep nothing on disk, which a doctor has to find."""
    url = shared_server().url(fresh_schema())
    items = cli.here("--store", url, "doctor", "--fix", "--json", code=8).json["items"]
    assert [item["check"] for item in items if item["status"] == "fail"] == ["durability"]
    assert {"fenced write", "wake-up", "notifications", "dead letters"} < {
        item["check"] for item in items
    }
    with a_server() as redis:
        items = cli.here(
            "--store", redis.url(), "doctor", "--fix", "--json", HOLDFAST_BUS=redis.url()
        ).json["items"]
    assert {"fenced write", "wake-up", "message", "outbox"} < {item["check"] for item in items}


def test_lines_fit_the_terminal() -> None:
    long = make_finding("check", "seen " * 40, warn=True, why="why " * 40, fix="fix " * 40)
    lines = finding_text(long, True, 80).plain.splitlines()
    assert max(map(len, lines)) <= 80
    assert not any(line.endswith(" ") for line in lines)


# --- secrets --------------------------------------------------------------------------------------

COMMANDS = (
    ("config", "show", "--origin"),
    ("config", "show", "--json"),
    ("version", "--json"),
    ("check",),
    ("doctor",),
    ("doctor", "--json"),
    ("runs", "list", "--debug"),
    ("worker", "--once", "--debug"),
)


URLS = {
    "postgres is away": "postgresql://ann:s3cret@127.0.0.1:1/app?timeout=1s",
    "redis is away": "redis://ann:s3cret@127.0.0.1:1/0?timeout=1s",
    "postgres with a wrong parameter": "postgresql://ann:s3cret@db/app?pool=none",
    "redis with a wrong parameter": "redis://ann:s3cret@h/0?pool=none",
    "postgres not encoded": "postgresql://ann:x/s3cret@db/app",
    "redis not encoded": "redis://ann:x/s3cret@h/0",
    "nobody": "mysql://ann:s3cret@db/app",
}


@pytest.mark.parametrize("url", URLS.values(), ids=list(URLS))
def test_no_command_shows_a_password(cli: Cli, url: str) -> None:
    for words in COMMANDS:
        try:
            text = repr(
                cli.here(
                    *words,
                    code=None,
                    HOLDFAST_STORE=url,
                    HOLDFAST_BUS=url,
                    HOLDFAST_LOG_LEVEL="debug",
                )
            )
        except HoldfastError as error:  # --debug lets it out
            text = "".join(traceback.format_exception(error))
        assert "s3cret" not in text, f"{words}: {text}"


def test_a_server_that_goes_away_under_a_worker_is_logged_without_its_password(cli: Cli) -> None:
    with a_server("--requirepass", "s3cret") as server:
        url = server.url(timeout="300ms").replace("//", "//:s3cret@")
        worker = cli.start("--store", url, "worker", HOLDFAST_BUS=url, HOLDFAST_LOG_LEVEL="debug")
        try:
            worker.until("worker")
            server.kill()
            worker.until("can't be reached")
        finally:
            worker.process.terminate()
        answer = worker.end()
    assert "s3cret" not in answer.out + answer.err
