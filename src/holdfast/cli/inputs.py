"""A run's input from the command line: `name=text`, `name:=json`, dotted paths; for all of it
JSON, `=text`, or a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import InvalidInput

NOTHING: Any = object()
"""No input was given: not the same as null."""


def read_input(assignments: Sequence[str], file: str | None) -> Any:
    """The input: the file's content, with the assignments laid over it."""
    value = _from_file(file) if file else NOTHING
    for assignment in assignments:
        value = _assigned(value, assignment)
    return value


def _from_file(file: str) -> Any:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput(f"--input-file {file} can't be read: {reason}") from error
    name = "standard input" if file == "-" else file
    return _json(text, f"--input-file: {name}")


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where} is not valid JSON: {error}") from error


def _assigned(value: Any, assignment: str) -> Any:
    path, raw = _parsed(assignment)
    if not path:
        return raw
    value = {} if value is NOTHING else value
    container = value
    *parents, last = path.split(".")
    for name in parents:
        container = _object(container, assignment).setdefault(name, {})
    _object(container, assignment)[last] = raw
    return value


def _parsed(assignment: str) -> tuple[str, Any]:
    """`a.b=text` gives text, `a.b:=json` gives what the JSON says; without a name it is the whole
    input, and so is JSON alone."""
    if assignment.lstrip().startswith(("{", "[", '"')):
        return "", _json(assignment, f"--input {assignment}")
    name, equals, text = assignment.partition("=")
    if not equals:
        try:
            return "", json.loads(assignment)
        except ValueError:
            raise InvalidInput(
                f"--input {assignment!r} is not understood: write name=text or name:=json; for "
                "all of it JSON, or =text"
            ) from None
    if name.endswith(":"):
        return name[:-1], _json(text, f"--input {assignment}")
    return name, text


def read_labels(assignments: Sequence[str]) -> dict[str, str]:
    """`--label user_id=42`, repeated."""
    labels: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise InvalidInput(f"--label {assignment!r} is not understood: write NAME=TEXT")
        labels[name] = value
    return labels


def _object(container: Any, assignment: str) -> dict[str, Any]:
    if not isinstance(container, dict):
        raise InvalidInput(
            f"--input {assignment}: there is {container!r:.40} already where an object is needed"
        )
    return container
