"""The report: a file of comments becomes topics, claims with quotes, summaries and cruxes that
people can trust."""

from holdfast.apps.report.pipeline import ReportFiles, report
from holdfast.apps.report.request import ReportRequest, Upload

__all__ = ["ReportFiles", "ReportRequest", "Upload", "report"]
