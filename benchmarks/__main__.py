"""`python -m benchmarks`: measure, print one table, keep the figures."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks import catalogue, machine, peers, report
from benchmarks.harness import Harness
from benchmarks.systems.common import has_uvloop

RESULTS = Path(__file__).with_name("results") / "latest.json"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the rows are written, or read by --readme")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes and one repeat: minutes, not figures to quote"
    )
    parser.add_argument("--only", choices=[benchmark.name for benchmark in catalogue.BENCHMARKS], action="append")
    parser.add_argument("--repeat", type=int, help="rounds; the median counts (default 5, with --quick 1)")
    parser.add_argument("--no-uvloop", action="store_true", help="holdfast and the bound on asyncio's own event loop")
    parser.add_argument("--readme", action="store_true", help="measure nothing: put the stored rows into the README")
    return parser.parse_args()


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(asked: argparse.Namespace) -> list[dict]:
    missing = peers.ready()
    if missing:
        say(f"THE PEERS ARE MISSING, their rows stay empty: {missing}")
    uvloop = has_uvloop() and not asked.no_uvloop
    where = machine.describe(uvloop=uvloop)
    if load := machine.busy():
        say(f"THE MACHINE IS BUSY, these figures are not to be quoted: {load}")
        where += f", BUSY: {load}"
    print(where)
    harness = Harness(asked.repeat or (1 if asked.quick else 5), asked.quick, uvloop, missing, say)
    chosen = [b for b in catalogue.BENCHMARKS if not asked.only or b.name in asked.only]
    return [{**row, "machine": where} for benchmark in chosen for row in harness.measure(benchmark)]


def main() -> None:
    asked = arguments()
    if asked.readme:
        report.rewrite_readme(json.loads(asked.json.read_text()))
        return
    rows = measure(asked)
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"\n{report.table(rows)}\n\n{report.goals(rows)}\n\nrows: {asked.json}")


if __name__ == "__main__":
    main()
