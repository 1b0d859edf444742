"""`python -m benchmarks.history`: what 1,000,000 finished runs cost the next one, on each
server."""

from __future__ import annotations

import argparse
import sys
import time

from benchmarks import stores
from benchmarks.systems import common
from benchmarks.systems.growth import COMMANDS, Model, compare

ALLOWED = 1.5


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000, help="how long the history is")
    parser.add_argument(
        "--store", choices=("redis", "postgres"), action="append", help="default: both"
    )
    return parser.parse_args()


def measure(server: stores.Server, runs: int) -> list[str]:
    start = time.monotonic()
    server.clean()
    empty, full = common.run(compare(server.url, [0, runs], Model.finish), fast=False)
    print(f"{server.describe()}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return [line(server.kind, name, empty[name], full[name]) for name in COMMANDS]


def line(kind: str, name: str, empty: float, full: float) -> str:
    ratio = full / empty
    met = "yes" if ratio <= ALLOWED else "**no**"
    return f"| {kind} | {name} | {empty:.2f} | {full:.2f} | {ratio:.2f} × | {met} |"


def main() -> None:
    options = arguments()
    full = f"{options.runs:,} finished, ms"
    print(f"| store | command | empty, ms | {full} | ratio | at most {ALLOWED} × |")
    print("|---|---|---|---|---|---|")
    with stores.servers(None, None, "always") as servers:
        for kind in options.store or ("redis", "postgres"):
            server = servers[kind]
            if isinstance(server, stores.NotThere):
                sys.exit(f"{kind} is missing: {server}")
            print("\n".join(measure(server, options.runs)), flush=True)


if __name__ == "__main__":
    main()
