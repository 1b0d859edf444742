"""The suite of the embedded store: holdfast beside DBOS and a bare group commit, on SQLite."""

from __future__ import annotations

from benchmarks import settings
from benchmarks.catalogue import Benchmark, Extra, Goal, Subject, Suite, System
from benchmarks.settings import ASYNCIO, AT_ONCE, DEFAULTS, tuned

HOLDFAST = settings.default("holdfast")
TUNED = settings.on_uvloop("holdfast")
DBOS = System("DBOS as shipped", "dbos", "postgres")
DBOS_WAL = System("DBOS, file set to WAL", "dbos", "postgres", options={"wal": True})
BOUND = System(
    "group-commit bound", "bound", "postgres", our_ways=("sqlite3",), options={"uvloop": True}
)


def _dbos(count: int, quick: int, *ways: str) -> tuple[Subject, Subject]:
    return Subject(DBOS, count, quick, ways), Subject(DBOS_WAL, count, quick, ways)


_LIBRARIES = ("sqlite3", "apsw")

BENCHMARKS = (
    Benchmark(
        "noop_runs",
        "runs/s",
        (
            Subject(HOLDFAST, 10_000, 4_000, (DEFAULTS,)),
            tuned(TUNED, 10_000, 4_000, 256),
            *_dbos(300, 200, "queue", "thread", "threads", "async"),
            Subject(BOUND, 40_000, 20_000, _LIBRARIES, row="bound_noop"),
        ),
        seconds=140,
    ),
    Benchmark(
        "five_step_runs",
        "runs/s",
        (
            Subject(HOLDFAST, 6_000, 2_500, (DEFAULTS,)),
            tuned(TUNED, 6_000, 2_500, 256),
            *_dbos(120, 60, "thread", "threads", "async"),
            Subject(BOUND, 20_000, 10_000, _LIBRARIES, row="bound_five_step"),
        ),
        seconds=140,
    ),
    Benchmark(
        "five_step_p50",
        "ms",
        (
            Subject(HOLDFAST, 300, 150, (DEFAULTS,)),
            tuned(TUNED, 300, 150, AT_ONCE),
            *_dbos(60, 30, "thread", "async"),
            Subject(BOUND, 500, 200, _LIBRARIES, row="bound_five_step_p50"),
        ),
        higher_is_better=False,
        flight=1,
        seconds=120,
    ),
    Benchmark(
        "map_items",
        "items/s",
        (Subject(HOLDFAST, 50_000, 20_000, (f"256 items at once, {ASYNCIO}",)),),
        seconds=30,
    ),
    Benchmark(
        "submit",
        "runs/s",
        (Subject(HOLDFAST, 20_000, 10_000, (ASYNCIO,)), *_dbos(400, 150, "queue")),
        seconds=30,
    ),
    Benchmark(
        "pickup_p50",
        "ms",
        (Subject(HOLDFAST, 100, 40, (DEFAULTS,)), *_dbos(50, 25, "queue")),
        higher_is_better=False,
        flight=1,
    ),
    Benchmark(
        "pickup_between_p50",
        "ms",
        (Subject(HOLDFAST, 100, 40, (DEFAULTS,)),),
        higher_is_better=False,
        flight=1,
        seconds=40,
    ),
    Benchmark(
        "history_growth",
        "× the time on an empty store",
        (Subject(HOLDFAST, 100_000, 20_000, (DEFAULTS,)),),
        higher_is_better=False,
        seconds=75,
        extra=(
            Extra("empty", "history_empty", "runs/s", True),
            Extra("full", "history_full", "runs/s", True),
        ),
    ),
    Benchmark(
        "worker_start",
        "s",
        (Subject(HOLDFAST, 1, 1, (DEFAULTS,)),),
        higher_is_better=False,
        seconds=20,
        extra=(Extra("rss", "worker_rss", "MB"),),
    ),
)

GOALS = (
    Goal("no-op runs: at least 20 × DBOS", "noop_runs", ("noop_runs", DBOS.name), 20),
    Goal("five-step runs: at least 30 × DBOS", "five_step_runs", ("five_step_runs", DBOS.name), 30),
    Goal("map: at least 20,000 items/s", "map_items", 20_000, 1),
    Goal(
        "history of 100,000 runs (--quick: 20,000): at most 1.5 × the time",
        "history_growth",
        1.5,
        1,
        False,
    ),
)

SUITE = Suite(
    "sqlite",
    BENCHMARKS,
    GOALS,
    rounds=5,
    bounds={
        "bound_noop": "noop_runs",
        "bound_five_step": "five_step_runs",
        "bound_five_step_p50": "five_step_p50",
    },
    harder={DBOS.name: DBOS_WAL.name},
)
