"""The driver of `make bench-peers`, on real servers with a handful of jobs: holdfast as its own
peer."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks import drive, peers, stores
from benchmarks.systems import common, growth


@pytest.fixture(scope="module", params=["redis", "postgres"])
def server(request: pytest.FixtureRequest) -> Any:
    with stores.servers(None, None, "always") as servers:
        server = servers[request.param]
        assert isinstance(server, stores.Server), server
        yield server


def driver(server: stores.Server, folder: Path, **options: Any) -> drive.Driver:
    defaults = {
        "command": peers.command(peers.OURS, "holdfast_servers"),
        "environment": {},
        "server": asdict(server),
        "folder": str(folder),
        "way": "",
        "flight": 8,
        "pending": "holdfast",
        "prepares": True,
    }
    return drive.Driver({**defaults, **options})


def test_a_drain_ends_when_everything_is_settled(server: stores.Server, tmp_path: Path) -> None:
    figures = drive.drain(driver(server, tmp_path, count=2_000, workers=2))
    assert figures["value"] > 0
    assert figures["submit"] > 0
    assert figures["worker_cpu"] > 0
    assert 0 <= figures["others_occupied"] <= figures["machine_occupied"] <= 1
    assert ("server_occupied" in figures) is (server.kind == "redis")
    assert 0 <= figures.get("server_occupied", 0) <= 1


def test_a_pick_up_is_measured_between_two_processes(server: stores.Server, tmp_path: Path) -> None:
    figures = drive.pickup(driver(server, tmp_path, count=3))
    assert 0 < figures["value"] <= figures["p99"]


@pytest.mark.parametrize(
    ("options", "at_once"),
    [({"uvloop": False}, 64), ({"uvloop": True, "concurrency": 100}, 100)],
    ids=["defaults", "tuned"],
)
def test_a_worker_has_the_settings_that_its_row_names(
    server: stores.Server, tmp_path: Path, options: dict[str, Any], at_once: int
) -> None:
    worker = driver(server, tmp_path, count=1, **options)
    worker.begin()
    worker.ask("single", 1)
    with worker.working(1) as [process]:
        while not worker.executed.total():
            worker.check([process])
        loaded = Path(f"/proc/{process.pid}/maps").read_text()
    assert "uvloop" in loaded
    assert f"{at_once} runs at once" in (tmp_path / "log").read_text()


def test_a_worker_that_ends_says_why(server: stores.Server, tmp_path: Path) -> None:
    broken = driver(
        server,
        tmp_path,
        count=10,
        command=[sys.executable, "-c", "import sys; sys.exit('no such queue')"],
    )
    with broken.working(1) as [process]:
        process.wait()
        with pytest.raises(RuntimeError, match="a worker ended: no such queue"):
            broken.check([process])


def test_a_verb_that_fails_says_why(server: stores.Server, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="nonsense"):
        driver(server, tmp_path, count=10).ask("nonsense")


def test_cleaning_leaves_nothing_for_the_next_measurement(
    server: stores.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "TURNS", 2)
    server.clean()
    small, large = common.run(growth.compare(server.url, [0, 200], growth.Model.queue), fast=True)
    assert set(small) == set(large) == set(growth.COMMANDS)
    [full] = growth.side_by_side(server.url, ["s200"])
    with drive.pending_of(driver(replace(server, url=full), tmp_path, count=0)) as pending:
        assert pending() == 200
    server.clean()
    with drive.pending_of(driver(replace(server, url=full), tmp_path, count=0)) as pending:
        assert pending() == 0


def test_a_server_that_is_named_must_be_empty() -> None:
    with stores.servers(None, "postgresql://postgres@127.0.0.1:1/nowhere", "always") as first:
        redis = first["redis"]
        assert isinstance(redis, stores.Server)
        assert isinstance(first["postgres"], stores.NotThere)
        stores.redis_call(redis.url, "SET", "precious", "1")
        with stores.servers(
            redis.url, "postgresql://postgres@127.0.0.1:1/nowhere", "always"
        ) as second:
            assert "holds 1 keys" in str(second["redis"])
        assert stores.redis_call(redis.url, "GET", "precious") == b"1"
