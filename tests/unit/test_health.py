"""Files, folders, models and settings that are really broken give the right finding, with why and
fix."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.findings import gathered, look, troubles

from holdfast import bootstrap
from holdfast.adapters import disk
from holdfast.adapters.sqlite import health as sqlite
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.apps.report import checks
from holdfast.settings import health as settings
from holdfast.settings import load
from holdfast.settings.values import Settings
from holdfast.testing.contracts.store_topics.harness import a_claim, a_submit
from holdfast.testing.fakellm import FakeLLM, Minimal

NOT_WRITABLE = Path("/sys")
"""A folder that takes no files, not even from root."""


async def made(path: Path, *commands: object) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.apply(commands)  # type: ignore[arg-type]
    await store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store in which one run is running."""
    file = tmp_path / "runs.db"
    asyncio.run(made(file, a_submit("r1"), a_claim()))
    return file


def execute(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


# --- sqlite ---------------------------------------------------------------------------------------


def test_a_healthy_file_has_no_troubles_and_is_left_as_it_is(path: Path) -> None:
    before = path.read_bytes()
    findings = look(sqlite.findings(str(path)))
    assert troubles(findings) == {}
    assert findings["schema"].seen == "version 1"
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["runs.db"]


def test_a_file_that_is_not_there_yet_is_a_warning_and_is_not_created(tmp_path: Path) -> None:
    findings = look(sqlite.findings(str(tmp_path / "new.db")))
    assert troubles(findings) == {"schema": "warn"}
    assert "--store" in findings["schema"].fix
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", [NOT_WRITABLE / "x.db", Path("/nowhere/at/all/x.db")])
def test_a_folder_that_takes_no_file_is_a_failure(place: Path) -> None:
    findings = look(sqlite.findings(str(place)))
    assert findings["schema"].status == "fail"
    assert "can't be created" in findings["schema"].seen


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_file_that_is_read_only_is_a_failure(path: Path) -> None:
    path.chmod(0o444)
    assert "read-only" in look(sqlite.findings(str(path)))["usable"].seen


def test_a_file_of_another_program_is_a_failure(tmp_path: Path) -> None:
    execute(tmp_path / "x.db", "CREATE TABLE theirs (x)")
    assert "another program" in look(sqlite.findings(str(tmp_path / "x.db")))["usable"].seen


def test_a_file_that_is_no_database_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("once upon a time " * 100)
    findings = look(sqlite.findings(str(tmp_path / "x.db")))
    assert "not a usable SQLite database" in findings["usable"].seen


def test_a_damaged_file_is_a_failure(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[8192:12288] = b"\xff" * 4096
    path.write_bytes(content)
    findings = look(sqlite.findings(str(path)))
    assert "fail" in troubles(findings).values(), findings


def test_a_schema_of_a_newer_program_is_a_failure(path: Path) -> None:
    execute(path, "PRAGMA user_version = 99")
    execute(path, "UPDATE meta SET value = '99' WHERE name = 'oldest_usable_schema'")
    assert "upgrade holdfast" in look(sqlite.findings(str(path)))["usable"].seen


def test_a_schema_of_an_older_program_is_a_warning(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_migrations = sqlite.database.migrations()
    next_one = all_migrations[0]._replace(number=2)
    monkeypatch.setattr(sqlite.database, "migrations", lambda: [*all_migrations, next_one])
    assert troubles(look(sqlite.findings(str(path)))) == {"schema": "warn"}


def test_somebody_who_keeps_the_file_locked_is_a_warning(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "LOCK_TIMEOUT", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        findings = look(sqlite.findings(str(path)))
    assert troubles(findings) == {"writable": "warn"}


def test_a_log_that_grows_is_a_warning(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "LONG_LOG", 0)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM runs").fetchone()
        execute(path, "UPDATE runs SET priority = 1")
        assert troubles(look(sqlite.findings(str(path)))) == {"write-ahead log": "warn"}


def test_a_run_that_was_left_behind_is_a_warning(path: Path) -> None:
    execute(path, "UPDATE runs SET lease_until = -1000")
    findings = look(sqlite.findings(str(path)))
    assert troubles(findings) == {"leases": "warn"}
    assert "1 running" in findings["leases"].seen


@pytest.mark.parametrize(
    ("kind", "status"), [("nfs4", "fail"), ("tmpfs", "warn"), ("overlay", "warn"), ("ext4", "ok")]
)
def test_the_file_system_matters(
    path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, status: str
) -> None:
    monkeypatch.setattr(disk, "file_system_of", lambda path: kind)
    assert look(sqlite.findings(str(path)))["file system"].status == status


def test_a_disk_that_is_almost_full_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "LITTLE", 1 << 60)
    assert troubles(look(sqlite.findings(str(path)))) == {"space": "warn"}
    monkeypatch.setattr(disk, "TOO_LITTLE", 1 << 60)
    assert troubles(look(sqlite.findings(str(path)))) == {"space": "fail"}


def test_who_else_uses_the_file_is_said(path: Path) -> None:
    assert "0 other processes" in look(sqlite.findings(str(path)))["users"].seen


# --- blobs ----------------------------------------------------------------------------------------


def test_a_folder_of_blobs_is_tried_and_left_as_it_was(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/some/new"
    assert troubles(look(bootstrap.blobs_health(url, "sqlite:///x.db"))) == {}
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "some" / "new").mkdir(parents=True)
    assert troubles(look(bootstrap.blobs_health(url, "sqlite:///x.db"))) == {}
    assert [str(entry.relative_to(tmp_path)) for entry in tmp_path.rglob("*")] == [
        "some",
        "some/new",
    ]


def test_a_folder_that_takes_no_blobs_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", NOT_WRITABLE / "blobs"):
        assert troubles(look(bootstrap.blobs_health(f"file:{path}", "sqlite:///x.db"))) == {
            "reachable": "fail"
        }


def test_a_folder_of_one_host_is_too_little_for_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file:{tmp_path}"
    assert troubles(look(bootstrap.blobs_health(url, "redis://h"))) == {"shared": "warn"}
    assert troubles(look(bootstrap.blobs_health(None, "postgresql://h/d"))) == {"place": "warn"}
    monkeypatch.setattr(disk, "file_system_of", lambda path: "nfs4")
    assert troubles(look(bootstrap.blobs_health(url, "redis://h"))) == {}


def test_memory_is_for_tests() -> None:
    assert troubles(look(bootstrap.store_health("memory:"))) == {"permanence": "warn"}
    assert troubles(look(bootstrap.blobs_health("memory:", "memory:"))) == {"permanence": "warn"}


# --- models ---------------------------------------------------------------------------------------


def test_a_key_that_is_missing_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    findings = look(bootstrap.language_model_health("openai:gpt-4o-mini"))
    assert troubles(findings) == {"key": "fail"}
    assert "OPENAI_API_KEY" in findings["key"].fix


def test_a_key_that_is_there_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-s3cret-s3cret")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    findings = look(bootstrap.language_model_health("openai:gpt-4o-mini"))
    assert troubles(findings) == {}
    assert "s3cret" not in str(findings)


def test_a_model_is_reached_without_being_asked() -> None:
    async def story() -> None:
        async with FakeLLM(Minimal()) as fake:
            address = fake.address("openai").partition("&key=")[0].partition("?key=")[0]
            findings = await gathered(bootstrap.language_model_health(address))
            assert troubles(findings) == {}
            assert not fake.calls
        assert troubles(await gathered(bootstrap.language_model_health(address))) == {
            "reachable": "warn"
        }

    asyncio.run(story())


def test_a_price_that_nobody_knows_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-s3cret-s3cret")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert troubles(look(bootstrap.language_model_health("openai:no-such-model"))) == {
        "price": "warn"
    }


def test_the_analyst_without_a_model_works_offline() -> None:
    assert "offline" in look(checks.local_analyst(Settings()))["analyst"].seen
    assert look(checks.local_analyst(Settings(llm="openai:gpt-4o-mini"))) == {}


# --- settings -------------------------------------------------------------------------------------


def test_names_that_disagree_are_a_warning(tmp_path: Path) -> None:
    env = {"HOLDFAST_STORE": "sqlite:///a.db", "DATABASE_URL": "sqlite:///b.db"}
    assert troubles(look(settings.findings(load(env=env, cwd=tmp_path)))) == {"names": "warn"}


def test_a_lease_that_no_late_renewal_survives_is_a_warning(tmp_path: Path) -> None:
    env = {"HOLDFAST_LEASE_RENEW": "20s"}
    assert troubles(look(settings.findings(load(env=env, cwd=tmp_path)))) == {"lease": "warn"}


def test_time_outs_that_do_not_fit_are_warnings(tmp_path: Path) -> None:
    server = {"HOLDFAST_STORE": "redis://h"}
    for env, status in (
        ({"HOLDFAST_POOL_SIZE": "8"}, "warn"),  # the store is a file
        (server | {"HOLDFAST_POOL_SIZE": "8"}, "ok"),
        (server | {"HOLDFAST_TIMEOUT_COMMAND": "20s"}, "warn"),  # a lease lasts 30 s
        (server | {"HOLDFAST_TIMEOUT_COMMAND": "10s"}, "ok"),
    ):
        assert look(settings.findings(load(env=env, cwd=tmp_path)))["servers"].status == status, env


@pytest.mark.parametrize("name", [".env", "holdfast.toml"])
def test_a_password_that_everybody_can_read_is_a_warning(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    variable = "HOLDFAST_STORE" if name == ".env" else "store"
    (folder / name).write_text(f'{variable}="redis://ann:s3cret@h/0"\n')
    (folder / name).chmod(0o644)
    findings = look(settings.findings(load(env={"HOME": str(tmp_path)}, cwd=folder)))
    assert troubles(findings) == {"passwords": "warn"}
    assert "s3cret" not in str(findings)
    (folder / name).chmod(0o600)
    assert troubles(look(settings.findings(load(env={"HOME": str(tmp_path)}, cwd=folder)))) == {}
