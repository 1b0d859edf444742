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

LEVELS = ("debug", "info", "warning", "error", "exception", "critical", "log")


def log_formats() -> Iterator[str]:
    """The first text in every call of a logger."""
    for path in sorted(ENGINE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and is_about_logging(node.func):
                texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
                yield next(text for text in texts if isinstance(text, str))


def is_about_logging(function: ast.expr) -> bool:
    match function:
        case ast.Name(id="log_error"):
            return True
        case ast.Attribute(value=ast.Name(id="log" | "logger"), attr=level):
            return level in LEVELS
    return False


def test_there_are_log_lines() -> None:
    assert len(list(log_formats())) > 20


@pytest.mark.parametrize("text", sorted(set(log_formats())))
def test_every_log_line_of_the_engine_is_documented(text: str) -> None:
    pattern = re.sub(r"%[sdg]", r"[A-Za-z\\[\\]: ]+", re.escape(text))
    assert any(re.fullmatch(pattern, line) for line in DOCUMENTED), text
