"""A run's state changes in one place, which lets nothing through but the declared transitions."""

from __future__ import annotations

from itertools import product

import pytest

from holdfast.errors import Unwritable
from holdfast.model.event import STATE_AFTER, EventType
from holdfast.model.machine.changes import ChangeRun, move
from holdfast.model.machine.facts import Now, RunFacts
from holdfast.model.run import TRANSITIONS, RunState

CHANGES = [event for event in STATE_AFTER if event != EventType.QUEUED]


@pytest.mark.parametrize(("state", "event"), list(product(RunState, CHANGES)))
def test_a_run_moves_only_as_declared(state: RunState, event: EventType) -> None:
    run = RunFacts("r1", "t", "p", "default", state)
    after = RunState(STATE_AFTER[event])
    if after in TRANSITIONS[state]:
        changed = move(run, event, {}, Now(0.0, 0.0))[0]
        assert isinstance(changed, ChangeRun)
        assert changed.fields["state"] is after
    else:
        with pytest.raises(Unwritable, match=f"run r1 is {state}, which {event} can't follow"):
            move(run, event, {}, Now(0.0, 0.0))
