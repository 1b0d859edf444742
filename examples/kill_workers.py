"""Thousands of runs on one store while workers and server are killed at random, and then the proof.

    python examples/kill_workers.py --runs 2000
    python examples/kill_workers.py --runs 5000 --workers 4 --server postgres
    python examples/kill_workers.py --runs 2000 --store redis://localhost:6379/9

`holdfast worker` processes share a SQLite file, a private server that is started for them, or the
store that is named. Every 0.3 to 1.5 s one of them is killed with SIGKILL and replaced, or stopped
with SIGSTOP for longer than its lease and then continued: it then still trusts a lease that has
ended. A private server is durable, and every 3 to 8 s all of its processes get a SIGKILL, too. Runs
are submitted all the while, again when it is unknown whether they arrived; among them some that do
what no store can hold (texts that are none, numbers without end), which must fail for that reason
and harm no other. The exit code is 0 only if every promise was kept."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kill_workers_check import PROMISES, Figures, check, check_hostile, read_traces
from kill_workers_fleet import Fleet
from kill_workers_pipeline import HOSTILE_ACTIONS, TRACES, hostile, soak
from kill_workers_server import Server, ServerKiller, pairs

from holdfast import Holdfast, Pipeline, Transient
from holdfast.ports.store import RunFilter

LOOK = 0.1
SLICE = 50
"""Runs that are submitted at once, and again after every interval."""


async def execute(
    folder: Path, options: argparse.Namespace, server: Server | None
) -> tuple[dict[str, Any], list[str]]:
    """The figures, and every promise that was broken."""
    async with Holdfast(options.store, pipelines=[soak, hostile], worker=False) as app:
        fleet = Fleet(folder, options)
        server_killer = ServerKiller(server, options, lambda: fleet.is_at_work) if server else None
        try:
            took = await run_under_failures(app, fleet, options)
        finally:
            if server_killer:
                await asyncio.to_thread(server_killer.stop)
            await asyncio.to_thread(fleet.drain)
        if server_killer and server_killer.problems:
            return {}, server_killer.problems
        figures, problems = await check(
            app.store, read_traces(folder / TRACES), options.runs, options.steps
        )
        retried, harm = await check_hostile(
            app.store, options.runs, options.hostile, bool(server_killer)
        )
        problems += harm
    happened = summary(options, fleet, figures, took) | {
        "hostile runs among them": options.hostile,
        "valid runs that were retried": retried,
    }
    happened |= {"server killed": server_killer.kills} if server_killer else {}
    return happened, fleet.problems + problems


async def run_under_failures(app: Holdfast, fleet: Fleet, options: argparse.Namespace) -> float:
    """Interrupt workers until all runs are over. The seconds it took."""
    began, limit = time.monotonic(), options.seconds_limit
    submitting = asyncio.create_task(submit(app, options.runs, options.hostile))
    try:
        while (over := await ended(app)) != options.runs + options.hostile:
            if time.monotonic() - began > limit:
                fleet.problems.append(f"L1: {over} of {options.runs} runs over after {limit:g} s")
                break
            fleet.step()
            await asyncio.sleep(LOOK)
        return time.monotonic() - began
    except BaseException:
        fleet.kill_all()
        raise
    finally:
        submitting.cancel()
        await asyncio.wait([submitting])


async def ended(app: Holdfast) -> int:
    """How many runs have ended; -1 while the store does not answer."""
    try:
        counts = await app.store.count(RunFilter())
    except Transient:  # the server may be down
        return -1
    return sum(counts.get(state, 0) for state in ("succeeded", "failed", "cancelled"))


async def submit(app: Holdfast, runs: int, hostile_runs: int) -> None:
    """Hostile runs are spread evenly among the others."""
    kinds = list(HOSTILE_ACTIONS)
    work: list[tuple[Pipeline[Any], Any, str]] = [
        (soak, number, f"soak-{number}") for number in range(runs)
    ]
    for number in range(hostile_runs):
        act = (hostile, kinds[number % len(kinds)], f"hostile-{number}")
        work.insert(number * len(work) // hostile_runs, act)
    for first in range(0, len(work), SLICE):
        await asyncio.gather(*(submit_one(app, *run) for run in work[first : first + SLICE]))
        await asyncio.sleep(LOOK)


async def submit_one(app: Holdfast, pipeline: Pipeline[Any], value: Any, key: str) -> None:
    """The key makes it one run, however often it has to be submitted."""
    while True:
        try:
            await app.submit(pipeline, value, key=key)
        except Transient:
            await asyncio.sleep(LOOK)
        else:
            return


def summary(
    options: argparse.Namespace, fleet: Fleet, figures: Figures, took: float
) -> dict[str, Any]:
    return {
        "runs": options.runs,
        "steps each": options.steps,
        "workers": options.workers,
        "seconds": round(took, 1),
        "runs per second": round(options.runs / took, 1),
        "workers killed": fleet.kills,
        "workers paused past their lease": fleet.pauses,
        "workers started while the server was away": fleet.ended_without_server,
        "runs taken over": figures.takeovers,
        "leases given up by workers that woke too late": fleet.leases_given_up(),
        "events in the histories": figures.events,
        "step executions": figures.executions,
        "of them repeated (cut off, nothing stored yet)": figures.repeated,
    }


# --- the command ----------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument(
        "--hostile", type=int, default=None, help="runs that do what no store can hold; 1 in 10"
    )
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=16, help="runs in flight per worker")
    parser.add_argument(
        "--step-seconds", type=float, default=0.05, help="how long a step takes, on average"
    )
    parser.add_argument(
        "--every",
        type=float,
        nargs=2,
        default=(0.3, 1.5),
        help="seconds between two interruptions of workers",
    )
    parser.add_argument(
        "--strikes", type=int, default=None, help="stop interrupting workers after so many times"
    )
    parser.add_argument("--seconds-limit", type=float, default=300)
    parser.add_argument(
        "--seed",
        type=int,
        default=None,
        help="of the interruptions; which work they hit depends on timing",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--store", help="a URL of an empty store (default: a new SQLite file)")
    where.add_argument(
        "--server", choices=["postgres", "redis"], help="start a private server, and kill it, too"
    )
    parser.add_argument(
        "--server-every", type=float, nargs=2, default=(3.0, 8.0), help="seconds between two kills"
    )
    parser.add_argument(
        "--server-strikes",
        type=int,
        default=None,
        help="stop killing the server after so many times",
    )
    parser.add_argument(
        "--server-setting",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="replaces one of the durable settings",
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser.parse_args()


def report(figures: dict[str, Any], problems: Iterable[str], as_json: bool) -> None:
    problems = list(problems)
    if as_json:
        print(json.dumps({**figures, "problems": problems}))
        return
    for name, value in figures.items():
        print(f"{value:>10,}  {name}")
    for name, promise in PROMISES.items():
        broken = [problem for problem in problems if problem.startswith(name)]
        print(f"{'✘' if broken else '✔':>10}  {name}: {promise}")
    print(f"{len(problems):>10}  promises broken")
    for problem in problems[:20]:
        print(f"            ✘ {problem}")


def main() -> int:
    options = arguments()
    options.seed = random.randrange(10**6) if options.seed is None else options.seed
    options.hostile = options.runs // 10 if options.hostile is None else options.hostile
    os.environ["SOAK_STEPS"] = str(options.steps)
    logging.getLogger("holdfast").setLevel(logging.ERROR)  # outages of the server are expected here
    folder = Path(tempfile.mkdtemp(prefix="holdfast-soak-"))
    with ExitStack() as stack:
        server = (
            stack.enter_context(Server(options.server, pairs(options.server_setting)))
            if options.server
            else None
        )
        options.store = server.url if server else options.store or f"sqlite:///{folder}/holdfast.db"
        print(
            f"seed {options.seed}, in {folder}{f', on {server.description}' if server else ''}",
            file=sys.stderr,
        )
        figures, problems = asyncio.run(execute(folder, options, server))
    report(figures, problems, options.json)
    if problems:
        print(f"the logs of the workers are in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
