"""The page as a document: whole, self-contained, and true to the report."""

import itertools
import json
import re
from base64 import b64encode
from dataclasses import replace
from functools import cache
from hashlib import sha256

import pytest
from tests.unit.report.page import dom, hostile, languages, samples

from holdfast.apps.report.model.document import Report, VoteCount
from holdfast.apps.report.page import content, render_page

REPORTS = {
    "small": samples.small,
    "without a model, votes or cruxes that were voted on": lambda: samples.small(
        False, False, "tension"
    ),
    "large": lambda: samples.large(300, 900),
    "hostile": hostile.hostile,
    "empty": hostile.empty,
    "bare": samples.bare,
    "Chinese": languages.chinese,
    "Arabic": languages.arabic,
}


@cache
def page(name: str) -> dom.Node:
    return dom.read(render_page(REPORTS[name]()))


every_report = pytest.mark.parametrize("name", REPORTS)


@every_report
def test_ids_are_unique_and_every_link_inside_the_page_leads_somewhere(name: str) -> None:
    ids = [node.attributes["id"] for node in page(name) if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    links = {node.attributes["href"] for node in page(name).all("a") + page(name).all("use")}
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)


@every_report
def test_nothing_is_styled_scripted_or_loaded_from_an_attribute(name: str) -> None:
    for node in page(name):
        assert "style" not in node.attributes, node
        assert not [key for key in node.attributes if key.startswith("on")], node
        assert "src" not in node.attributes, node
        assert node.tag not in ("img", "iframe", "object", "embed", "base", "video"), node


@every_report
def test_links_lead_into_the_page_to_files_beside_it_or_to_the_web(name: str) -> None:
    for link in page(name).all("a"):
        assert re.match(
            r"#|https?://[^\s\"<>]+$|[a-z_]+\.(csv|json|md)$", link.attributes["href"]
        ), link


@every_report
def test_the_policy_lets_in_our_styles_and_scripts_and_nothing_else(name: str) -> None:
    policy = next(
        node.attributes["content"]
        for node in page(name).all("meta")
        if node.attributes.get("http-equiv")
    )
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    assert rules["default-src"] == ["'none'"]
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        run = [
            node
            for node in page(name).all(tag)
            if node.attributes.get("type") != "application/json"
        ]
        hashes = [
            f"'sha256-{b64encode(sha256(node.text.encode()).digest()).decode()}'" for node in run
        ]
        assert rules[rule] == hashes


@every_report
def test_the_page_can_be_written_to_a_file(name: str) -> None:
    assert render_page(REPORTS[name]()).encode()


@every_report
def test_search_engines_are_asked_to_stay_away(name: str) -> None:
    assert any(
        node.attributes.get("name") == "robots" and "noindex" in node.attributes["content"]
        for node in page(name).all("meta")
    )


@every_report
def test_headings_never_skip_a_level(name: str) -> None:
    levels = [
        int(node.tag[1]) for node in page(name).one("main") if re.fullmatch("h[1-6]", node.tag)
    ]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@every_report
def test_the_data_block_is_json_that_html_can_not_misread(name: str) -> None:
    block = page(name).id("data").text
    assert json.loads(block)["words"]["found"]
    assert not set("<>&\u2028\u2029") & set(block)


@pytest.mark.parametrize("name", ["small", "large", "hostile", "Chinese", "Arabic"])
def test_every_comment_is_in_the_page_once_whole_and_letter_by_letter(name: str) -> None:
    report, section = REPORTS[name](), page(name).one(kind="all-comments")
    texts = [node.text for node in section.all("p", "text")]
    assert texts == [_as_shown(comment.text) for comment in report.comments]


@pytest.mark.parametrize("name", ["small", "large", "hostile", "Chinese", "Arabic"])
def test_every_quote_is_under_its_claim_and_its_offsets_find_it_in_the_comment(name: str) -> None:
    document = page(name)
    texts = {
        node.attributes["id"]: node.one("p", "text").text
        for node in document.one(kind="all-comments").all("li")
    }
    for claim in document.all("li", "claim"):
        for item in claim.all("ul", "quotes"):
            for quote in item.all("li"):
                link = quote.one("a", "ctx").attributes
                start, end = map(int, link["data-at"].split("-"))
                quotes = quote.all("blockquote") or [claim.one("p", "statement")]
                words = texts[link["href"][1:]][start:end]
                assert content.alike(words, quotes[0].text.removesuffix("\xa0◆"))


def _as_shown(text: str) -> str:
    text = re.sub("\r\n", " \n", text).replace("\r", "\n")
    return re.sub("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text)


def test_words_of_a_model_are_marked_and_quotes_are_not() -> None:
    for kind in ("finding", "statement", "summary", "why"):
        assert all("◆" in node.text for node in page("small").all("p", kind))
    assert "◆" not in "".join(node.text for node in page("small").all("blockquote"))
    assert "AI" in page("small").one("p", "notice").text


def test_without_a_model_nothing_is_marked_and_the_page_says_whose_words_they_are() -> None:
    local = page("without a model, votes or cruxes that were voted on")
    assert "◆" not in local.one("body").text
    assert "participants' own" in local.one("p", "notice").text


def test_hints_are_not_called_findings() -> None:
    local = page("without a model, votes or cruxes that were voted on")
    assert local.id("cruxes-title").text == "Possible tensions"
    assert "Hints, not findings" in local.one("p", "hint").text
    assert page("small").id("cruxes-title").text == "What divides people"


def test_a_finding_cites_its_claims_by_number_and_leads_to_them() -> None:
    report = samples.small()
    numbers = {
        claim.id: claim.number
        for topic in report.topics
        for part in topic.subtopics
        for claim in part.claims
    }
    for finding, node in zip(report.findings, page("small").all("p", "finding"), strict=True):
        chips = node.all("a", "chip")
        assert [chip.text for chip in chips] == [str(numbers[id]) for id in finding.cites]
        assert [chip.attributes["href"] for chip in chips] == [f"#{id}" for id in finding.cites]


def test_the_tables_under_the_charts_hold_the_same_figures() -> None:
    rows = [
        [cell.text for cell in row.all("td", "num")]
        for row in page("small").one("table").all("tr", "sum")
    ]
    assert rows == [[str(topic.people), str(topic.claims)] for topic in samples.small().topics]


def test_an_unknown_price_is_unknown_and_never_nothing() -> None:
    costs = {
        row.one("th").text: row.all("td")[-1].text
        for row in page("small").one("table", "steps").all("tr")[1:]
    }
    assert costs["sort and deduplicate"] == "unknown"
    assert costs["claims"] == "US$0.0523"
    assert costs["Total"] == "unknown"


def test_every_loss_is_told_with_its_reason_and_an_example() -> None:
    text = " ".join(page("small").one(kind="funnels").text.split())
    assert "−4 quote not found in the comment" in text
    assert "Buses are essential infrastructure" in text
    assert "−1 said twice by the same person" in text


def test_a_file_without_comments_gives_a_page_that_says_what_became_of_its_rows() -> None:
    text = page("empty").one("main").text
    assert "no comment that could be analysed" in text
    assert "3 rows that were not analysed" in text
    assert not [
        node
        for node in page("empty")
        if node.attributes.get("id") in ("quotes", "glance", "topics")
    ]


def test_a_video_is_linked_at_its_moment_and_other_addresses_are_not_linked() -> None:
    writer = samples.Writer()
    quotes = [
        writer.quote(
            "Seen",
            "Kim",
            "[[I saw it]] there",
            video="https://vimeo.com/854538208",
            timestamp="00:01:38",
        ),
        writer.quote(
            "Seen", "Lee", "[[I saw it]] too", video="javascript:alert(1)", timestamp="00:01:38"
        ),
    ]
    topic = samples.topic(
        "t-0", "A", "", [samples.subtopic("s-0", "B", "", [writer.claim("Seen", quotes)])]
    )
    links = dom.read(render_page(writer.report([topic]))).all("a", "video")
    assert [link.attributes["href"] for link in links] == ["https://vimeo.com/854538208#t=98s"]


# --- budgets --------------------------------------------------------------------------------------


def test_style_and_script_keep_to_their_budgets() -> None:
    document = page("bare")
    assert sum(len(node.text.encode()) for node in document.all("style")) <= 40_000
    assert sum(len(node.text.encode()) for node in document.all("script")) <= 40_000


def test_the_page_without_content_keeps_to_its_budget() -> None:
    assert len(render_page(samples.bare()).encode()) <= 150_000


def test_with_very_many_quotes_only_the_first_of_each_claim_are_in_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(content, "QUOTES_INLINE", 90)
    report = samples.large(4, 100)
    document = dom.read(render_page(report))
    for claim in document.all("li", "claim"):
        assert sum(len(item.all("li")) for item in claim.all("ul", "quotes")) == content.QUOTES_EACH
        assert "5 more in quotes.csv" in claim.text


def test_with_very_many_comments_only_quoted_ones_are_in_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(content, "COMMENTS_INLINE", 5)
    report = samples.large(4, 8)
    silent = replace(report.comments[0], id="silent", row=99, text="Nothing to add")
    report = replace(
        report,
        comments=(*report.comments, silent),
        counts=replace(report.counts, comments=len(report.comments) + 1),
    )
    section = dom.read(render_page(report)).one(kind="all-comments")
    assert len(section.all("p", "text")) == 8
    assert "1 comment that is not quoted is in report.json only" in section.text


def test_the_same_report_gives_the_same_page() -> None:
    assert render_page(samples.small()) == render_page(samples.small())


# --- languages ------------------------------------------------------------------------------------


def test_the_page_speaks_the_language_of_the_report_and_people_keep_theirs() -> None:
    arabic = page("Arabic").one("html")
    korean = dom.read(render_page(languages.translated("ko-KR"))).one("html")
    assert arabic.attributes | {"class": ""} == {"lang": "ar", "dir": "rtl", "class": ""}
    assert korean.attributes["lang"] == "en"
    assert {node.attributes.get("lang") for node in korean.all("blockquote")} == {"ko-KR"}
    assert not [node for node in arabic.all("blockquote") if "lang" in node.attributes]


@pytest.mark.parametrize(
    ("language", "word"),
    [
        ("fr-CA", "L’essentiel"),
        ("de", "Das Wichtigste"),
        ("ja", "主な結果"),
        ("zh-TW", "主要發現"),
    ],
)
def test_a_dictionary_is_found_by_the_first_part_of_the_code(language: str, word: str) -> None:
    document = dom.read(render_page(languages.translated(language)))
    assert document.one("html").attributes["lang"] == language
    assert document.id("findings-title").text == word


def test_a_language_that_is_none_does_no_harm() -> None:
    document = page("hostile").one("html")
    assert document.attributes["lang"] == "en"


# --- people ---------------------------------------------------------------------------------------


def _report_by(groups: dict[str, int], **facets: str) -> Report:
    writer = samples.Writer({"group": list(groups)})
    for at, (name, size) in enumerate(groups.items()):
        for number in range(size):
            writer.traits[f"{name} {number}"] = {"group": name, "id": f"{at}-{number}"} | facets
    claims = [
        writer.claim(
            "It rains",
            [writer.quote("It rains", speaker, "[[It rains]]") for speaker in writer.traits],
        )
    ]
    topic = samples.topic("t-0", "Weather", "", [samples.subtopic("s-0", "Rain", "", claims)])
    report = writer.report([topic])
    return replace(report, facets=(*report.facets, replace(report.facets[0], name="id")))


def test_groups_of_fewer_than_five_are_never_named() -> None:
    html = render_page(_report_by({"north": 40, "south": 9, "secret": 4}))
    trait = dom.read(html).one(kind="trait")
    assert [node.text for node in trait.all("dt")] == ["north", "south"]
    assert "1 small group is not shown" in trait.text
    assert html.count("secret") == html.count("secret ")  # only in the names of its people


def test_small_groups_are_marked() -> None:
    trait = dom.read(render_page(_report_by({"north": 40, "south": 9}))).one(kind="trait")
    assert [("low sample" in row.text) for row in trait.all("dd")] == [False, True]


def test_columns_in_which_nearly_everybody_differs_are_left_alone() -> None:
    document = dom.read(render_page(_report_by({"north": 40, "south": 9})))
    assert [node.one("h3").text for node in document.all(kind="trait")] == ["group"]


def test_a_column_that_makes_only_one_group_is_left_alone() -> None:
    document = dom.read(render_page(_report_by({"north": 40, "secret": 4})))
    assert not document.all(kind="trait")


def test_without_columns_there_is_no_section_about_people() -> None:
    assert not [node for node in page("bare") if node.attributes.get("id") == "people"]


def test_a_claim_that_few_voted_on_ranks_behind_one_that_many_did() -> None:
    report = samples.small()
    topic = report.topics[0]
    part = topic.subtopics[0]
    claim = replace(part.claims[3], votes=VoteCount(2, 0, 0, 0.0))
    part = replace(part, claims=(*part.claims[:3], claim))
    report = replace(
        report, topics=(replace(topic, subtopics=(part, *topic.subtopics[1:])), *report.topics[1:])
    )
    ranked = dom.read(render_page(report)).one(kind="ranked")
    assert claim.statement not in ranked.text
