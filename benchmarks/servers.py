"""The suite of the servers: holdfast beside its peers on one Redis and one PostgreSQL.

Sizes are for about three seconds per phase, with --quick one.
"""

from __future__ import annotations

from typing import Any

from benchmarks.catalogue import ANY_PEER, Benchmark, Extra, Goal, Subject, Suite, System
from benchmarks.peers import NODE


def _postgres(name: str, module: str, pending: str) -> System:
    return System(name, module, "postgres", options={"pending": pending, "prepares": True})


HOLDFAST = System("holdfast", "holdfast_servers", options={"pending": "holdfast", "prepares": True})
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
    "absurd", "absurd", "SELECT count(*) FROM absurd.t_default WHERE state NOT IN ('completed', 'failed', 'cancelled')"
)
DBOS = _postgres(
    "DBOS", "dbos_postgres", "SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')"
)

REDIS_LOCK = System("redis-py Lock", "redis_lock", "redis")
AIOREDLOCK = System("aioredlock", "aioredlock", "aioredlock")
REDLOCK = System("redlock (Node)", "redlock.js", NODE)

_TASKIQ_WAYS = ("stream", "list")


def _on_redis(seconds: float = 3.0, quick: float = 1.0) -> tuple[Subject, ...]:
    """As many jobs as each does in so many seconds."""
    speeds = {DRAMATIQ: 2_000, TASKIQ: 1_500, SAQ: 1_000, ARQ: 500, CELERY: 500, BULLMQ: 9_000}
    return _subjects({HOLDFAST: 9_000, **speeds}, seconds, quick)


def _on_postgres(seconds: float = 3.0, quick: float = 1.0) -> tuple[Subject, ...]:
    return _subjects({HOLDFAST: 9_000, PGQUEUER: 14_000, PROCRASTINATE: 500, ABSURD: 1_300, DBOS: 400}, seconds, quick)


def _subjects(speeds: dict[System, int], seconds: float, quick: float) -> tuple[Subject, ...]:
    return tuple(
        Subject(system, _rounded(speed * seconds), _rounded(speed * quick), _ways(system))
        for system, speed in speeds.items()
    )


def _rounded(count: float) -> int:
    """Whole batches of those that submit in bulk."""
    return max(1_000, round(count / 1_000) * 1_000) if count >= 1_000 else max(100, round(count / 500) * 500)


def _ways(system: System) -> tuple[str, ...]:
    return _TASKIQ_WAYS if system is TASKIQ else ("",)


def _noop(store: str, subjects: tuple[Subject, ...], seconds: float) -> tuple[Benchmark, ...]:
    submit = Extra("submit", f"submit_{store}", "runs/s", higher_is_better=True)
    return (
        Benchmark(
            f"noop_{store}",
            "runs/s",
            subjects,
            seconds=seconds,
            store=store,
            options={"kind": "drain"},
            extra=(submit,),
        ),
        Benchmark(
            f"noop_2_{store}",
            "runs/s",
            subjects,
            seconds=seconds * 2 / 3,
            store=store,
            options={"kind": "drain", "workers": 2},
        ),
    )


def _asked(name: str, unit: str, verb: str, subjects: tuple[Subject, ...], store: str, **more: Any) -> Benchmark:
    """Measured by the system itself, in one process."""
    return Benchmark(f"{name}_{store}", unit, subjects, store=store, options={"kind": "ask", "verb": verb}, **more)


def _single(store: str, *systems: System) -> Benchmark:
    subjects = tuple(Subject(system, 1_500, 500, _ways(system)) for system in systems)
    return _asked("submit_single", "runs/s", "single", subjects, store, seconds=60)


def _pickup(store: str, *systems: System) -> Benchmark:
    """Worker and submitter are two processes."""
    return Benchmark(
        f"pickup_p50_{store}",
        "ms",
        tuple(Subject(system, 100, 30, _ways(system)) for system in systems),
        higher_is_better=False,
        seconds=150,
        extra=(Extra("p99", f"pickup_p99_{store}", "ms"),),
        store=store,
        options={"kind": "pickup"},
    )


def _start(store: str, *systems: System) -> Benchmark:
    return Benchmark(
        f"worker_start_{store}",
        "s",
        tuple(Subject(system, 1, 1) for system in systems),
        higher_is_better=False,
        seconds=50,
        extra=(Extra("rss", f"worker_rss_{store}", "MB"),),
        store=store,
        options={"kind": "start"},
    )


def _five(store: str, subjects: tuple[Subject, ...]) -> Benchmark:
    return Benchmark(
        f"five_step_{store}",
        "runs/s",
        subjects,
        seconds=90,
        store=store,
        options={"kind": "drain", "submit": "submit_five"},
    )


def _locks(store: str, flight: int, *subjects: Subject) -> Benchmark:
    return _asked(f"lock_{flight}", "pairs/s", "locks", subjects, store, flight=flight, seconds=30)


_ON_REDIS = (HOLDFAST, DRAMATIQ, TASKIQ, SAQ, ARQ, CELERY, BULLMQ)
_ON_POSTGRES = (HOLDFAST, PGQUEUER, PROCRASTINATE, ABSURD, DBOS)
_BOUND_OPTIONS = {"kind": "ask", "verb": "five_runs"}
_OURS_FIVE = Subject(HOLDFAST, 6_000, 2_000)
_OURS_P50 = Subject(HOLDFAST, 300, 100)

BENCHMARKS = (
    *_noop("redis", _on_redis(), seconds=240),
    *_noop("postgres", _on_postgres(), seconds=150),
    _five(
        "redis",
        (_OURS_FIVE, Subject(BOUND, 20_000, 8_000, row="bound_five_step_redis", options=_BOUND_OPTIONS)),
    ),
    _five("postgres", (_OURS_FIVE, Subject(ABSURD, 500, 200), Subject(DBOS, 200, 80, ("thread", "async")))),
    _asked(
        "five_step_p50",
        "ms",
        "five_p50",
        (_OURS_P50, Subject(BOUND, 500, 200, row="bound_five_step_p50_redis")),
        "redis",
        higher_is_better=False,
        flight=1,
        seconds=30,
    ),
    _asked(
        "five_step_p50",
        "ms",
        "five_p50",
        (_OURS_P50, Subject(ABSURD, 200, 60), Subject(DBOS, 100, 40, ("thread", "async"))),
        "postgres",
        higher_is_better=False,
        flight=1,
        seconds=60,
    ),
    *(
        _asked("map_items", "items/s", "map_items", (Subject(HOLDFAST, 30_000, 10_000),), store, seconds=30)
        for store in ("redis", "postgres")
    ),
    _single("redis", *_ON_REDIS),
    _single("postgres", *_ON_POSTGRES),
    _pickup("redis", *_ON_REDIS),
    _pickup("postgres", *_ON_POSTGRES),
    *(
        _locks(
            "redis",
            flight,
            *(
                Subject(system, count * factor, count * factor // 3)
                for system, count in ((HOLDFAST, 2_000), (REDIS_LOCK, 2_000), (AIOREDLOCK, 2_000), (REDLOCK, 2_000))
            ),
        )
        for flight, factor in ((1, 1), (64, 4))
    ),
    *(_locks("postgres", flight, Subject(HOLDFAST, 1_000 * factor, 300 * factor)) for flight, factor in ((1, 1), (64, 4))),
    _start("redis", *_ON_REDIS),
    _start("postgres", *_ON_POSTGRES),
)


def _ahead(what: str, ours: str, system: System, factor: float) -> Goal:
    return Goal(f"{what}: at least {factor:g} × {system.name}", ours, (ours, system.name), factor)


def _below(what: str, ours: str, system: System, share: float, words: str, store: str = "") -> Goal:
    return Goal(f"{what}: at most {words} {system.name}", ours, (store or ours, system.name), share, False)


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
    *(
        Goal(
            f"two worker processes on {title}: at least 1.6 × one",
            f"noop_2_{store}",
            (f"noop_{store}", HOLDFAST.name),
            1.6,
            or_saturated=True,
        )
        for store, title in (("redis", "Redis"), ("postgres", "PostgreSQL"))
    ),
    *(
        Goal(f"{text} on {title}: at least every peer's", f"{name}_{store}", (f"{name}_{store}", ANY_PEER), 1)
        for store, title in (("redis", "Redis"), ("postgres", "PostgreSQL"))
        for name, text in (("submit", "submit, batched"), ("submit_single", "submit, one at a time"))
    ),
)

SUITE = Suite(
    "servers",
    BENCHMARKS,
    GOALS,
    rounds=3,
    bounds={
        "bound_five_step_redis": "five_step_redis",
        "bound_five_step_p50_redis": "five_step_p50_redis",
    },
    driver="benchmarks.drive",
)
