"""Two reports are compared by what people a_comment, whatever topics and claims are called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from holdfast.apps.report.model.document import Report
from holdfast.apps.report.outputs.comparison import compare, describe

Build = Callable[..., Report]


def test_a_report_does_not_differ_from_itself(report: Report) -> None:
    comparison = compare(report, report)
    assert comparison.empty
    assert (comparison.topics.same, comparison.claims.same) == (3, 4)
    assert describe(comparison) == "The two reports say the same."


def test_new_comments_change_the_support_of_claims_and_add_others(
    report: Report, build: Build, a_comment: type
) -> None:
    later = build(
        [
            *_comments_of(report, a_comment),
            a_comment("Gil", "Close it!", (("cars", "Close the street", "Close it!"),)),
            a_comment("Hal", "Benches", (("trees", "More benches", "Benches"),)),
        ]
    )
    comparison = compare(report, later)
    assert len(comparison.comments_added) == 2
    assert comparison.comments_removed == ()
    assert [claim.statement for claim in comparison.claims.added] == ["More benches"]
    assert [(change.after.statement, change.people) for change in comparison.claims.changed] == [
        ("Close the street", 1)
    ]
    assert {(change.after.name, change.people) for change in comparison.topics.changed} == {
        ("Traffic", 1),
        ("Green spaces", 1),
    }
    text = describe(comparison)
    assert "comments: 6 → 8 (+2)" in text
    assert "Comments: 2 new, 0 gone" in text
    assert "  + More benches (1 person)" in text
    assert "  ~ Close the street (2 → 3 people)" in text


def test_a_topic_that_is_only_called_otherwise_is_the_same_topic(report: Report) -> None:
    first, *others = report.topics
    renamed = replace(report, topics=(replace(first, id="t9", name="Cars and streets"), *others))
    comparison = compare(report, renamed)
    assert (comparison.topics.added, comparison.topics.removed) == ((), ())
    assert [change.renamed for change in comparison.topics.changed] == [True]
    assert "  ~ Traffic → Cars and streets (3 people)" in describe(comparison)


def test_comments_are_recognised_although_their_ids_have_shifted(
    report: Report, build: Build, a_comment: type
) -> None:
    later = build([a_comment("New", "Hello, all of you"), *_comments_of(report, a_comment)])
    comparison = compare(report, later)
    assert comparison.comments_added == ("1",)
    assert comparison.comments_removed == ()
    assert not comparison.claims.added
    assert not comparison.claims.removed


def test_the_same_words_twice_are_two_comments(build: Build, a_comment: type) -> None:
    once, twice = (
        build([a_comment("Ann", "Yes")]),
        build([a_comment("Ann", "Yes"), a_comment("Bo", "Yes")]),
    )
    assert compare(once, twice).comments_added == ("2",)
    assert compare(twice, once).comments_removed == ("2",)


def test_what_went_is_named(report: Report, build: Build, a_comment: type) -> None:
    earlier = build([entry for entry in _comments_of(report, a_comment) if entry.speaker != "Cy"])
    comparison = compare(report, earlier)
    assert [claim.statement for claim in comparison.claims.removed] == ["Keep the street open"]
    assert "  - Keep the street open (1 person)" in describe(comparison)


def test_the_rest_is_never_taken_for_a_topic(build: Build, a_comment: type) -> None:
    before = build([a_comment("Ann", "Close it", (("other", "Close", "Close it"),))])
    after = build([a_comment("Ann", "Close it", (("cars", "Close", "Close it"),))])
    comparison = compare(before, after)
    assert [topic.id for topic in comparison.topics.added] == ["traffic"]
    assert [topic.id for topic in comparison.topics.removed] == ["other"]


def test_a_comment_can_give_no_orders_to_the_terminal(build: Build, a_comment: type) -> None:
    hostile = build([a_comment("Ann", "x\x1b[2Jy", (("cars", "x\x1b[2Jy\nz", "x\x1b[2Jy"),))])
    text = describe(compare(build([], []), hostile))
    assert "\x1b" not in text
    assert "  + x [2Jy z (1 person)" in text


def test_long_lists_are_cut_and_counted(build: Build, a_comment: type) -> None:
    many = build(
        [
            a_comment(f"P{at}", f"word{at}", (("cars", f"Claim {at}", f"word{at}"),))
            for at in range(30)
        ]
    )
    assert "    … and 10 more" in describe(compare(build([], []), many))


def test_shares_are_told_in_percent(report: Report) -> None:
    better = replace(report, coverage=replace(report.coverage, placed=0.9))
    assert describe(compare(report, better)).startswith("comments in a topic: 66.7% → 90.0%")


def _comments_of(report: Report, a_comment: type) -> list:
    """The comments of a report as its builder takes them."""
    claims: dict[str, list[tuple[str, str, str]]] = {}
    for topic in report.topics:
        for subtopic in topic.subtopics:
            for claim in subtopic.claims:
                for quote in claim.quotes:
                    claims.setdefault(quote.comment, []).append(
                        (subtopic.id, claim.statement, quote.text)
                    )
    return [
        a_comment(comment.speaker, comment.text, tuple(claims.get(comment.id, ())), comment.video)
        for comment in report.comments
    ]
