"""What users of the five earlier systems expect, row by row: `make seeds` prints a line for each.

The rows of a system are the tests of one module, `test_seed_NNN.py`. A test is named after the rows
it shows: `test_row_07_…`, or `test_rows_01_02_…`. `ROWS` in the module says how many rows there
are, `OPEN` which of them nobody has built yet, each with its name. Every row is one or the other."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.apps.compat.routes.words import settings

HERE = Path(__file__).parent
NAME = re.compile(r"test_rows?_((?:\d+_)+)")

WORKS, FAILS, OPEN = "works", "fails", "open"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", action="store_true", help="Print a line for each row at the end.")


def rows_of(test: str) -> list[int]:
    """The rows that a test is named after."""
    match = NAME.match(test)
    return [int(number) for number in match[1].split("_") if number] if match else []


class Seed:
    """One module: how many rows there are, and which are open."""

    def __init__(self, path: Path) -> None:
        tree = ast.parse(path.read_text())
        self.number = path.stem.removeprefix("test_seed_")
        self.count: int = _constant(tree, "ROWS")
        self.open: dict[int, str] = _constant(tree, "OPEN")
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        names = [node.name for node in ast.walk(tree) if isinstance(node, functions)]
        self.tested = {row for name in names for row in rows_of(name)}

    def problems(self) -> Iterator[str]:
        every = set(range(1, self.count + 1))
        if missing := sorted(every - self.tested - set(self.open)):
            yield f"seed {self.number}: rows {missing} are neither tested nor listed as open"
        if both := sorted(self.tested & set(self.open)):
            yield f"seed {self.number}: rows {both} are tested and listed as open"
        if unknown := sorted((self.tested | set(self.open)) - every):
            yield f"seed {self.number}: rows {unknown} do not exist"


def _constant(tree: ast.Module, name: str) -> Any:
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == [name]:
            return ast.literal_eval(node.value)
    raise AssertionError(f"the module has no {name}")


@pytest.fixture(autouse=True)
def _settings_of_this_test() -> Iterator[None]:
    """Processes read them once; here many tests share one."""
    settings.cache_clear()
    yield
    settings.cache_clear()


def seeds() -> list[Seed]:
    return [Seed(path) for path in sorted(HERE.glob("test_seed_*.py"))]


_outcomes: dict[tuple[str, int], list[bool]] = {}
"""By seed and row: whether each of its tests passed. A skipped one did not."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    path, _, test = report.nodeid.partition("::")
    if "test_seed_" not in path or (report.when != "call" and report.passed):
        return
    seed = Path(path).stem.removeprefix("test_seed_")
    for row in rows_of(test.rpartition("::")[2]):
        _outcomes.setdefault((seed, row), []).append(report.passed)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not config.getoption("--seeds", default=False):
        return
    write = terminalreporter.write_line
    for seed in seeds():
        sums: Counter[str] = Counter()
        for row in range(1, seed.count + 1):
            outcomes = _outcomes.get((seed.number, row), [])
            word = OPEN if row in seed.open else WORKS if outcomes and all(outcomes) else FAILS
            sums[word] += 1
            write(f"| {seed.number} | {row} | {word} |")
        parts = ", ".join(f"{sums[word]} {word}" for word in (WORKS, OPEN, FAILS) if sums[word])
        write(f"seed {seed.number}: {seed.count} rows: {parts}")
