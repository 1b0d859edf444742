"""Every file of a report but the page, by name."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.apps.report.model.comment import Row
from holdfast.apps.report.model.document import Report
from holdfast.apps.report.outputs.json_document import to_json
from holdfast.apps.report.outputs.markdown import markdown
from holdfast.apps.report.outputs.tables import csv_files


def all_files(report: Report, rows: Iterable[Row]) -> dict[str, bytes]:
    """File name → content. `rows` are all rows of the input, kept or not."""
    return {
        "report.json": to_json(report),
        "report.md": markdown(report).encode(),
        **csv_files(report, rows),
    }
