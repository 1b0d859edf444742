"""`report.md` is complete, its links lead somewhere, and no comment can do anything in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from holdfast.apps.report.model.document import Report
from holdfast.apps.report.model.opinion import Mark, OpinionGroup, Opinions, VotedComment
from holdfast.apps.report.model.stance import Stance, VoteTally
from holdfast.apps.report.outputs.markdown import markdown
from holdfast.apps.report.outputs.markdown_text import escape
from holdfast.apps.report.translations import Translations

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
JOINER = "\u2060"
MARKS = st.text(
    alphabet=st.sampled_from(list("*_`[]()<>#!|~$^\\&;:/@.-+=0123 \n\t{}\"'ahtpw")), max_size=30
)
TEXTS = st.one_of(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf"])), MARKS)

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![x](http://example.org/p.png)",
    "[click](javascript:alert(1))",
    "<http://example.org>",
    "https://example.org and www.example.org",
    "# Heading",
    "- item",
    "1. item",
    "> quotation",
    "```\ncode\n```",
    "    code",
    "| a | b |\n|---|---|",
    "---",
    "a\n===",
    "[ref]: http://example.org",
    "&lt;b&gt; &copy; &#60;",
    "line\\",
    "*a* _b_ **c** `d` ~~e~~ $x^2$",
    "[^1]: note",
    "mailto:eve@example.org",
]


def tokens(text: str) -> list[Token]:
    return [entry for token in PARSER.parse(text) for entry in (token, *(token.children or ()))]


def shown(text: str) -> str:
    return "".join(token.content for token in tokens(text) if token.type == "text").replace(
        JOINER, ""
    )


def squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("before", ["", "- ", "> ", "## ", "  > "])
def test_hostile_text_is_shown_as_it_was_written(before: str, text: str) -> None:
    token_list = tokens(before + escape(text))
    allowed = {
        "paragraph_open",
        "paragraph_close",
        "inline",
        "text",
        "bullet_list_open",
        "bullet_list_close",
    }
    allowed |= {
        "list_item_open",
        "list_item_close",
        "blockquote_open",
        "blockquote_close",
        "heading_open",
        "heading_close",
    }
    assert {token.type for token in token_list} <= allowed
    assert shown(before + escape(text)) == squeezed(text)


@given(TEXTS)
def test_any_text_is_only_text(text: str) -> None:
    escaped = escape(text)
    assert {token.type for token in tokens(escaped)} <= {
        "paragraph_open",
        "paragraph_close",
        "inline",
        "text",
    }
    assert shown(escaped) == squeezed(text).replace(JOINER, "")
    assert "\n" not in escaped
    assert not {"<", ">"} & set(
        escaped
    )  # a careless renderer, or a browser, needs no more than one of them


def test_renderers_find_no_address_to_turn_into_a_link() -> None:
    escaped = escape(
        "see https://example.org, www.example.org, eve@example.org, @eve, mailto:eve, xmpp:eve"
    )
    assert not re.search(r"://|www\.|@\w|mailto:\w|xmpp:\w", escaped)
    assert (
        escaped.replace(JOINER, "")
        == "see https://example.org, www.example.org, eve@example.org, @eve, mailto:eve, xmpp:eve"
    )


def test_control_characters_and_turned_writing_are_left_out() -> None:
    assert escape("a\x1b[31mb\u202ec\x00d") == "a\\[31mbcd"


def test_the_report_is_complete(report: Report) -> None:
    text = markdown(report)
    plain = shown(text)
    for topic in report.topics:
        assert topic.name in plain
        for claim in (claim for subtopic in topic.subtopics for claim in subtopic.claims):
            assert f"{claim.number}. {claim.statement}" in plain
            for quote in claim.quotes:
                assert squeezed(quote.text) in plain
    for part in (
        "Key findings",
        "At a glance",
        "What divides people",
        "How this was made",
        "Limits",
        "Prompts",
    ):
        assert part in plain
    assert "3 agree · 2 disagree · 1 unsure" in text
    assert "Cost: US$0.0100" in plain


def test_every_link_leads_to_an_anchor_of_the_same_file(report: Report) -> None:
    text = markdown(report)
    anchors = set(re.findall(r'<a id="([^"]+)"></a>', text))
    links = [str(token.attrs["href"]) for token in tokens(text) if token.type == "link_open"]
    assert {link.removeprefix("#") for link in links} <= anchors
    assert "#g-1" in links


def test_the_only_html_in_it_is_our_own_anchors(report: Report) -> None:
    html = [
        token.content
        for token in tokens(markdown(report))
        if token.type in ("html_inline", "html_block")
    ]
    assert html
    assert all(re.fullmatch(r'<a id="[A-Za-z0-9_-]+">|</a>', part) for part in html)


def test_no_more_than_three_quotes_are_shown(build: Callable[..., Report], a_comment: type) -> None:
    five = build(
        [a_comment(f"P{at}", "Close it.", (("cars", "Close it", "Close it."),)) for at in range(5)],
        [],
    )
    text = markdown(five)
    assert text.count("“Close it\\.”") + text.count("“Close it.”") == 3
    assert "… 2 more in quotes.csv" in text


def test_it_is_in_the_language_of_the_report(report: Report) -> None:
    text = markdown(replace(report, language="zh-TW"))
    words = Translations("zh")
    for key in ("findings", "glance", "cruxes", "method", "funnel", "limits", "figure.people"):
        assert words(key) in text
    assert not re.search("Key findings|claims? by|in a topic|agree", text.split("Prompts")[0])


def test_numbers_have_separators_and_people_who_are_numbers_are_participants(
    build: Callable[..., Report], a_comment: type
) -> None:
    report = build([a_comment("305", "Close it.", (("cars", "Close it", "Close it."),))], [])
    counts = replace(report.counts, people=1305, voters=2047, votes=82_941)
    text = markdown(replace(report, counts=counts))
    assert "People: **1,305** · Voters: **2,047** · Votes: **82,941**" in text
    assert "“Close it\\.” — Participant 305, row 1" in text.replace("it.”", "it\\.”")


def test_opinion_groups_come_first_with_their_shares_and_links_to_claims(report: Report) -> None:
    text = markdown(replace(report, opinions=divided_over(report)))
    assert text.index("2 groups") < text.index("## Key findings") < text.index("### Group A")
    claim = report.topics[0].subtopics[0].claims[0]
    assert "People fall into 2 groups that vote alike." in text
    assert f"](#{claim.id}) (A 90% agree · B 20% agree)" in text
    assert "### What parts the groups" not in text  # it is listed as a mark already
    assert "### Group A (10 people)" in text


def divided_over(report: Report) -> Opinions:
    """Two groups that part over the first comment."""
    votes = VoteTally(9, 1, 0), VoteTally(2, 8, 0)
    return Opinions(
        20,
        20,
        (OpinionGroup("A", 10, (Mark("1", Stance.AGREE, 0.9, 0.2),)), OpinionGroup("B", 10)),
        (VotedComment("1", VoteTally(11, 9, 0), votes, 0.6),),
        splits=("1",),
    )


def test_statements_of_a_local_analyst_carry_no_mark(report: Report) -> None:
    local = replace(report, method=replace(report.method, generated=False))
    assert "◆" in markdown(report)
    assert "◆" not in markdown(local)


def test_a_report_of_nothing_is_still_a_report(build: Callable[..., Report]) -> None:
    assert markdown(build([], [])).startswith("# The street\n")


@given(st.lists(MARKS, min_size=1, max_size=3))
def test_no_comment_changes_the_shape_of_the_report(
    build: Callable[..., Report], a_comment: type, texts: list[str]
) -> None:
    def shape(words: list[str]) -> list[str]:
        everybody = [
            a_comment("Ann", f"x{text}x", (("cars", f"c{at}{text}", f"x{text}x"),))
            for at, text in enumerate(words)
        ]
        return [
            token.type
            for token in tokens(markdown(build(everybody, [])))
            if token.type not in ("text", "softbreak")
        ]

    assert shape(texts) == shape(["plain"] * len(texts))
