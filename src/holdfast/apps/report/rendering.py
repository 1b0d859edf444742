"""A finished report as files: the page, the document, tables and text."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.apps.report.model.comment import Row
from holdfast.apps.report.model.document import Report
from holdfast.apps.report.outputs import all_files, csv_files, markdown, t3c, to_json
from holdfast.apps.report.page import render_page


def render_files(report: Report, rows: Iterable[Row]) -> dict[str, bytes]:
    """File name → content. The page first: it is what people open."""
    return {"report.html": render_page(report).encode(), **all_files(report, rows)}


def export_files(format: str, report: Report) -> dict[str, bytes]:
    """A report in one format, by file name."""
    match format:
        case "t3c":
            return {"t3c.json": t3c(report)}
        case "html":
            return {"report.html": render_page(report).encode()}
        case "md":
            return {"report.md": markdown(report).encode()}
        case "csv":  # without rows.csv: the document does not hold every row of the file
            return {
                name: data for name, data in csv_files(report, ()).items() if name != "rows.csv"
            }
        case _:
            return {"report.json": to_json(report)}
