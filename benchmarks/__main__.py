"""`python -m benchmarks`: measure, print one table, keep the figures."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

from benchmarks import embedded, judge, machine, peers, report, servers, stores
from benchmarks.catalogue import Benchmark, Suite
from benchmarks.harness import Harness
from benchmarks.systems.common import has_uvloop

RESULTS = Path(__file__).with_name("results")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--servers", action="store_true", help="beside the peers on Redis and PostgreSQL, instead of on SQLite"
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="where the rows are written, or read by --readme (default: results/SUITE.json for a complete "
        "measurement and for --readme, results/SUITE-trial.json with --quick or --only)",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes and one round: not figures to quote")
    parser.add_argument(
        "--only", metavar="NAME", action="append", default=[], help="benchmarks whose name begins so; may be repeated"
    )
    parser.add_argument(
        "--system", metavar="NAME", action="append", default=[], help="systems whose name begins so; may be repeated"
    )
    parser.add_argument(
        "--repeat",
        type=positive,
        metavar="N",
        help="exactly N rounds; the median counts (default: several within each benchmark's time, with --quick 1)",
    )
    parser.add_argument("--no-uvloop", action="store_true", help="holdfast and the bound on asyncio's own event loop")
    parser.add_argument("--readme", action="store_true", help="measure nothing: put the stored rows into the README")
    server = parser.add_argument_group("with --servers")
    server.add_argument("--redis", metavar="URL", help="your own server, which must be empty and will be emptied")
    server.add_argument(
        "--postgres", metavar="URL", help=f"your own server; the database {stores.DATABASE} there is dropped and made"
    )
    server.add_argument(
        "--everysec", action="store_true", help="Redis with appendfsync everysec: a power cut may take a second of work"
    )
    return parser.parse_args()


def positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def chosen(suite: Suite, asked: argparse.Namespace) -> tuple[Benchmark, ...]:
    found = tuple(one.narrowed(asked.system) for one in suite.benchmarks if _begins(one.name, asked.only))
    if not (found := tuple(one for one in found if one.subjects)):
        sys.exit(f"nothing fits; there are: {', '.join(one.name for one in suite.benchmarks)}")
    return found


def _begins(name: str, beginnings: list[str]) -> bool:
    return not beginnings or name.startswith(tuple(beginnings))


def measure(suite: Suite, asked: argparse.Namespace) -> list[dict]:
    benchmarks = chosen(suite, asked)
    missing = {name: reason for name in suite.environments(benchmarks) if (reason := peers.ready(name))}
    given = stores.servers(asked.redis, asked.postgres, "everysec" if asked.everysec else "always")
    with given if asked.servers else nullcontext({}) as found:
        there = {name: server for name, server in found.items() if isinstance(server, stores.Server)}
        missing |= {name: str(server) for name, server in found.items() if name not in there}
        for name, reason in missing.items():
            say(f"{name} IS MISSING, its rows stay empty: {reason}")
        uvloop = has_uvloop() and not asked.no_uvloop
        where = describe(asked, there, uvloop)
        print(where, flush=True)
        rounds = asked.repeat or (1 if asked.quick else suite.rounds)
        places = {name: asdict(server) for name, server in there.items()}
        harness = Harness(suite, rounds, asked.repeat is None, asked.quick, uvloop, missing, places, say)
        return [{**row, "machine": where} for benchmark in benchmarks for row in harness.measure(benchmark)]


def describe(asked: argparse.Namespace, there: Mapping[str, stores.Server], uvloop: bool) -> str:
    said = ", ".join(server.describe() for server in there.values()) if asked.servers else machine.SQLITE
    where = machine.describe(said, uvloop=uvloop)
    if asked.servers:
        where += f". Peers: {peers.versions()}"
    if asked.quick:
        where += ", QUICK: small sizes, not to be quoted"
    if load := machine.busy():
        say(f"THE MACHINE IS BUSY, these figures are not to be quoted: {load}")
        where += f", BUSY: {load}"
    return where


def rewrite(suite: Suite, path: Path) -> None:
    try:
        rows = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"there are no rows to put into the README, measure first: {error}")
    report.rewrite_readme(rows, suite)
    print(f"{report.README}: figures of {path}")


def main() -> None:
    asked = arguments()
    suite = servers.SUITE if asked.servers else embedded.SUITE
    complete = RESULTS / f"{suite.name}.json"
    if asked.readme:
        return rewrite(suite, asked.json or complete)
    start = time.monotonic()
    rows = measure(suite, asked)
    partial = asked.quick or asked.only or asked.system
    path = asked.json or (complete.with_stem(f"{suite.name}-trial") if partial else complete)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"\n{report.table(rows, suite)}\n\n{judge.goals(rows, suite)}")
    if lost := report.failures(rows):
        print(f"\n{lost}")
    print(f"\nrows: {path}, measured in {(time.monotonic() - start) / 60:.1f} minutes")
    return None


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)  # nothing is left running, however it ends
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted: nothing was written")
