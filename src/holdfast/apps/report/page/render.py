"""Puts the page together: what to show, the words for it, and the style and script that are let in
by their hashes."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from holdfast.apps.report.figures import header_figures
from holdfast.apps.report.model.document import Report
from holdfast.apps.report.page.agreement import NARROW, WIDE, Agreement
from holdfast.apps.report.page.assets import Assets
from holdfast.apps.report.page.content import CARDS_SHOWN, PageContent, alike
from holdfast.apps.report.page.escaping import cleaned, moment
from holdfast.apps.report.page.matrix import GLYPHS, table
from holdfast.apps.report.page.method import funnel
from holdfast.apps.report.page.opinions import OpinionLandscape
from holdfast.apps.report.page.overview_charts import UNITS, OverviewCharts
from holdfast.apps.report.page.people import FEWEST, codes, groups
from holdfast.apps.report.page.quote_marks import marked
from holdfast.apps.report.page.script_data import script_data


def render_page(report: Report) -> str:
    """The report as HTML. Every text in it is taken as untrusted."""
    content = PageContent(report)
    charts, traits = OverviewCharts(content), groups(content)
    return (
        _environment()
        .get_template("page.html")
        .render(
            content=content,
            t=content.translations,
            report=report,
            assets=Assets.of(content.title),
            charts=charts,
            traits=traits,
            agreement=Agreement(content),
            opinions=OpinionLandscape(content),
            matrix=table(report.matrix, content),
            data=script_data(content, charts, traits),
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__ or "", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals |= {
        "alike": alike,
        "codes": codes,
        "funnel": funnel,
        "header_figures": header_figures,
        "marked": marked,
        "moment": moment,
        "CARDS_SHOWN": CARDS_SHOWN,
        "FEWEST": FEWEST,
        "GLYPHS": GLYPHS,
        "UNITS": UNITS,
        "WIDTHS": {"wide": WIDE, "narrow": NARROW},
    }
    return environment
