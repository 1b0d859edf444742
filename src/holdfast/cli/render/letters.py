"""Dead letters: their table, and one with its body."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.cli.render.tables import age, empty, moment, table, traceback_lines
from holdfast.services.views import DeadLetterPage, DeadLetterView


def letter_table(items: Sequence[DeadLetterView]) -> RenderableType:
    if not items:
        return empty("dead letters")
    headings = ("DEAD LETTER", "FROM", "TENANT", "AGE", "STATUS", "REASON")
    rows = [
        [
            letter.id,
            _source(letter),
            letter.tenant,
            age(letter.created),
            letter.resolution or "open",
            letter.reason,
        ]
        for letter in items
    ]
    return table(headings, rows, right=("AGE",), whole=("DEAD LETTER",), free="REASON")


def _source(letter: DeadLetterView) -> str:
    return letter.attributes.get("pipeline", "") if letter.run else letter.source


def letter_page(page: DeadLetterPage) -> RenderableType:
    letter = page.dead_letter
    head = Text.assemble((letter.id, "bold"), "  ", letter.resolution or "open")
    facts = [f"from {letter.source}", f"tenant {letter.tenant}", f"since {moment(letter.created)}"]
    facts += [f"{name} {value}" for name, value in letter.attributes.items()]
    shown = (
        page.body
        if page.encoding != "json"
        else json.dumps(page.body, indent=2, ensure_ascii=False)
    )
    hint = (
        f"`holdfast dlq redrive {letter.id}` sends it on its way again"
        if letter.closed is None
        else ""
    )
    return Group(
        head,
        Text(" · ".join(facts), style="dim"),
        Text(letter.reason, style="red"),
        *traceback_lines(page.error),
        Text(shown),
        Text(hint),
    )
