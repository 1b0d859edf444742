"""The values a report is made of: comments, topics, claims with quotes, groups, cruxes, and the
finished document.

Plain dataclasses, so that pydantic checks them at the borders and msgspec reads them quickly.
"""
