"""The suite of the servers: holdfast beside its peers on one Redis and one PostgreSQL.

Sizes are for about three seconds per phase, with --quick one; whole batches of those that submit in bulk.
"""

from __future__ import annotations

from typing import Any

from benchmarks.catalogue import ANY_PEER, Benchmark, Extra, Goal, Subject, Suite, System
from benchmarks.peers import NODE


def _postgres(name: str, module: str, pending: str) -> System:
    return System(name, module, "postgres", options={"pending": pending, "prepares": True})


HOLDFAST = System("holdfast", "holdfast_servers", options={"pending": "holdfast", "prepares": True})
GROWTH = System("holdfast", "growth")
BOUND = System("group-commit bound", "bound_redis")

DRAMATIQ = System("Dramatiq", "dramatiq", "redis")
TASKIQ = System("taskiq", "taskiq", "redis")
SAQ = System("SAQ", "saq", "redis")
ARQ = System("arq", "arq", "arq")
CELERY = System("Celery", "celery", "redis")
BULLMQ = System("BullMQ (Node)", "bullmq.js", NODE)

PGQUEUER = _postgres("pgqueuer", "pgqueuer", "SELECT count(*) FROM pgqueuer")
PROCRASTINATE = _postgres(
    "procrastinate", "procrastinate", "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
)
ABSURD = _postgres(
    "absurd", "absurd", "SELECT count(*) FROM absurd.t_default WHERE state NOT IN ('completed', 'failed', 'cancelled')"
)
DBOS = _postgres(
    "DBOS", "dbos_postgres", "SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')"
)

REDIS_LOCK = System("redis-py Lock", "redis_lock", "redis")
AIOREDLOCK = System("aioredlock", "aioredlock", "aioredlock")
REDLOCK = System("redlock (Node)", "redlock.js", NODE)

STREAM_OR_LIST = ("stream", "list")
THREAD_OR_ASYNC = ("thread", "async")
SOME_OR_MANY = ("256 at once", "1024 at once")

NOOP_REDIS = (
    Subject(HOLDFAST, 30_000, 10_000, SOME_OR_MANY),
    Subject(DRAMATIQ, 6_000, 2_000, ("1 thread", "4 threads")),
    Subject(TASKIQ, 4_000, 1_500, STREAM_OR_LIST),
    Subject(SAQ, 3_000, 1_000),
    Subject(ARQ, 1_500, 500),
    Subject(CELERY, 1_500, 500),
    Subject(BULLMQ, 25_000, 9_000),
)
NOOP_POSTGRES = (
    Subject(HOLDFAST, 30_000, 10_000, SOME_OR_MANY),
    Subject(PGQUEUER, 40_000, 15_000),
    Subject(PROCRASTINATE, 1_500, 500),
    Subject(ABSURD, 4_000, 1_500),
    Subject(DBOS, 1_200, 400),
)
FIVE_REDIS = (
    Subject(HOLDFAST, 8_000, 3_000),
    Subject(BOUND, 30_000, 10_000, row="bound_five_step_redis", options={"kind": "ask", "verb": "five_runs"}),
)
FIVE_POSTGRES = (
    Subject(HOLDFAST, 8_000, 3_000),
    Subject(ABSURD, 600, 200),
    Subject(DBOS, 240, 80, THREAD_OR_ASYNC),
)
P50_REDIS = (Subject(HOLDFAST, 300, 100), Subject(BOUND, 500, 200, row="bound_five_step_p50_redis"))
P50_POSTGRES = (Subject(HOLDFAST, 300, 100), Subject(ABSURD, 200, 60), Subject(DBOS, 100, 40, THREAD_OR_ASYNC))
LOCK_1 = tuple(Subject(system, 2_000, 600) for system in (HOLDFAST, REDIS_LOCK, AIOREDLOCK, REDLOCK))
LOCK_64 = (
    Subject(HOLDFAST, 50_000, 20_000),
    Subject(REDIS_LOCK, 12_000, 4_000),
    Subject(AIOREDLOCK, 12_000, 4_000),
    Subject(REDLOCK, 40_000, 15_000),
)


def _same(subjects: tuple[Subject, ...], count: int, quick: int) -> tuple[Subject, ...]:
    """The same systems, each with as much to do as the others."""
    return tuple(
        Subject(one.system, count, quick, STREAM_OR_LIST if one.system is TASKIQ else ("",)) for one in subjects
    )


def _drain(name: str, store: str, subjects: tuple[Subject, ...], seconds: float, **options: Any) -> Benchmark:
    """Submitted first, then executed by worker processes."""
    extra = (Extra("submit", f"submit_{store}", "runs/s", higher_is_better=True),) if name == "noop" else ()
    options = {"kind": "drain", **options}
    return Benchmark(f"{name}_{store}", "runs/s", subjects, seconds=seconds, extra=extra, store=store, options=options)


def _asked(name: str, unit: str, verb: str, subjects: tuple[Subject, ...], store: str, **more: Any) -> Benchmark:
    """Measured by the system itself, in one process."""
    return Benchmark(f"{name}_{store}", unit, subjects, store=store, options={"kind": "ask", "verb": verb}, **more)


def _latency(store: str, subjects: tuple[Subject, ...]) -> Benchmark:
    more = {"higher_is_better": False, "flight": 1, "seconds": 45}
    return _asked("five_step_p50", "ms", "five_p50", subjects, store, **more)


def _pickup(store: str, subjects: tuple[Subject, ...]) -> Benchmark:
    """Worker and submitter are two processes."""
    return Benchmark(
        f"pickup_p50_{store}",
        "ms",
        _same(subjects, 80, 30),
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
        tuple(Subject(one.system, 1, 1) for one in subjects),
        higher_is_better=False,
        seconds=40,
        extra=(Extra("rss", f"worker_rss_{store}", "MB"),),
        store=store,
        options={"kind": "start"},
    )


def _growth(store: str, name: str, count: int, quick: int) -> Benchmark:
    return _asked(
        name,
        "× the time with 1/100 of it",
        name,
        (Subject(GROWTH, count, quick),),
        store,
        higher_is_better=False,
        seconds=45,
        extra=(Extra("x10", f"{name}_x10_{store}", "× the time with 1/10 of it"),),
    )


def _on(store: str, noop: tuple[Subject, ...], five: tuple[Subject, ...], p50: tuple[Subject, ...]) -> list[Benchmark]:
    """What is measured on both servers."""
    ours = (Subject(HOLDFAST, 30_000, 10_000),)
    return [
        _drain("noop", store, noop, seconds=210),
        _drain("noop_2", store, noop, seconds=140, workers=2),
        _drain("five_step", store, five, seconds=110, submit="submit_five"),
        _latency(store, p50),
        _asked("map_items", "items/s", "map_items", ours, store, seconds=20),
        _asked("submit_single", "runs/s", "single", _same(noop, 2_000, 400), store, seconds=110),
        _pickup(store, noop),
        _start(store, noop),
        _growth(store, "history", 100_000, 10_000),
        _growth(store, "backlog", 100_000, 20_000),
    ]


def _locks(store: str, flight: int, subjects: tuple[Subject, ...]) -> Benchmark:
    return _asked(f"lock_{flight}", "pairs/s", "locks", subjects, store, flight=flight, seconds=60)


BENCHMARKS = (
    *_on("redis", NOOP_REDIS, FIVE_REDIS, P50_REDIS),
    _locks("redis", 1, LOCK_1),
    _locks("redis", 64, LOCK_64),
    *_on("postgres", NOOP_POSTGRES, FIVE_POSTGRES, P50_POSTGRES),
    _locks("postgres", 1, LOCK_1[:1]),
    _locks("postgres", 64, LOCK_64[:1]),
)

TITLES = {"redis": "Redis", "postgres": "PostgreSQL"}


def _ahead(what: str, benchmark: str, system: System, factor: float) -> Goal:
    return Goal(f"{what}: at least {factor:g} × {system.name}", benchmark, (benchmark, system.name), factor)


def _below(what: str, benchmark: str, system: System, share: float, words: str) -> Goal:
    return Goal(f"{what}: at most {words} {system.name}", benchmark, (benchmark, system.name), share, False)


def _both(store: str, title: str) -> list[Goal]:
    """What is asked for on both servers."""
    return [
        Goal(
            f"two worker processes on {title}: at least 1.6 × one",
            f"noop_2_{store}",
            (f"noop_{store}", HOLDFAST.name),
            1.6,
            or_saturated=True,
        ),
        Goal(
            f"submit, batched, on {title}: at least every peer's", f"submit_{store}", (f"submit_{store}", ANY_PEER), 1
        ),
        Goal(
            f"submit, single, on {title}: at least every peer's",
            f"submit_single_{store}",
            (f"submit_single_{store}", ANY_PEER),
            1,
        ),
        Goal(f"history 100 times as long on {title}: at most 1.5 × the time", f"history_{store}", 1.5, 1, False),
    ]


GOALS = (
    _ahead("no-op runs on Redis", "noop_redis", DRAMATIQ, 4),
    _ahead("no-op runs on Redis", "noop_redis", BULLMQ, 1),
    _ahead("no-op runs on PostgreSQL", "noop_postgres", PGQUEUER, 1),
    _ahead("no-op runs on PostgreSQL", "noop_postgres", ABSURD, 8),
    _ahead("no-op runs on PostgreSQL", "noop_postgres", DBOS, 25),
    _ahead("five-step runs on PostgreSQL", "five_step_postgres", ABSURD, 10),
    _ahead("five-step runs on PostgreSQL", "five_step_postgres", DBOS, 50),
    Goal(
        "five-step runs on Redis: at least 0.25 × the bare bound",
        "five_step_redis",
        ("bound_five_step_redis", BOUND.name),
        0.25,
    ),
    _below("single five-step run on PostgreSQL, p50", "five_step_p50_postgres", DBOS, 1 / 5, "1/5 of"),
    _below("single five-step run on PostgreSQL, p50", "five_step_p50_postgres", ABSURD, 1 / 2, "1/2 of"),
    _below("pick-up on Redis, p50", "pickup_p50_redis", TASKIQ, 1, "that of"),
    _below("pick-up on PostgreSQL, p50", "pickup_p50_postgres", PGQUEUER, 1, "that of"),
    _ahead("lock, 64 tasks", "lock_64_redis", AIOREDLOCK, 7),
    _ahead("lock, 64 tasks", "lock_64_redis", REDLOCK, 1),
    *(goal for store, title in TITLES.items() for goal in _both(store, title)),
)

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
