"""`python -m benchmarks`: measure, print one table, keep the figures."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks import catalogue, machine, peers, report
from benchmarks.harness import Harness
from benchmarks.systems.common import has_uvloop

RESULTS = Path(__file__).with_name("results") / "latest.json"
TRIAL = RESULTS.with_name("trial.json")
ROUNDS = 5


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="where the rows are written, or read by --readme (default: results/latest.json for a complete "
        "measurement and for --readme, results/trial.json with --quick or --only)",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes and one round: not figures to quote")
    parser.add_argument("--only", choices=[benchmark.name for benchmark in catalogue.BENCHMARKS], action="append")
    parser.add_argument(
        "--repeat",
        type=positive,
        metavar="N",
        help="exactly N rounds; the median counts (default: up to 5 within each benchmark's time, with --quick 1)",
    )
    parser.add_argument("--no-uvloop", action="store_true", help="holdfast and the bound on asyncio's own event loop")
    parser.add_argument("--readme", action="store_true", help="measure nothing: put the stored rows into the README")
    return parser.parse_args()


def positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(asked: argparse.Namespace) -> list[dict]:
    missing = peers.ready()
    if missing:
        say(f"THE PEERS ARE MISSING, their rows stay empty: {missing}")
    uvloop = has_uvloop() and not asked.no_uvloop
    where = machine.describe(uvloop=uvloop)
    if asked.quick:
        where += ", QUICK: small sizes, not to be quoted"
    if load := machine.busy():
        say(f"THE MACHINE IS BUSY, these figures are not to be quoted: {load}")
        where += f", BUSY: {load}"
    print(where, flush=True)
    rounds = asked.repeat or (1 if asked.quick else ROUNDS)
    harness = Harness(rounds, asked.repeat is None, asked.quick, uvloop, missing, say)
    chosen = [b for b in catalogue.BENCHMARKS if not asked.only or b.name in asked.only]
    return [{**row, "machine": where} for benchmark in chosen for row in harness.measure(benchmark)]


def rewrite(path: Path) -> None:
    try:
        rows = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"there are no rows to put into the README, measure first: {error}")
    report.rewrite_readme(rows)
    print(f"{report.README}: figures of {path}")


def main() -> None:
    asked = arguments()
    if asked.readme:
        return rewrite(asked.json or RESULTS)
    start = time.monotonic()
    rows = measure(asked)
    path = asked.json or (TRIAL if asked.quick or asked.only else RESULTS)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"\n{report.table(rows)}\n\n{report.goals(rows)}")
    if lost := report.failures(rows):
        print(f"\n{lost}")
    print(f"\nrows: {path}, measured in {(time.monotonic() - start) / 60:.1f} minutes")
    return None


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted: nothing was written")
