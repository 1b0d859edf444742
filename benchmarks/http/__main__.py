"""The HTTP API under load.

    python -m benchmarks.http                       # everything, on three stores: 10 minutes
    python -m benchmarks.http --quick               # small
    python -m benchmarks.http --only watchers --watchers 5000

`submits`: accepted runs per second over so many connections, beside a bare FastAPI app that inserts
a row and one in front of procrastinate; every answer is durable. `reads`: the status of runs with
100,000 of them in the store. `tenants`: how long the 10 runs of one tenant wait behind the 10,000
of another. `watchers`: streams of events that are open at once, and how soon the last of them hears
of an end. Each server is one process, as is the client."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks import stores
from benchmarks.http.load import Connection, measure
from benchmarks.http.processes import served
from benchmarks.http.tenants import make_tenants, measure_tenants
from benchmarks.http.watchers import measure_watchers

BATCH = 500
SUBMITS = {
    "holdfast": "/v1/pipelines/noop/runs",
    "bare FastAPI": "/jobs",
    "procrastinate": "/jobs",
}


def say(name: str, figures: dict[str, Any]) -> None:
    text = "  ".join(f"{key} {value:,.1f}" for key, value in figures.items())
    click.echo(f"{name:44} {text}")


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
        middle = {
            name: median(figures_of_run[name] for figures_of_run in several) for name in several[0]
        }
        say(f"submits, {system}, {connections} connections", middle)


async def fill(url: str, count: int) -> list[str]:
    ids: list[str] = []
    async with Connection(url) as connection:
        for start in range(0, count, BATCH):
            inputs = [{"number": number} for number in range(start, start + BATCH)]
            body = {"inputs": inputs}  # no worker is there, so they stay queued
            _, answer = await connection.ask("POST", "/v1/pipelines/noop/runs/batch", body)
            ids += [item["run"]["id"] for item in json.loads(answer)["items"]]
    return ids


def measure_reads(
    store: str, runs: int, count: int, settle: Callable[[], None] = lambda: None
) -> None:
    with served("holdfast", store) as url:
        ids = asyncio.run(fill(url, runs))
        settle()  # so that PostgreSQL's planner has statistics of the tables
        requests: dict[str, Callable[[int], tuple[str, str, Any]]] = {
            "show": lambda number: ("GET", f"/v1/runs/{ids[number * 7919 % len(ids)]}", None),
            "list": lambda number: ("GET", "/v1/runs?state=queued&limit=50", None),
        }
        for name, request in requests.items():
            figures = asyncio.run(measure(url, request, count, 32))
            say(f"reads, {name}, {runs:,} runs, 32 connections", figures)


class Stores:
    """Makes fresh stores of each kind."""

    def __init__(self, folder: Path, servers: Mapping[str, Any]) -> None:
        self._folder = folder
        self._servers = servers
        self._numbers = count()

    def fresh(self, kind: str) -> str:
        if kind == "sqlite":
            return f"sqlite:///{self._folder / f'{next(self._numbers)}.db'}"
        server = self._server(kind)
        server.clean()
        return server.url

    def settle(self, kind: str) -> None:
        if kind == "postgres":
            self._server(kind).settle()

    def _server(self, kind: str) -> stores.Server:
        server = self._servers[kind]
        assert isinstance(server, stores.Server), server
        return server


def all_submits(stores: Stores, kinds: Sequence[str], quick: bool) -> None:
    number, rounds = (500, 1) if quick else (5000, 3)
    for kind in kinds:
        click.echo(DURABILITY[kind])
        systems = ["holdfast", *PEERS[kind]]
        measure_submits(lambda kind=kind: stores.fresh(kind), systems, number, rounds)


def all_reads(stores: Stores, kinds: Sequence[str], quick: bool) -> None:
    runs, number = (2_000, 500) if quick else (100_000, 5000)
    for kind in kinds:
        click.echo(DURABILITY[kind])
        measure_reads(stores.fresh(kind), runs, number, lambda kind=kind: stores.settle(kind))


def all_tenants(stores: Stores, kinds: Sequence[str], quick: bool) -> None:
    many = 500 if quick else 10_000
    for kind in kinds:
        store = stores.fresh(kind)
        keys = make_tenants(store)
        with served("holdfast", store) as url:
            figures = measure_tenants(url, store, keys, many)
        say(f"tenants, {kind}, {many:,} and 10 runs", figures)


DURABILITY = {
    "sqlite": "SQLite, synchronous=FULL",
    "postgres": "PostgreSQL, synchronous_commit=on",
    "redis": "Redis, appendfsync always",
}
PEERS = {"sqlite": ["bare FastAPI"], "postgres": ["bare FastAPI", "procrastinate"], "redis": []}
MEASURED = {"submits": all_submits, "reads": all_reads, "tenants": all_tenants}


@click.command()
@click.option("--only", type=click.Choice([*MEASURED, "watchers"]), multiple=True)
@click.option("--quick", is_flag=True)
@click.option("--watchers", default=1000)
@click.option("--store", "kinds", type=click.Choice(list(DURABILITY)), multiple=True)
def main(only: tuple[str, ...], quick: bool, watchers: int, kinds: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder, stores.servers(None, None, "always") as servers:
        made_stores = Stores(Path(folder), servers)
        for name, measured in MEASURED.items():
            if not only or name in only:
                measured(made_stores, kinds or list(DURABILITY), quick)
        if not only or "watchers" in only:
            with served("holdfast", made_stores.fresh("sqlite")) as url:
                figures = asyncio.run(measure_watchers(url, watchers, min(50, watchers)))
            say("watchers, SQLite", figures)


if __name__ == "__main__":
    main()
