"""The words in which a suite says what it measures: systems, benchmarks, goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.peers import OURS


@dataclass(frozen=True, eq=False)
class System:
    """Something to measure: a file of `systems/` and the environment that it needs."""

    name: str
    module: str
    environment: str = OURS
    our_ways: tuple[str, ...] = ()
    """Ways to use it that need our own environment alone."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What its process is told beside the benchmark."""


@dataclass(frozen=True)
class Subject:
    """One system in one benchmark. Of several ways to use it the best median counts."""

    system: System
    count: int
    quick: int
    ways: tuple[str, ...] = ("",)
    row: str | None = None
    """The benchmark's name in the results, where it differs."""
    options: Mapping[str, Any] = field(default_factory=dict)


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
    seconds: float = 60.0
    """No further round begins that would probably end after so long; the first round always runs."""
    extra: tuple[Extra, ...] = ()
    store: str = "sqlite"
    options: Mapping[str, Any] = field(default_factory=dict)

    def narrowed(self, systems: Sequence[str]) -> Benchmark:
        """The same with those systems alone whose name begins so."""
        fitting = (one for one in self.subjects if not systems or one.system.name.startswith(tuple(systems)))
        return replace(self, subjects=tuple(fitting))


ANY_PEER = "any peer"


@dataclass(frozen=True)
class Goal:
    """`ours` is at least `factor` times `theirs`; for latencies, at most that share of it.

    `theirs` is a benchmark and a system (or ANY_PEER: the best of all that are not holdfast), or a number.
    """

    text: str
    ours: str
    theirs: tuple[str, str] | float
    factor: float
    higher_is_better: bool = True
    or_saturated: bool = False
    """Whether it also counts as reached when the row shows that the server or the machine had nothing left to give."""

    def allows(self, share: float) -> bool:
        return share >= self.factor if self.higher_is_better else share <= self.factor


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
    """A peer, and the same peer in better circumstances: goals against the first are also shown against the second."""
    driver: str | None = None
    """The module, in our own environment, that starts the systems' processes; without one they start by themselves."""

    def environments(self, chosen: tuple[Benchmark, ...]) -> list[str]:
        systems = (subject.system for benchmark in chosen for subject in benchmark.subjects)
        return list(dict.fromkeys(system.environment for system in systems))
