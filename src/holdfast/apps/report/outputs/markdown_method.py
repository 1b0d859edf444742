"""The end of `report.md`: how the report was made, from which rows, and what its limits are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.apps.report.model.document import Report
from holdfast.apps.report.outputs.markdown_text import escape, listed
from holdfast.apps.report.translations import Translations


def method(report: Report, say: Translations, numbers: Mapping[str, int]) -> Iterator[str]:
    """`numbers` are those of the claims."""
    made_by = report.method
    yield f"## {say('method')}"
    yield listed(_particulars(report, say))
    if report.funnel:
        yield f"### {say('funnel')}"
        yield listed(_stages(report, say))
    if made_by.failed:
        yield f"### {say('failed', n=len(made_by.failed))}"
        yield listed(f"{escape(comment)}: {escape(why)}" for comment, why in made_by.failed)
    if made_by.notes:
        yield f"### {say('limits')}"
        yield listed(map(escape, made_by.notes))
    if report.reviewer:
        yield f"### {say('review')}"
        yield from _second_opinion(report, say, numbers)
    if made_by.prompts:
        yield f"### {say('prompts')}"
        changed = {True: f" ({say('customised')})", False: ""}
        yield listed(
            f"{escape(prompt.name)}{changed[prompt.customised]}: {escape(prompt.text)}"
            for prompt in made_by.prompts
        )


def _particulars(report: Report, say: Translations) -> Iterator[str]:
    source, made, coverage = report.source, report.made, report.coverage
    size = say("n.bytes", n=source.bytes)
    made_on = say("made", date=say.date(made.at), software=made.software)
    yield f"{say('analyst')}: {escape(report.method.analyst)}"
    yield f"{say('file')}: {escape(source.filename)} ({size}, SHA-256 {escape(source.sha256)})"
    for name in ("placed", "speaking", "quoted_characters"):
        yield escape(f"{say.percent(getattr(coverage, name))} {say(f'coverage.{name}')}")
    yield escape(made_on)
    yield escape(f"{say('duration')}: {say.duration(made.seconds)}")
    yield escape(f"{say('cost')}: {say.money(made.cost)}")
    yield from (
        f"{escape(name)}: {escape(str(value))}" for name, value in report.method.options.items()
    )


def _stages(report: Report, say: Translations) -> Iterator[str]:
    for stage in report.funnel:
        lost = ", ".join(
            say("loss", n=loss.count, reason=say.named("loss", loss.reason))
            for loss in stage.lost
            if loss.count
        )
        counted = f"{say.named('stage', stage.name)}: {say.number(stage.count)}"
        yield escape(f"{counted} ({lost})" if lost else counted)


def _second_opinion(report: Report, say: Translations, numbers: Mapping[str, int]) -> Iterator[str]:
    kind = "review.some" if report.remarks else "review.none"
    yield escape(say(kind, n=len(report.remarks), model=report.reviewer))
    if report.remarks:
        yield listed(
            f"“{escape(remark.text)}”: {escape(remark.why)}"
            + "".join(f" [{numbers[id]}]" for id in remark.cites if id in numbers)
            for remark in report.remarks
        )
