"""An app that is declared in code keeps its options on the command line, whatever else is set
there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.conftest import Cli

APP = Path(__file__).with_name("app_for_cli.py")


@pytest.fixture
def declared(tmp_path: Path) -> Cli:
    cli = Cli(tmp_path)
    (tmp_path / "mine.py").write_text(APP.read_text())
    (tmp_path / "holdfast.toml").write_text('app = ["mine.py:app"]\n')
    return cli


@pytest.mark.parametrize("store", [(), ("--store", "sqlite:///other.db")], ids=["its own", "other"])
def test_a_worker_uses_what_the_app_provides(declared: Cli, store: tuple[str, ...]) -> None:
    run = declared(*store, "run", "greeting", "-i", ':="Ada"', "--no-wait").out.strip()
    worker = declared(*store, "worker", "--once")
    assert "3 runs at once" in worker.err
    assert declared(*store, "runs", "result", run).json == "Hello Ada"
    file = "other.db" if store else "declared.db"
    assert [path.name for path in declared.folder.glob("*.db")] == [file]


def test_run_executes_with_what_the_app_provides(declared: Cli) -> None:
    assert declared("run", "greeting", "-i", ':="Ada"').json == "Hello Ada"


def test_check_shows_the_adapters_of_the_app(declared: Cli) -> None:
    assert "sqlite:///declared.db, file:declared-files, bus none" in declared.here("check").out
