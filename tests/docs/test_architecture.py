"""The walk through the code names files, classes and functions that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/architecture.md").read_text()
NAMED = sorted(
    set(re.findall(r"`([\w./-]+\.(?:py|sql|lua|md))(?::([\w.]+))?`", PAGE)),
)


def place(path: str) -> Path:
    inside = ROOT / "src/holdfast" / path
    return inside if inside.exists() else ROOT / path


@cache
def defined(path: Path) -> set[str]:
    """The names of a module's classes, their methods, its functions and its values."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        names |= names_of(node)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{inner}" for child in node.body for inner in names_of(child)}
    return names


def names_of(node: ast.AST) -> set[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Assign():
            return {target.id for target in node.targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


@pytest.mark.parametrize(("path", "name"), NAMED, ids=lambda part: part)
def test_what_the_walk_names_exists(path: str, name: str) -> None:
    assert place(path).is_file(), path
    if name:
        assert name in defined(place(path)), f"{path} has no {name}"


def test_the_walk_names_the_hops_and_the_places() -> None:
    assert len([name for _, name in NAMED if name]) > 40
    for hop in ("Submit.", "Claim.", "Checkpoint.", "Settle.", "Relay."):
        assert f"**{hop}**" in PAGE
    for new in ("a setting", "a command that changes runs", "a store", "an app", "a projection"):
        assert f"| {new} |" in PAGE


@pytest.mark.parametrize("folder", sorted(set(re.findall(r"`((?:[\w.-]+/)+)`", PAGE))))
def test_folders_that_the_walk_names_exist(folder: str) -> None:
    assert place(folder).is_dir()
