"""A report as files other than the page: the document, tables, text and other systems' formats; and
what can be said about reports: whether one holds together, and how two differ."""

from holdfast.apps.report.outputs.comparison import compare
from holdfast.apps.report.outputs.comparison_text import describe
from holdfast.apps.report.outputs.files import all_files
from holdfast.apps.report.outputs.json_document import from_json, json_schema, to_json
from holdfast.apps.report.outputs.markdown import markdown
from holdfast.apps.report.outputs.t3c import t3c
from holdfast.apps.report.outputs.tables import csv_files
from holdfast.apps.report.outputs.validation import problems

__all__ = [
    "all_files",
    "compare",
    "csv_files",
    "describe",
    "from_json",
    "json_schema",
    "markdown",
    "problems",
    "t3c",
    "to_json",
]
