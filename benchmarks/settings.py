"""The settings that holdfast is measured with: its defaults, which goals are judged by, and tuned
ones, which are rows of their own. Each row says how many runs at once and which event loop.

Default means what `pip install holdfast` gives, and `holdfast[redis]` or `holdfast[postgres]` on
the servers: these bring uvloop, which `holdfast worker` uses where it is installed. A program of a
user's own runs on asyncio's event loop. Only the log level is not the default, since the peers
don't log their jobs either; what holdfast's default level costs is a row of its own."""

from __future__ import annotations

from typing import Any

from benchmarks.catalogue import HOLDFAST, LOGGING, TUNED, Subject, System
from holdfast import WorkerOptions

AT_ONCE = WorkerOptions().concurrency
ASYNCIO = "asyncio"
UVLOOP = "uvloop"
DEFAULTS = f"{AT_ONCE} at once, {ASYNCIO}"
"""In a program of a user's own."""
WORKER_DEFAULTS = f"{AT_ONCE} at once, {UVLOOP}"
"""`holdfast worker`, as it is installed for a server."""
QUIET = {"HOLDFAST_LOG_LEVEL": "warning"}


def default(module: str, **options: Any) -> System:
    """holdfast with default settings."""
    return System(HOLDFAST, module, options={**options, "uvloop": False, "variables": QUIET})


def logging(module: str, **options: Any) -> System:
    """The same with its default log level."""
    return System(LOGGING, module, options={**options, "uvloop": False})


def on_uvloop(module: str, **options: Any) -> System:
    """holdfast tuned: all on uvloop, with more runs at once where the row says so."""
    return System(TUNED, module, options={**options, "uvloop": True, "variables": QUIET})


def tuned(system: System, count: int, quick: int, *at_once: int) -> Subject:
    """On uvloop with so many runs at once; of several numbers the best median counts."""
    options = {f"{number} at once, {UVLOOP}": {"concurrency": number} for number in at_once}
    return Subject(system, count, quick, tuple(options), way_options=options)
