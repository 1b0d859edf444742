"""Asking before something can't be undone."""

from __future__ import annotations

import sys

from holdfast.cli.exits import NotConfirmed
from holdfast.cli.session import Session, is_interactive
from holdfast.errors import ConfigurationError


def confirm(session: Session, question: str, *, yes: bool, typed: str | None = None) -> None:
    """Return when the answer is yes. `typed` is a word that has to be typed in full."""
    if yes:
        return
    if session.no_input or not is_interactive():
        raise ConfigurationError(f"{question} This needs a confirmation: add --yes")
    expected = typed or "y"
    sys.stderr.write(f"{question} Type {typed!r} to go on: " if typed else f"{question} [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    if answer != expected and not (typed is None and answer.lower() in ("y", "yes")):
        raise NotConfirmed("nothing was changed")
