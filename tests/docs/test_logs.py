"""Add a log line to the engine without documenting it, and a test tells you."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "src" / "holdfast" / "engine"
DOCUMENTED = re.findall(r"`([^`]+)`", (ROOT / "docs" / "reference" / "logs.md").read_text())

LEVELS = ("debug", "info", "warning", "error", "exception", "critical", "log", "makeRecord")


def log_formats() -> Iterator[str]:
    """The first text in every call of a logger."""
    for path in sorted(ENGINE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id in ("log", "logger")
                and node.func.attr in LEVELS
            ):
                texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
                yield next(text for text in texts if isinstance(text, str))


def test_there_are_log_lines() -> None:
    assert len(list(log_formats())) > 20


@pytest.mark.parametrize("text", sorted(set(log_formats())))
def test_every_log_line_of_the_engine_is_documented(text: str) -> None:
    pattern = re.sub(r"%[sdg]", r"[A-Za-z\\[\\]: ]+", re.escape(text))
    assert any(re.fullmatch(pattern, line) for line in DOCUMENTED), text
