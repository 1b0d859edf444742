"""The check behind kill_workers.py fails on what must not happen."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from holdfast.model.event import Event
from holdfast.model.run import Run, RunState

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from kill_workers_check import Story, Trace

FIRST, SECOND = 11, 22
"""The pids of two workers: the first dies in step 2, the second goes on."""
TRACES = [
    Trace("r", "step1", FIRST, 1),
    Trace("r", "step2", FIRST, 1),
    Trace("r", "step2", SECOND, 2),
]


def history(*, stored_by: tuple[int, ...] = (2,), ends: int = 1) -> list[Event]:
    facts = [
        ("run.started", {"epoch": 1, "worker": f"host-{FIRST}-a"}),
        ("step.completed", {"step": "step1", "epoch": 1}),
        ("run.worker_lost", {}),
        ("run.started", {"epoch": 2, "worker": f"host-{SECOND}-b"}),
        *(("step.completed", {"step": "step2", "epoch": epoch}) for epoch in stored_by),
        *[("run.completed", {})] * ends,
    ]
    return [
        Event("r", seq, kind, 0.0, json.dumps(data)) for seq, (kind, data) in enumerate(facts, 1)
    ]


def problems(
    traces: list[Trace], events: list[Event], result: str = "9", state: str = "succeeded"
) -> str:
    run = Run("r", "default", "soak", "default", RunState(state), 1, input="7", result=result)
    return "\n".join(Story(run, events, traces, steps=2).problems())


def test_a_step_that_was_cut_off_may_run_again() -> None:
    assert problems(TRACES, history()) == ""


@pytest.mark.parametrize(
    ("traces", "events", "noticed"),
    [
        (
            [*TRACES, Trace("r", "step1", SECOND, 2)],
            history(),
            "I3: step1 ran under epoch 2, stored by 1",
        ),
        (
            [*TRACES, Trace("r", "step2", SECOND, 2)],
            history(),
            "I3: step2 ran 2 times under epoch 2",
        ),
        ([*TRACES, Trace("r", "step2", FIRST, 2)], history(), "I1: pid 11 ran step2 under epoch 2"),
        (TRACES, history(stored_by=(1, 2)), "I3: step2 was stored 2 times"),
        (TRACES, history(stored_by=()), "I11: 1 of 2 steps were stored"),
        (TRACES[:2], history(), "I11: step2 was stored under epoch 2 without being executed"),
        (TRACES, history(ends=2), "I4: it succeeded 2 times"),
    ],
)
def test_what_must_not_happen_is_noticed(
    traces: list[Trace], events: list[Event], noticed: str
) -> None:
    assert noticed in problems(traces, events)


def test_a_lost_run_and_a_wrong_result_are_noticed() -> None:
    assert "I2: it is queued" in problems(TRACES, history(), state="queued")
    assert "I4: result 8, not 9" in problems(TRACES, history(), result="8")
