"""What strangers typed stays text."""

import json

import pytest
from tests.unit.report.page import dom, hostile

from holdfast.apps.report.page import render_page
from holdfast.apps.report.page.anchors import Anchors
from holdfast.apps.report.page.assets import css_string
from holdfast.apps.report.page.escaping import cleaned, json_block, moment, web_link


@pytest.mark.parametrize(
    "address", [*hostile.LINKS[:-3], "", "ftp://x.example", "mailto:a@b.example", "https://"]
)
def test_only_addresses_of_the_web_become_links(address: str) -> None:
    assert web_link(address) == ""


@pytest.mark.parametrize(
    ("video", "timestamp", "link"),
    [
        ("https://vimeo.com/1", "00:01:38", "https://vimeo.com/1#t=98s"),
        (
            "https://www.youtube.com/watch?v=a",
            "1:02:03",
            "https://www.youtube.com/watch?v=a&t=3723",
        ),
        ("https://youtu.be/a", "75:10", "https://youtu.be/a?t=4510"),
        ("http://x.example/film.mp4", "0:05", "http://x.example/film.mp4#t=5"),
        ("http://x.example/film.mp4", "1545843962285", "http://x.example/film.mp4"),
        (" https://vimeo.com/854538208", "00:00:00", "https://vimeo.com/854538208"),
        ("javascript:alert(1)", "0:05", ""),
    ],
)
def test_a_video_opens_at_its_moment(video: str, timestamp: str, link: str) -> None:
    assert moment(video, timestamp) == link


def test_characters_that_a_page_can_not_hold_are_replaced_one_for_one() -> None:
    text = "a\x00b\r\nc\rd\ud800e\x85f\tg\n"
    assert cleaned(text) == "a\ufffdb \nc\nd\ufffde\ufffdf\tg\n"
    assert len(cleaned(text)) == len(text)


def test_json_in_html_survives_the_trip() -> None:
    value = {"a": "</script><!--&\u2028\u2029", "b": ["<", ">", 'quote " and \\ slash']}
    block = json_block(value)
    assert json.loads(block) == value
    assert not set("<>&\u2028\u2029") & set(block)


@pytest.mark.parametrize("payload", hostile.PAYLOADS)
def test_a_string_of_css_can_not_be_left(payload: str) -> None:
    written = css_string(payload)[1:-1]
    assert not set(written) & set("\"'<>;{}()\n\r/*")


def test_anchors_are_harmless_stable_and_unique() -> None:
    anchor = Anchors()
    assert anchor("g", "g-3f9a") == "g-3f9a"
    assert anchor("t", "other") != anchor("s", "other")
    assert anchor("m", "12") == "m-12"
    assert anchor("m", "m-12") != anchor("m", "12")
    assert anchor("m", "12") == "m-12"
    wild = [anchor("m", payload) for payload in hostile.PAYLOADS]
    assert len(set(wild)) == len(set(hostile.PAYLOADS))
    assert all(name.replace("-", "").isalnum() and name.isascii() for name in wild)


def test_a_hundred_attacks_leave_not_one_element_behind() -> None:
    assert len(hostile.PAYLOADS) >= 100
    document = dom.read(render_page(hostile.hostile()))
    assert {node.tag for node in document} <= set(OURS.split())
    assert len(document.all("script")) == 3
    assert len(document.all("style")) == 2
    assert document.one("title").text == hostile.PAYLOADS[2]


OURS = """
html head meta title link style script body a svg defs pattern rect path symbol circle
use div button nav ol li bdi span main header h1 h2 h3 h4 p dl dt dd i section ul small b fieldset legend input
label figure text foreignobject line figcaption details summary table thead tbody tfoot tr th td article
blockquote form select option datalist q pre code footer dialog kbd mark
"""
