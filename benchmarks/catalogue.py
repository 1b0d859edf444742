"""What a suite consists of: systems, benchmarks, goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.peers import OURS

HOLDFAST = "holdfast"
"""holdfast with its default settings: its rows are the ones that goals are judged by."""
TUNED = "holdfast, tuned"
"""holdfast with other settings; each of its rows says which. No goal is judged by them."""
LOGGING = "holdfast, logging"
"""holdfast with default settings and its default log level, INFO: a line per run."""
OWN = (HOLDFAST, TUNED, LOGGING)


@dataclass(frozen=True, eq=False)
class System:
    """Something to measure: a file of `systems/` and the environment that it needs."""

    name: str
    module: str
    environment: str = OURS
    our_ways: tuple[str, ...] = ()
    """Ways to use it that need our own environment alone."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Passed to its process together with the benchmark."""


@dataclass(frozen=True)
class Subject:
    """A system in a benchmark. Of several ways to use it the best median counts."""

    system: System
    count: int
    quick: int
    ways: tuple[str, ...] = ("",)
    row: str | None = None
    """The benchmark's name in the results, where it differs."""
    options: Mapping[str, Any] = field(default_factory=dict)
    way_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options of single ways."""

    def options_of(self, way: str) -> dict[str, Any]:
        return {**self.system.options, **self.options, **self.way_options.get(way, {})}


@dataclass(frozen=True)
class Extra:
    """A further row out of the same answer."""

    key: str
    row: str
    unit: str
    higher_is_better: bool = False


@dataclass(frozen=True)
class Benchmark:
    name: str
    unit: str
    subjects: tuple[Subject, ...]
    higher_is_better: bool = True
    flight: int = 256
    """How many calls the caller has in flight; how many runs a worker has is a setting of its."""
    seconds: float = 60.0
    """Seconds. No round begins that would probably end later than this; the first round always
    runs."""
    extra: tuple[Extra, ...] = ()
    store: str = "sqlite"
    options: Mapping[str, Any] = field(default_factory=dict)

    def only(self, systems: Sequence[str]) -> Benchmark:
        """The same with only those systems whose name begins with one of these."""
        subjects = (
            subject
            for subject in self.subjects
            if not systems or subject.system.name.startswith(tuple(systems))
        )
        return replace(self, subjects=tuple(subjects))


@dataclass(frozen=True)
class Goal:
    """`ours` is at least `factor` times `theirs`; for latencies, at most.

    `theirs` is a benchmark and a system, or a number."""

    text: str
    ours: str
    theirs: tuple[str, str] | float
    factor: float
    higher_is_better: bool = True

    def allows(self, share: float) -> bool:
        return share >= self.factor if self.higher_is_better else share <= self.factor

    @property
    def rows(self) -> set[tuple[str, str]]:
        """Benchmark and system of the rows that it compares."""
        theirs = {self.theirs} if isinstance(self.theirs, tuple) else set()
        return {(self.ours, HOLDFAST), *theirs}


@dataclass(frozen=True)
class Suite:
    """A set of benchmarks that are run and reported together."""

    name: str
    """Of its results and of its section in the README."""
    benchmarks: tuple[Benchmark, ...]
    goals: tuple[Goal, ...]
    rounds: int
    bounds: Mapping[str, str] = field(default_factory=dict)
    """Which row of holdfast a bound's row is compared with, where the names differ."""
    harder: Mapping[str, str] = field(default_factory=dict)
    """A peer, and the same peer in better circumstances: goals against the first are also shown
    against the second."""
    driver: str | None = None
    """The module, in our own environment, that starts the systems' processes; without one they
    start by themselves."""

    def environments(self, selection: tuple[Benchmark, ...]) -> list[str]:
        systems = (subject.system for benchmark in selection for subject in benchmark.subjects)
        return list(dict.fromkeys(system.environment for system in systems))

    def judged(self) -> tuple[Benchmark, ...]:
        """Only the systems of only those benchmarks that the goals compare."""
        rows = {row for goal in self.goals for row in goal.rows}
        narrowed = (
            replace(
                benchmark,
                subjects=tuple(
                    subject
                    for subject in benchmark.subjects
                    if (subject.row or benchmark.name, subject.system.name) in rows
                ),
            )
            for benchmark in self.benchmarks
        )
        return tuple(benchmark for benchmark in narrowed if benchmark.subjects)
