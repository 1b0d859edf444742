"""How to test your own pipeline: in memory, in virtual time, with crashes wherever one can happen.

python examples/own_tests.py        or        pytest examples/own_tests.py
"""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from holdfast.testing.crash import assert_crash_safe
from holdfast.testing.engine import TestEngine

sys.path.insert(0, str(Path(__file__).parent))

from comments import Report, Request, comments, cruxes

MakeEngine = Callable[..., TestEngine]


def test_a_run_gives_a_report(holdfast_engine: MakeEngine) -> None:
    engine = holdfast_engine(comments)
    run = engine.submit(comments, Request(title="Parks", cruxes=True))
    engine.drain()
    report: Report = engine.result(run)
    assert report.title == "Parks"
    assert report.cruxes == ["benches", "dogs", "paths", "playground", "shade"]


def test_an_optional_step_is_skipped(holdfast_engine: MakeEngine) -> None:
    engine = holdfast_engine(comments)
    run = engine.submit(comments, Request())
    engine.drain()
    assert engine.steps(run)["cruxes"].status == "skipped"


def test_what_is_finished_is_not_paid_for_again(holdfast_engine: MakeEngine) -> None:
    """The worker dies when `topics` is stored: the next one takes it from there."""
    engine = holdfast_engine(comments)
    run = engine.submit(comments, Request())
    engine.crash_after("topics")
    engine.drain()
    assert engine.info(run).attempts == 2
    assert engine.reused(run) == ["topics"]
    assert [step for _, step, key in engine.executed if not key].count("topics") == 1


def test_the_same_key_is_the_same_run(holdfast_engine: MakeEngine) -> None:
    engine = holdfast_engine(comments)
    first = engine.submit(comments, Request(), key="r-1")
    again = engine.submit(comments, Request(), key="r-1")
    assert (first.created, again.created) == (True, False)
    assert again.id == first.id


def test_nothing_is_lost_whatever_crashes() -> None:
    """Kill, pause, duplicate and lose at every boundary between the worker and the outside."""
    tried = assert_crash_safe(comments, Request(cruxes=True))
    print(f"\n{tried}")
    assert tried.takeovers > 0


def test_a_step_is_a_function() -> None:
    """Declaring a step leaves its function as it is: call it, and test it without any engine."""
    assert asyncio.run(cruxes({"dogs": 2, "paths": 1})) == ["dogs"]


if __name__ == "__main__":
    sys.exit(
        subprocess.call(
            [sys.executable, "-m", "pytest", __file__, "-v", "-s", "-p", "no:cacheprovider"]
        )
    )
