"""`python -m benchmarks`: measure, print the rows and the goals, keep the figures."""

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
from benchmarks.harness import Harness, Row
from benchmarks.judge import ExitCode

RESULTS = Path(__file__).with_name("results")
QUICK_ROUNDS = 3

EXIT_CODES = f"""\
exit codes:
  {ExitCode.OK:d}  every row was measured, every goal that these rows judge is met
  1  an error or an interruption: nothing was written
  2  a wrong option
  {ExitCode.ROW_MISSING:d}  a row is missing, for example because a peer could not be installed
  {ExitCode.GOAL_MISSED:d}  every row was measured, a goal is not met
"""


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--servers",
        action="store_true",
        help="on Redis and PostgreSQL, with the peers there, instead of on SQLite",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, and only the rows that goals compare unless --only or --system choose "
        "others: a check within minutes, not figures to quote",
    )
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        default=[],
        help="benchmarks whose name begins with NAME, for example noop_redis; repeatable",
    )
    parser.add_argument(
        "--system",
        metavar="NAME",
        action="append",
        default=[],
        help="systems whose name begins with NAME, for example holdfast; repeatable",
    )
    parser.add_argument(
        "--repeat",
        type=positive,
        metavar="N",
        help="exactly N rounds; the median counts (default: as many as fit into each benchmark's "
        f"time, with --quick {QUICK_ROUNDS})",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="where the rows are written, or read by --readme (default: results/SUITE.json, with "
        "--quick, --only or --system results/SUITE-trial.json)",
    )
    parser.add_argument(
        "--readme",
        action="store_true",
        help="measure nothing: write the rows of the last complete run into benchmarks/README.md "
        "and, with --servers, the speed table into README.md",
    )
    server = parser.add_argument_group("with --servers")
    server.add_argument(
        "--redis", metavar="URL", help="your own server, which must be empty and will be emptied"
    )
    server.add_argument(
        "--postgres",
        metavar="URL",
        help=f"your own server; its database {stores.DATABASE} is dropped and created",
    )
    server.add_argument(
        "--everysec",
        action="store_true",
        help="Redis with appendfsync everysec: a power cut may take a second of work",
    )
    return parser


def positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def choose(suite: Suite, options: argparse.Namespace) -> tuple[Benchmark, ...]:
    """The benchmarks to measure; none if nothing has such a name."""
    if options.quick and not options.only and not options.system:
        return suite.judged()
    selection = (
        benchmark.only(options.system)
        for benchmark in suite.benchmarks
        if not options.only or benchmark.name.startswith(tuple(options.only))
    )
    return tuple(benchmark for benchmark in selection if benchmark.subjects)


def measure(
    suite: Suite, benchmarks: tuple[Benchmark, ...], options: argparse.Namespace
) -> list[Row]:
    missing = {
        name: reason for name in suite.environments(benchmarks) if (reason := peers.ready(name))
    }
    appendfsync = "everysec" if options.everysec else "always"
    started = stores.servers(options.redis, options.postgres, appendfsync)
    with started if options.servers else nullcontext({}) as all_servers:
        available = {
            name: server
            for name, server in all_servers.items()
            if isinstance(server, stores.Server)
        }
        missing |= {
            name: str(reason) for name, reason in all_servers.items() if name not in available
        }
        for name, reason in missing.items():
            say(f"{name} IS MISSING, and so are its rows: {reason}")
        where = describe(options, available)
        print(where, flush=True)
        harness = Harness(
            suite,
            options.repeat or (QUICK_ROUNDS if options.quick else suite.rounds),
            options.repeat is None,
            options.quick,
            missing,
            {name: asdict(server) for name, server in available.items()},
            say,
        )
        return [
            {**row, "machine": where}
            for benchmark in benchmarks
            for row in harness.measure(benchmark)
        ]


def describe(options: argparse.Namespace, available: Mapping[str, stores.Server]) -> str:
    if options.servers:
        where = machine.describe(", ".join(server.describe() for server in available.values()))
        where += f". Peers: {peers.versions()}"
    else:
        where = machine.describe(machine.SQLITE)
    if options.quick:
        where += ", QUICK: small sizes, not to be quoted"
    if load := machine.busy():
        say(f"THE MACHINE IS BUSY, these figures are not to be quoted: {load}")
        where += f", BUSY: {load}"
    return where


def write_readmes(suite: Suite, path: Path) -> None:
    try:
        rows = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"there are no rows to put into the README, measure first: {error}")
    for readme in report.rewrite_readmes(rows, suite):
        print(f"{readme}: figures of {path}")


def main(arguments: list[str] | None = None) -> int:
    options = (usage := parser()).parse_args(arguments)
    suite = servers.SUITE if options.servers else embedded.SUITE
    complete = RESULTS / f"{suite.name}.json"
    if options.readme:
        write_readmes(suite, options.json or complete)
        return ExitCode.OK
    if not (benchmarks := choose(suite, options)):
        names = ", ".join(benchmark.name for benchmark in suite.benchmarks)
        usage.error(f"no such benchmark or system; the benchmarks are {names}")
    start = time.monotonic()
    rows = measure(suite, benchmarks, options)
    partial = options.quick or options.only or options.system
    path = options.json or (complete.with_stem(f"{suite.name}-trial") if partial else complete)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"\n{report.table(rows, suite)}\n\n{judge.goals(rows, suite)}")
    if lost := report.failures(rows):
        print(f"\n{lost}")
    print(f"\nrows: {path}, measured in {(time.monotonic() - start) / 60:.1f} minutes")
    return judge.exit_code(rows, suite)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)  # end all processes, however the run ends
    try:
        code = main()
    except KeyboardInterrupt:
        sys.exit("interrupted: nothing was written")
    sys.exit(code)
