"""Every file but the page, in one go, and the same each time."""

from __future__ import annotations

from holdfast.apps.report.model.comment import Row
from holdfast.apps.report.model.document import Report
from holdfast.apps.report.outputs import all_files


def test_all_files_are_there_and_not_empty(report: Report, rows: list[Row]) -> None:
    files = all_files(report, rows)
    assert list(files) == [
        "report.json",
        "report.md",
        "topics.csv",
        "claims.csv",
        "quotes.csv",
        "cruxes.csv",
        "crux_matrix.csv",
        "groups.csv",
        "rows.csv",
    ]
    assert all(files.values())


def test_rows_may_be_read_only_once(report: Report, rows: list[Row]) -> None:
    assert all_files(report, iter(rows)) == all_files(report, rows)
