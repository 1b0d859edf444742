"""What the script needs beyond the text that is in the page already: words, filters, and who is
where on the map."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from holdfast.apps.report.page.content import PageContent
from holdfast.apps.report.page.escaping import json_block
from holdfast.apps.report.page.overview_charts import OverviewCharts
from holdfast.apps.report.page.people import Trait


def block(edition: PageContent, glance: OverviewCharts, traits: Sequence[Trait]) -> Markup:
    """One JSON object. No comment or quote is repeated in it."""
    told = {comment.id for comment in edition.told}
    return json_block(
        {
            "language": edition.words.code,
            "id": edition.report.id,
            "words": edition.words.for_script(),
            "traits": [
                {"name": trait.name, "values": [group.value for group in trait.groups]}
                for trait in traits
            ],
            "map": [
                [
                    edition.anchor("m", comment) if comment in told else ""
                    for comment in cloud.comments
                ]
                for cloud in glance.map
            ],
        }
    )
