"""A report as files other than the page: the document, tables, text and other systems' formats; and what can be said
about reports: whether one holds together, and how two differ."""

from holdfast.pipelines.report.outputs.files import all_files

__all__ = ["all_files"]
