"""What can go wrong, by name, and when: `FakeLLM(brain, faults=in_turn("overloaded", None,
"cut"))`.

A plan is asked before every call. `None` means that this one goes well.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.testing.fakellm.protocol import Call

REFUSALS = {
    "rate_limit": 429,
    "unavailable": 503,
    "overloaded": 529,
    "error": 500,
    "bad_gateway": 502,
    "timeout": 408,
    "bad_request": 400,
    "unknown_model": 404,
    "forbidden": 403,
    "unauthorised": 401,
    "no_credit": 402,
}
"""Faults that are a status, and which."""

CONNECTION = ("hang", "reset", "silence", "cut", "slow")
"""`silence` closes without an answer, `reset` resets the connection, `cut` closes in the middle;
`slow` takes `seconds` longer."""

BODIES = ("html", "not_json", "wrong_type", "endless", "no_choices", "no_usage", "hidden_error")
"""Answers of status 200 that are not of the protocol, or only nearly. `wrong_type` only calls
itself text/plain."""

ANSWERS = (
    "malformed",
    "fenced",
    "prose",
    "truncated",
    "wrong_types",
    "extra_keys",
    "missing_keys",
    "empty",
    "refusal",
    "refusal_text",
    "foreign_ids",
    "duplicate_ids",
    "markup",
    "many",
    "nan",
    "infinity",
    "two_answers",
    "surrogates",
    "nested",
)
"""Answers of the protocol whose content is not what was asked for."""

KINDS = (*REFUSALS, *CONNECTION, *BODIES, *ANSWERS)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing going wrong. `seconds` is how long to wait: before the answer (`slow`), or what
    `Retry-After` says."""

    kind: str
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"the fault {self.kind!r} is unknown: there are {', '.join(KINDS)}")


Plan = Callable[[Call], Fault | None]


def never(call: Call) -> Fault | None:
    return None


def in_turn(*faults: Fault | str | None) -> Plan:
    """The first call gets the first fault, and so on; those after the last go well."""
    plan = itertools.chain((_fault(fault) for fault in faults), itertools.repeat(None))
    return lambda call: next(plan)


def always(fault: Fault | str) -> Plan:
    result = _fault(fault)
    return lambda call: result


def when(condition: Callable[[Call], bool], fault: Fault | str) -> Plan:
    """A fault for the calls that a condition holds for: `when(lambda call: call.task == "claims",
    "cut")`."""
    result = _fault(fault)
    return lambda call: result if condition(call) else None


def first_tries(times: int, fault: Fault | str) -> Plan:
    """Each text fails so many times, then goes well."""
    return when(lambda call: call.tries <= times, fault)


def by_chance(seed: int, **probabilities: float) -> Plan:
    """Faults at random: `by_chance(7, cut=0.05, malformed=0.1)`. The same text fails the same way,
    in any order."""
    kinds = {Fault(kind): probability for kind, probability in probabilities.items()}

    def plan(call: Call) -> Fault | None:
        number = random.Random(
            f"{seed}:{call.vendor}:{call.task}:{call.tries}:{call.text}"
        ).random()
        for fault, probability in kinds.items():
            number -= probability
            if number < 0:
                return fault
        return None

    return plan


def _fault(fault: Fault | str | None) -> Fault | None:
    return Fault(fault) if isinstance(fault, str) else fault
