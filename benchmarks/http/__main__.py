"""The HTTP API under load.

    python -m benchmarks.http                       # all three, on SQLite and PostgreSQL: 5 minutes
    python -m benchmarks.http --quick               # small
    python -m benchmarks.http --only watchers --watchers 5000

`submits`: accepted runs per second over so many connections, beside a bare FastAPI app that inserts
a row and one in front of procrastinate; every answer is durable. `reads`: the status of runs with
100,000 of them in the store. `watchers`: streams of events that are open at once, and how soon the
last of them hears of an end. Each server is one process, as is the client."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks import stores
from benchmarks.http.load import Connection, measure
from benchmarks.http.processes import served
from benchmarks.http.watchers import measure_watchers

BATCH = 500
SUBMITS = {
    "holdfast": "/v1/pipelines/noop/runs",
    "bare FastAPI": "/jobs",
    "procrastinate": "/jobs",
}


def say(name: str, figures: dict[str, Any]) -> None:
    shown = "  ".join(f"{key} {value:,.1f}" for key, value in figures.items())
    click.echo(f"{name:44} {shown}")


async def submits(url: str, system: str, count: int, connections: int) -> dict[str, float]:
    path = SUBMITS[system]

    def request(number: int) -> tuple[str, str, Any]:
        return "POST", path, {"input": {"number": number, "text": "x" * 200}}

    return await measure(url, request, count, connections)


def measure_submits(store: Callable[[], str], systems: list[str], count: int, rounds: int) -> None:
    """The systems take turns; the figure is the median of the rounds."""
    figures: dict[tuple[str, int], list[dict[str, float]]] = {}
    for _ in range(rounds):
        for system in systems:
            with served(system, store()) as url:
                asyncio.run(submits(url, system, min(count, 200), 4))  # warm
                for connections in (1, 32):
                    some = count if connections > 1 else count // 10
                    figures.setdefault((system, connections), []).append(
                        asyncio.run(submits(url, system, some, connections))
                    )
    for (system, connections), several in figures.items():
        middle = {name: median(one[name] for one in several) for name in several[0]}
        say(f"submits, {system}, {connections} connections", middle)


async def fill(url: str, count: int) -> list[str]:
    ids: list[str] = []
    async with Connection(url) as connection:
        for start in range(0, count, BATCH):
            inputs = [{"number": number} for number in range(start, start + BATCH)]
            body = {"inputs": inputs, "delay": 3600}
            _, answer = await connection.ask("POST", "/v1/pipelines/noop/runs/batch", body)
            ids += [item["run"]["id"] for item in json.loads(answer)["items"]]
    return ids


def measure_reads(
    store: str, runs: int, count: int, settle: Callable[[], None] = lambda: None
) -> None:
    with served("holdfast", store) as url:
        ids = asyncio.run(fill(url, runs))
        settle()  # a planner that has never looked at the tables is not what is measured
        requests: dict[str, Callable[[int], tuple[str, str, Any]]] = {
            "show": lambda number: ("GET", f"/v1/runs/{ids[number * 7919 % len(ids)]}", None),
            "list": lambda number: ("GET", "/v1/runs?state=queued&limit=50", None),
        }
        for name, request in requests.items():
            figures = asyncio.run(measure(url, request, count, 32))
            say(f"reads, {name}, {runs:,} runs, 32 connections", figures)


@click.command()
@click.option("--only", type=click.Choice(["submits", "reads", "watchers"]), multiple=True)
@click.option("--quick", is_flag=True)
@click.option("--watchers", default=1000)
@click.option("--store", "kinds", type=click.Choice(["sqlite", "postgres"]), multiple=True)
def main(only: tuple[str, ...], quick: bool, watchers: int, kinds: tuple[str, ...]) -> None:
    wanted = only or ("submits", "reads", "watchers")
    kinds = kinds or ("sqlite", "postgres")
    count, rounds = (500, 1) if quick else (5000, 3)
    with tempfile.TemporaryDirectory() as folder, stores.servers(None, None, "always") as servers:
        numbers = iter(range(1000))

        def sqlite() -> str:
            return f"sqlite:///{Path(folder) / f'{next(numbers)}.db'}"

        def postgres() -> str:
            server = servers["postgres"]
            assert isinstance(server, stores.Server), server
            server.clean()
            return server.url

        if "submits" in wanted:
            if "sqlite" in kinds:
                click.echo("SQLite, synchronous=FULL")
                measure_submits(sqlite, ["holdfast", "bare FastAPI"], count, rounds)
            if "postgres" in kinds:
                click.echo("PostgreSQL, synchronous_commit=on")
                systems = ["holdfast", "bare FastAPI", "procrastinate"]
                measure_submits(postgres, systems, count, rounds)
        if "reads" in wanted:
            runs = 2_000 if quick else 100_000
            if "sqlite" in kinds:
                measure_reads(sqlite(), runs, count)
            if "postgres" in kinds:
                server = servers["postgres"]
                assert isinstance(server, stores.Server), server
                measure_reads(postgres(), runs, count, server.settle)
        if "watchers" in wanted:
            with served("holdfast", sqlite()) as url:
                figures = asyncio.run(measure_watchers(url, watchers, min(50, watchers)))
            say("watchers, SQLite", figures)


if __name__ == "__main__":
    main()
