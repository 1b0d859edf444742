"""Measure how long recovery takes, with the default lease (30 s) and real processes and servers.

    python -m benchmarks.recovery
    python -m benchmarks.recovery --rounds 2 --write

`--write` puts the table into docs/explanation/proof.md. The stores are measured at the same time:
most of it is waiting for leases to end."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import platform
import re
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.recovery import measurements
from benchmarks.recovery.measurements import Figures
from benchmarks.recovery.processes import Workers
from holdfast.testing.servers.postgres import PostgresServer
from holdfast.testing.servers.redis import RedisServer

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "proof.md"
DURABLE_POSTGRES = ("fsync=on", "synchronous_commit=on", "full_page_writes=on")
DURABLE_REDIS = ("--appendonly", "yes", "--appendfsync", "always")
PROMISES = {
    "worker killed": "40 s (L1, L3)",
    "server up": "5 s",
    "SIGTERM": "8 s (L4)",
    "bus up": "5 s (L2)",
}


async def on_store(folder: Path, store: str, rounds: int) -> Figures:
    with Workers(folder, store) as workers:
        return await measurements.kills(workers, rounds)


async def on_server(
    folder: Path, server: PostgresServer | RedisServer, store: str, rounds: int
) -> Figures:
    with Workers(folder, store) as workers:
        return await measurements.outages(workers, server, rounds)


async def stopping(folder: Path, rounds: int) -> Figures:
    with Workers(folder, f"sqlite:///{folder}/holdfast.db") as workers:
        return await measurements.stops(workers, rounds)


async def measure(folder: Path, rounds: int) -> list[tuple[str, str, list[float]]]:
    """Rows: what, where, seconds."""
    postgres, redis = PostgresServer(*DURABLE_POSTGRES), RedisServer(*DURABLE_REDIS)
    try:
        postgres.create()
        redis.start()
        stores = {
            "SQLite": f"sqlite:///{folder}/SQLite/holdfast.db",
            "PostgreSQL": postgres.url(),
            "Redis": redis.url(prefix="kills:"),
        }
        killed = [on_store(folder / name, store, rounds) for name, store in stores.items()]
        figures = dict(zip(stores, await asyncio.gather(*killed), strict=True))
        for name, server, store in (
            ("PostgreSQL", postgres, postgres.url("outages")),
            ("Redis", redis, redis.url(prefix="outages:")),
        ):
            outages = await on_server(folder / f"{name}-outages", server, store, rounds)
            figures[name] = {**figures[name], **outages}
    finally:
        postgres.end()
        redis.end()
    figures["SQLite"] |= await stopping(folder / "stopping", rounds)
    figures["Redis"] |= await measurements.bus_outages(folder, rounds)
    return sorted(
        (measurement, where, seconds)
        for where, rows in figures.items()
        for measurement, seconds in rows.items()
    )


def table(rows: Sequence[tuple[str, str, list[float]]]) -> str:
    lines = [
        "| what | on | p50 | max | promised | samples |",
        "|---|---|---|---|---|---|",
    ]
    for measurement, where, seconds in rows:
        promise = next(text for start, text in PROMISES.items() if measurement.startswith(start))
        middle, longest = statistics.median(seconds), max(seconds)
        count = len(seconds)
        lines.append(
            f"| {measurement} | {where} | {middle:.1f} s | {longest:.1f} s | {promise} | {count} |"
        )
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    return "\n".join([*lines, "", f"Measured on {machine}, Python {platform.python_version()}."])


def write(text: str) -> None:
    begin, end = "<!-- recovery -->\n", "\n<!-- end of recovery -->"
    pattern = re.compile(f"(?<={re.escape(begin)}).*?(?={re.escape(end)})", re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: text, PAGE.read_text()))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recovery",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=6, help="of each kind of accident")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    logging.getLogger("holdfast").setLevel(logging.CRITICAL)  # outages of servers are expected here
    with tempfile.TemporaryDirectory(prefix="holdfast-recovery-") as folder:
        text = table(asyncio.run(measure(Path(folder), options.rounds)))
    print(text)
    if options.write:
        write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
