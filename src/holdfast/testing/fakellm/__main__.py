"""`python -m holdfast.testing.fakellm --latency 1.5 --brain report`: a fake to run programs
against.

Prints what to put into HOLDFAST_LLM, one line for each vendor, and serves until it is killed. `GET
/stats` tells what was asked."""

from __future__ import annotations

import argparse
import asyncio
import sys
from importlib import import_module

from holdfast.testing.fakellm.brains import Minimal
from holdfast.testing.fakellm.faults import KINDS, by_chance
from holdfast.testing.fakellm.protocol import Brain
from holdfast.testing.fakellm.server import FakeLLM
from holdfast.testing.fakellm.service import VENDORS

BRAINS = {"report": "holdfast.apps.report.testing.brain:ReportBrain"}
"""Brains that come with holdfast's apps."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m holdfast.testing.fakellm", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds that each answer takes")
    parser.add_argument(
        "--jitter", type=float, default=0.0, help="up to so many seconds more, at random"
    )
    parser.add_argument("--per-second", type=float, help="refuse more requests than that with 429")
    parser.add_argument("--brain", default="minimal", help="report, minimal, or module:Class")
    parser.add_argument(
        "--fault", action="append", default=[], metavar="KIND=PROBABILITY", help=", ".join(KINDS)
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--key", help="refuse requests without this key (a made-up one: it is printed nowhere)"
    )
    return parser.parse_args()


def brain(name: str) -> Brain:
    """A brain by name, imported only now."""
    if name == "minimal":
        return Minimal()
    module, _, attribute = BRAINS.get(name, name).partition(":")
    return getattr(import_module(module), attribute)()


async def serve(options: argparse.Namespace) -> None:
    chances = {
        kind: float(chance)
        for kind, _, chance in (option.partition("=") for option in options.fault)
    }
    fake = FakeLLM(
        brain(options.brain),
        host=options.host,
        port=options.port,
        latency=options.latency,
        jitter=options.jitter,
        per_second=options.per_second,
        faults=by_chance(options.seed, **chances),
        key=options.key,
        seed=options.seed,
    )
    async with fake:
        sys.stdout.write(f"serving at {fake.url()}\n")
        sys.stdout.writelines(f"HOLDFAST_LLM={fake.address(vendor)}\n" for vendor in VENDORS)
        sys.stdout.flush()
        await fake.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(serve(arguments()))
    except KeyboardInterrupt:
        sys.exit(130)
