"""What the script needs beyond the text that is in the page already: words, filters, and who is
where on the map."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from holdfast.apps.report.page.content import PageContent
from holdfast.apps.report.page.escaping import json_block
from holdfast.apps.report.page.overview_charts import OverviewCharts
from holdfast.apps.report.page.people import Trait


def script_data(content: PageContent, charts: OverviewCharts, traits: Sequence[Trait]) -> Markup:
    """One JSON object. No comment or quote is repeated in it."""
    shown = {comment.id for comment in content.shown_comments}
    return json_block(
        {
            "language": content.translations.code,
            "id": content.report.id,
            "words": content.translations.for_script(),
            "traits": [
                {"name": trait.name, "values": [group.value for group in trait.groups]}
                for trait in traits
            ],
            "map": [
                [
                    content.anchor("m", comment) if comment in shown else ""
                    for comment in cloud.comments
                ]
                for cloud in charts.map
            ],
        }
    )
