"""The table of adapters: each entry leads to what it names, and nothing is imported that is not
used."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

from holdfast.bootstrap import make_blobs, make_bus, make_mover, make_store
from holdfast.bootstrap.adapters import ADAPTERS, Adapter, Part, adapter_for, schemes
from holdfast.errors import ConfigurationError
from holdfast.model.clock import SystemClock

CLOCK = SystemClock()
PARTS = [
    (adapter, name, part)
    for adapter in ADAPTERS
    for name in (
        "store",
        "blobs",
        "bus",
        "mover",
        "records",
        "health",
        "bus_health",
        "documents",
        "documents_health",
        "setup",
        "repair",
    )
    if (part := getattr(adapter, name)) is not None
]
GIVEN = {
    "url",
    "path",
    "clock",
    "store_url",
    "many_hosts",
    "collections",
    "topology",
    "change",
}


@pytest.mark.parametrize(
    ("adapter", "name", "part"), PARTS, ids=[f"{a.schemes[0]}-{name}" for a, name, _ in PARTS]
)
def test_every_part_is_where_the_table_says(adapter: Adapter, name: str, part: Part) -> None:
    module, _, attribute = part.where.partition(":")
    assert callable(getattr(import_module(f"holdfast.adapters.{module}"), attribute))
    assert set(part.takes) <= GIVEN
    assert "path" not in part.takes or adapter.path is not None


def test_every_scheme_has_one_adapter() -> None:
    names = [scheme for adapter in ADAPTERS for scheme in adapter.schemes]
    assert len(names) == len(set(names))
    assert schemes("store") == [
        "memory",
        "sqlite",
        "postgresql",
        "postgres",
        "redis",
        "rediss",
    ]


@pytest.mark.parametrize(
    ("make", "url", "says"),
    [
        (
            make_blobs,
            "sqlite:///x",
            "blobs = 'sqlite:///x' is not understood: known are memory:, f",
        ),
        (make_bus, "redsi://h", "did you mean redis:?"),
        (make_bus, "nowhere", "bus = 'nowhere' is not understood"),
        (make_blobs, "file:", "write file:./folder"),
        (make_blobs, "file:./x?y=1", "this adapter takes no parameters after '?'"),
    ],
)
def test_a_url_that_can_not_be_used_says_why(make: Any, url: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make(url)
    assert says in str(caught.value)


def test_what_lives_in_memory_can_not_be_moved() -> None:
    with pytest.raises(ConfigurationError, match="nothing to move"):
        make_mover("memory:", CLOCK)


def test_a_password_is_not_shown_when_a_url_is_not_understood() -> None:
    with pytest.raises(ConfigurationError) as caught:
        make_store("mysql://ann:geheim@h/db", CLOCK)
    assert "geheim" not in str(caught.value)


def in_a_process_of_its_own(*lines: str) -> str:
    """What a program prints that has imported nothing yet."""
    start = (
        "import sys",
        "from holdfast.bootstrap import make_store",
        "from holdfast.model import clock",
    )
    code = "\n".join([*start, *lines])
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return process.stdout


def test_adapters_are_imported_when_they_are_made() -> None:
    modules = in_a_process_of_its_own(
        "make_store('memory:', clock.SystemClock())",
        "print([name for name in sys.modules if name.startswith('holdfast.adapters.')])",
    )
    assert "holdfast.adapters.memory.store" in modules
    for other in ("sqlite", "postgres", "redis", "files"):
        assert f"holdfast.adapters.{other}" not in modules


@pytest.mark.parametrize(
    ("package", "url", "extra"),
    [
        ("psycopg", "postgresql://ann:geheim@db/app", "postgres"),
        ("hiredis", "redis://:geheim@h/0", "redis"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_extra(
    package: str, url: str, extra: str
) -> None:
    printed = in_a_process_of_its_own(
        f"sys.modules[{package!r}] = None",
        f"try: make_store({url!r}, clock.SystemClock())",
        "except Exception as error: print(type(error).__name__, error)",
    )
    assert printed.startswith("ConfigurationError ")
    assert f"pip install holdfast[{extra}]" in printed
    assert "geheim" not in printed


def test_an_adapter_knows_the_path_in_its_url() -> None:
    assert adapter_for("file:///a%20b", "blobs", "blobs").path("file:///a%20b") == "/a b"  # type: ignore[misc]
    assert make_blobs("file:./x").root.name == "x"  # type: ignore[attr-defined]
