"""What `check` and `doctor` have found."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.ports.health import Finding

MARKS = {"ok": ("✔", "green"), "warn": ("!", "yellow bold"), "fail": ("✘", "red bold")}


def check_lines(items: Sequence[Finding]) -> RenderableType:
    """One line for each check, and the whole of each problem: nobody should have to ask twice."""
    ordered = sorted(items, key=lambda finding: finding.status != "ok")
    marks = [
        Text.assemble(MARKS[finding.status], " ", (f"{finding.check:<10} ", "bold"), finding.seen)
        for finding in ordered
    ]
    return Group(*marks)


def finding_text(finding: Finding, is_first: bool, width: int) -> Text:
    """What was seen and, unless all is well, why it matters and how to fix it. The first of an area
    names it."""
    mark, color = MARKS[finding.status]
    lead = (f"{finding.area if is_first else '':<13} ", "bold")
    line = Text.assemble(lead, (f"{mark} ", color), f"{finding.check:<18} ", no_wrap=True)
    parts = [("", finding.seen, "" if finding.status == "ok" else color)]
    if finding.status != "ok":
        parts += [
            (label, text, "")
            for label, text in (("why  ", finding.why), ("fix  ", finding.fix))
            if text
        ]
    indent = line.cell_len
    for label, text, style in parts:
        room = max(20, width - indent - len(label))
        wrapped = wrap(text, room, break_long_words=False, break_on_hyphens=False)
        rest = "\n" + " " * (indent + len(label))
        line.append("\n" + " " * indent if label else "").append(label, "dim").append(
            rest.join(wrapped), style
        )
    return line


def sum_of_findings(findings: Sequence[Finding]) -> Text:
    def number(status: str, name: str) -> str:
        count = sum(finding.status == status for finding in findings)
        return f"{count or 'no'} {name}{'' if count == 1 else 's'}"

    worst = next(
        (status for status in ("fail", "warn") if any(f.status == status for f in findings)),
        "ok",
    )
    text = f"{len(findings)} checks: {number('fail', 'problem')}, {number('warn', 'warning')}"
    return Text(f"\n{text}", style=MARKS[worst][1])
