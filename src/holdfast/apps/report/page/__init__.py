"""The report as one page: a single HTML file that needs no network, no server and, to be read, no
script."""

from holdfast.apps.report.page.render import render_page

__all__ = ["render_page"]
