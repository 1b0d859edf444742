"""The interventions among the faults of `assert_crash_safe` strike, and what they reveal is
noticed."""

from __future__ import annotations

import pytest

from holdfast import Context, Lane, Pipeline
from holdfast.engine import durable_call
from holdfast.model.machine.facts import RunFacts
from holdfast.testing import assert_crash_safe
from holdfast.testing.interventions import CANCEL, CHANGE_LEADER, DAMAGE, INTERVENTIONS, RETRY

from .bugs_of_stores import cancel_without_epoch
from .bugs_of_the_engine import checksum_ignored


def pipeline(order: str = "parallel") -> Pipeline[int]:
    pipeline = Pipeline("p", input=int, lane=Lane("lane", order=order))  # type: ignore[arg-type]

    @pipeline.step
    async def first(input: int, ctx: Context) -> list[int]:
        return await ctx.map(double, range(input))

    async def double(number: int) -> int:
        return 2 * number

    @pipeline.step
    async def second(first: list[int]) -> int:
        return sum(first)

    @pipeline.step
    async def third(second: int) -> int:
        return second + 1

    return pipeline


@pytest.mark.parametrize("order", ["parallel", "fifo"])
@pytest.mark.parametrize("fault", INTERVENTIONS)
def test_a_sound_pipeline_survives_it(fault: str, order: str) -> None:
    report = assert_crash_safe(pipeline(order), 3, faults=[fault])
    assert report.worlds == len(report.boundaries) > 8
    if fault == DAMAGE:
        assert report.takeovers > 0
        assert report.repeated > 0
    if fault == CANCEL:
        assert report.refused > 0
    if fault == RETRY:
        assert report.takeovers == 0
    assert fault != CHANGE_LEADER or report.repeated == 0


def test_a_damaged_result_that_is_believed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    checksum_ignored(monkeypatch)
    with pytest.raises(AssertionError, match="damage the last result after"):
        assert_crash_safe(pipeline(), 3, faults=[DAMAGE])


def test_a_retry_that_never_comes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_call, "is_retryable", lambda error: False)
    with pytest.raises(AssertionError, match="fail the step after"):
        assert_crash_safe(pipeline(), 3, faults=[RETRY])


def test_a_cancel_that_stops_nobody_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    cancel_without_epoch(monkeypatch)
    monkeypatch.setattr(RunFacts, "is_held", lambda self, epoch, now: self.epoch == epoch)
    with pytest.raises(AssertionError):
        assert_crash_safe(pipeline(), 3, faults=[CANCEL])
