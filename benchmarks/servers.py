"""The suite of the servers: holdfast beside its peers on one Redis and one PostgreSQL.

Sizes are for about three seconds per phase, with --quick one; whole batches of those that submit in
bulk."""

from __future__ import annotations

from typing import Any

from benchmarks import settings
from benchmarks.catalogue import Benchmark, Extra, Goal, Subject, Suite, System
from benchmarks.peers import NODE
from benchmarks.settings import ASYNCIO, AT_ONCE, DEFAULTS, UVLOOP, WORKER_DEFAULTS, tuned


def _postgres(name: str, module: str, pending: str) -> System:
    return System(name, module, "postgres", options={"pending": pending, "prepares": True})


_OURS = {"module": "holdfast_servers", "pending": "holdfast", "prepares": True}
HOLDFAST = settings.default(**_OURS)
TUNED = settings.on_uvloop(**_OURS)
LOGGING = settings.logging(**_OURS)
GROWTH = settings.default("growth")
BOUND = System("group-commit bound", "bound_redis")

DRAMATIQ = System("Dramatiq", "dramatiq", "redis")
TASKIQ = System("taskiq", "taskiq", "redis")
SAQ = System("SAQ", "saq", "redis")
ARQ = System("arq", "arq", "arq")
CELERY = System("Celery", "celery", "redis")
BULLMQ = System("BullMQ (Node)", "bullmq.js", NODE)

PGQUEUER = _postgres("pgqueuer", "pgqueuer", "SELECT count(*) FROM pgqueuer")
PROCRASTINATE = _postgres(
    "procrastinate",
    "procrastinate",
    "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
)
ABSURD = _postgres(
    "absurd",
    "absurd",
    "SELECT count(*) FROM absurd.t_default WHERE state NOT IN ('completed', 'failed', 'cancelled')",
)
DBOS = _postgres(
    "DBOS",
    "dbos_postgres",
    "SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')",
)

REDIS_LOCK = System("redis-py Lock", "redis_lock", "redis")
AIOREDLOCK = System("aioredlock", "aioredlock", "aioredlock", options={"uvloop": False})
REDLOCK = System("redlock (Node)", "redlock.js", NODE)

STREAM_OR_LIST = ("stream", "list")
THREAD_OR_ASYNC = ("thread", "async")
DIRECT = ("direct calls, threads", "direct calls, async")
"""DBOS without its queue, which is the faster way to execute steps."""
NOOP_OURS = (
    Subject(HOLDFAST, 30_000, 10_000, (WORKER_DEFAULTS,)),
    Subject(LOGGING, 30_000, 10_000, (f"{WORKER_DEFAULTS}, log level INFO",)),
    tuned(TUNED, 30_000, 10_000, 256, 1024),
)
FIVE_OURS = (Subject(HOLDFAST, 8_000, 3_000, (WORKER_DEFAULTS,)), tuned(TUNED, 8_000, 3_000, 256))
P50_OURS = (Subject(HOLDFAST, 300, 100, (DEFAULTS,)), tuned(TUNED, 300, 100, AT_ONCE))

NOOP_REDIS = (
    *NOOP_OURS,
    Subject(DRAMATIQ, 6_000, 2_000, ("1 thread", "4 threads")),
    Subject(TASKIQ, 4_000, 1_500, STREAM_OR_LIST),
    Subject(SAQ, 3_000, 1_000),
    Subject(ARQ, 1_500, 500),
    Subject(CELERY, 1_500, 500),
    Subject(BULLMQ, 25_000, 9_000),
)
NOOP_POSTGRES = (
    *NOOP_OURS,
    Subject(PGQUEUER, 40_000, 15_000),
    Subject(PROCRASTINATE, 1_500, 500),
    Subject(ABSURD, 4_000, 1_500),
    Subject(DBOS, 1_200, 400),
)
FIVE_REDIS = (
    *FIVE_OURS,
    Subject(
        BOUND,
        30_000,
        10_000,
        row="bound_five_step_redis",
        options={"kind": "ask", "verb": "five_runs"},
    ),
)
FIVE_POSTGRES = (
    *FIVE_OURS,
    Subject(ABSURD, 600, 200),
    Subject(
        DBOS,
        240,
        80,
        ("queue, threads", "queue, async", *DIRECT),
        way_options={way: {"kind": "ask", "verb": "five_runs"} for way in DIRECT},
    ),
)
P50_REDIS = (*P50_OURS, Subject(BOUND, 500, 200, row="bound_five_step_p50_redis"))
P50_POSTGRES = (
    *P50_OURS,
    Subject(ABSURD, 200, 60),
    Subject(DBOS, 100, 40, THREAD_OR_ASYNC),
)
LOCK_1_OURS = (Subject(HOLDFAST, 2_000, 600, (ASYNCIO,)),)
LOCK_1 = (
    *LOCK_1_OURS,
    *(Subject(system, 2_000, 600) for system in (REDIS_LOCK, AIOREDLOCK, REDLOCK)),
)
LOCK_64_OURS = (
    Subject(HOLDFAST, 50_000, 20_000, (ASYNCIO,)),
    Subject(TUNED, 50_000, 20_000, (UVLOOP,)),
)
LOCK_64 = (
    *LOCK_64_OURS,
    Subject(REDIS_LOCK, 12_000, 4_000),
    Subject(AIOREDLOCK, 12_000, 4_000),
    Subject(REDLOCK, 40_000, 15_000),
)


def _subjects_for(
    subjects: tuple[Subject, ...], count: int, quick: int, ours: str = WORKER_DEFAULTS
) -> tuple[Subject, ...]:
    """The same systems, each with as much to do as the others, holdfast with its defaults."""
    ways = {HOLDFAST: (ours,), TASKIQ: STREAM_OR_LIST}
    return tuple(
        Subject(subject.system, count, quick, ways.get(subject.system, ("",)))
        for subject in subjects
        if subject.system not in (TUNED, LOGGING)
    )


def _drain(
    name: str, store: str, subjects: tuple[Subject, ...], seconds: float, **options: Any
) -> Benchmark:
    """Submitted first, then executed by worker processes."""
    extra = (
        (Extra("submit", f"submit_{store}", "runs/s", higher_is_better=True),)
        if name == "noop"
        else ()
    )
    options = {"kind": "drain", **options}
    return Benchmark(
        f"{name}_{store}",
        "runs/s",
        subjects,
        seconds=seconds,
        extra=extra,
        store=store,
        options=options,
    )


def _measured_by_system(
    name: str, unit: str, verb: str, subjects: tuple[Subject, ...], store: str, **more: Any
) -> Benchmark:
    """Measured by the system itself, in one process."""
    return Benchmark(
        f"{name}_{store}",
        unit,
        subjects,
        store=store,
        options={"kind": "ask", "verb": verb},
        **more,
    )


def _latency(store: str, subjects: tuple[Subject, ...]) -> Benchmark:
    more = {"higher_is_better": False, "flight": 1, "seconds": 45}
    return _measured_by_system("five_step_p50", "ms", "five_p50", subjects, store, **more)


def _pickup(store: str, subjects: tuple[Subject, ...]) -> Benchmark:
    """Worker and submitter are two processes."""
    return Benchmark(
        f"pickup_p50_{store}",
        "ms",
        _subjects_for(subjects, 80, 30),
        higher_is_better=False,
        seconds=170,
        extra=(Extra("p99", f"pickup_p99_{store}", "ms"),),
        store=store,
        options={"kind": "pickup"},
    )


def _start(store: str, subjects: tuple[Subject, ...]) -> Benchmark:
    return Benchmark(
        f"worker_start_{store}",
        "s",
        _subjects_for(subjects, 1, 1),
        higher_is_better=False,
        seconds=40,
        extra=(Extra("rss", f"worker_rss_{store}", "MB"),),
        store=store,
        options={"kind": "start"},
    )


def _growth(store: str, name: str, count: int, quick: int) -> Benchmark:
    return _measured_by_system(
        name,
        "× the time with 1/100 of it",
        name,
        (Subject(GROWTH, count, quick, (ASYNCIO,)),),
        store,
        higher_is_better=False,
        seconds=45,
        extra=(Extra("x10", f"{name}_x10_{store}", "× the time with 1/10 of it"),),
    )


def _on(
    store: str, noop: tuple[Subject, ...], five: tuple[Subject, ...], p50: tuple[Subject, ...]
) -> list[Benchmark]:
    """What is measured on both servers."""
    ours = (Subject(HOLDFAST, 30_000, 10_000, (f"256 items at once, {ASYNCIO}",)),)
    singles = _subjects_for(noop, 2_000, 400, ours=ASYNCIO)
    two_workers = tuple(subject for subject in noop if subject.system is not LOGGING)
    return [
        _drain("noop", store, noop, seconds=240),
        _drain("noop_2", store, two_workers, seconds=140, workers=2),
        _drain("five_step", store, five, seconds=150, submit="submit_five"),
        _latency(store, p50),
        _measured_by_system("map_items", "items/s", "map_items", ours, store, seconds=20),
        _measured_by_system("submit_single", "runs/s", "single", singles, store, seconds=110),
        _pickup(store, noop),
        _start(store, noop),
        _growth(store, "history", 100_000, 10_000),
        _growth(store, "backlog", 100_000, 20_000),
    ]


def _locks(store: str, flight: int, subjects: tuple[Subject, ...]) -> Benchmark:
    return _measured_by_system(
        f"lock_{flight}", "pairs/s", "locks", subjects, store, flight=flight, seconds=60
    )


BENCHMARKS = (
    *_on("redis", NOOP_REDIS, FIVE_REDIS, P50_REDIS),
    _locks("redis", 1, LOCK_1),
    _locks("redis", 64, LOCK_64),
    *_on("postgres", NOOP_POSTGRES, FIVE_POSTGRES, P50_POSTGRES),
    _locks("postgres", 1, LOCK_1_OURS),
    _locks("postgres", 64, LOCK_64_OURS),
)


def _ahead(name: str, benchmark: str, system: System, factor: float) -> Goal:
    return Goal(
        f"{name}: at least {factor:g} × {system.name}", benchmark, (benchmark, system.name), factor
    )


def _history(store: str, title: str) -> Goal:
    text = f"history 100 times as long on {title}: at most 1.5 × the time"
    return Goal(text, f"history_{store}", 1.5, 1, higher_is_better=False)


GOALS = (
    _ahead("no-op runs on Redis", "noop_redis", BULLMQ, 1.2),
    _ahead("no-op runs on Redis", "noop_redis", DRAMATIQ, 2),
    _ahead("no-op runs on PostgreSQL", "noop_postgres", PGQUEUER, 0.8),
    _ahead("no-op runs on PostgreSQL", "noop_postgres", ABSURD, 5),
    _ahead("no-op runs on PostgreSQL", "noop_postgres", DBOS, 20),
    _ahead("five-step runs on PostgreSQL", "five_step_postgres", ABSURD, 8),
    _ahead("five-step runs on PostgreSQL", "five_step_postgres", DBOS, 30),
    Goal(
        f"pick-up on Redis, p50: at most 1.3 × {TASKIQ.name}",
        "pickup_p50_redis",
        ("pickup_p50_redis", TASKIQ.name),
        1.3,
        higher_is_better=False,
    ),
    _history("redis", "Redis"),
    _history("postgres", "PostgreSQL"),
)
"""Judged by the rows with default settings. What else is measured has no goal."""

SUITE = Suite(
    "servers",
    BENCHMARKS,
    GOALS,
    rounds=7,
    bounds={
        "bound_five_step_redis": "five_step_redis",
        "bound_five_step_p50_redis": "five_step_p50_redis",
    },
    driver="benchmarks.drive",
)
