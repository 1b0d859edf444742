"""The report pipeline, struck at every boundary: the same report comes out, and nothing stored is
done again."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("numpy", reason="reports need holdfast[report]")

from holdfast.apps.report import ReportRequest, report
from holdfast.testing import TestEngine, assert_crash_safe
from holdfast.testing.faults import FAULTS

SCALE = float(os.environ.get("HOLDFAST_SIMULATION_SCALE", "1"))

ROWS = [
    {
        "id": "1",
        "interview": "Ada",
        "comment": "Close Bridge Street to cars. The market needs the room.",
        "agrees": 9,
    },
    {
        "id": "2",
        "interview": "Bo",
        "comment": "Bridge Street must stay open to cars.",
        "agrees": 8,
        "disagrees": 7,
    },
    {"id": "3", "interview": "Cem", "comment": "More trees by the river, please!", "agrees": 12},
    {"id": "4", "interview": "Dee", "comment": "more trees by the river please"},
    {"id": "5", "interview": "", "comment": "!!!"},
    {
        "id": "6",
        "interview": "Eli",
        "comment": "Parking is too expensive for people who work in the shops.",
    },
]
REQUEST = ReportRequest(rows=tuple(ROWS), title="Small town", cruxes=True)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_report_survives_a_fault_at_every_boundary(fault):
    # The page tells when it was made, so the bytes of the files differ: what they say is compared
    # below.
    tried = assert_crash_safe(
        report,
        REQUEST,
        faults=[fault],
        same_result=False,
        max_boundaries=round(14 * SCALE),
    )
    assert len(tried.boundaries) >= 20
    assert tried.worlds >= 14
    if fault.startswith("kill"):
        assert tried.takeovers >= 8


@pytest.mark.parametrize("step", list(report.steps)[:-1])
def test_a_crash_after_any_step_changes_nothing_in_the_report(step):
    assert made(crash_after=step) == made()


def made(crash_after: str | None = None) -> dict[str, bytes]:
    """The files of the report, without the lines that tell when it was made and how long that
    took."""
    engine = TestEngine(report)
    try:
        run = engine.submit(report, REQUEST)
        if crash_after:
            engine.crash_after(crash_after)
        engine.drain()
        files = engine.result(run).files
        if crash_after:
            assert crash_after in engine.reused(run)
        inputs = {
            name: engine.call(engine.app.runtime.payloads.get(where))
            for name, where in files.items()
        }
        return {name: data for name, data in inputs.items() if name.endswith(".csv")}
    finally:
        engine.close()
