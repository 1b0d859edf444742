"""Personal data in texts: masked length for length, and nothing else is touched."""

from __future__ import annotations

import time

import pytest

from holdfast.apps.report.reading.masking import FILL, masked

PERSONAL = [
    ("jo.doe+x@example.co.uk", "email"),
    ("taro@例え.jp", "email"),
    *(
        (number, "phone")
        for number in ("555-123-4567", "(555) 123-4567", "+49 170 1234567", "0049 170 1234567")
    ),
    *(
        (number, "phone")
        for number in (
            "020 7946 0958",
            "030/1234567",
            "01 23 45 67 89",
            "5551234567",
            "+14155552671",
        )
    ),
    *(
        (number, "phone")
        for number in ("612 345 678", "0912-345-678", "+1 (415) 555-2671", "555.123.4567")
    ),
    *((number, "phone") for number in ("1-800-555-0199", "+44 (0)20 7946 0958")),
    *(
        (number, "card")
        for number in ("4111 1111 1111 1111", "4111-1111-1111-1111", "378282246310005")
    ),
    ("123-45-6789", "ssn"),
    *((account, "iban") for account in ("DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432")),
    *((address, "ip") for address in ("192.168.0.1", "2001:db8::ff00:42:8329")),
]
HARMLESS = [
    "in 2019-2024 and 1990, 1995, 2000",
    "it costs 1,250,000 dollars or $1000000000 or 1.250.000 € or 1 250 000 francs",
    "a population of 331000000",
    "2024-01-15 10:30 and 15.01.2024 and 01/15/2024",
    "12345 123456 1234567",
    "3.14159265 and 0.123456789",
    "€12345678901",
    "version 1.2.3, ratio 10:30:45, 15%, the 2030 agenda",
    "a@b",
    "5 000 000 000 people and 600 000 000 euros and 2,147,483,647",
    "pages 1000-1200, from 10000 to 20000",
    "1 2 3 4 5 6 7 8",
    "ISBN 978-3-16-148410-0",
    "Article 12 (3) 2016/679",
    "4111 1111 1111 1112",
    "std::vector",
]


@pytest.mark.parametrize(
    ("personal", "label"), PERSONAL, ids=[personal for personal, _ in PERSONAL]
)
@pytest.mark.parametrize("around", ["{}", "Call {} now.", "我的{}就是", "({})"])
def test_personal_data_is_masked_length_for_length(personal, label, around):
    tag = f"[{label}]"
    assert masked(around.format(personal)) == around.format(tag + FILL * (len(personal) - len(tag)))


@pytest.mark.parametrize("text", HARMLESS)
def test_figures_that_people_argue_with_stay(text):
    assert masked(text) == text


def test_what_is_too_short_for_its_label_is_filled():
    assert masked("x a@b.co y") == f"x {FILL * 6} y"


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "1",
        "1 ",
        "1-",
        "a@",
        "a.",
        "::",
        "DE89 ",
        "1.1.",
        "+",
        "( ",
        "@",
        "a@a.",
        "A1",
        "AB12",
        "(1) ",
        "1:",
    ],
)
def test_no_text_takes_long(unit):
    text = unit * (10_000 // len(unit))
    started = time.process_time()
    assert len(masked(text)) == len(text)
    assert time.process_time() - started < 0.5


def test_only_the_text_is_masked(read):
    data = (
        "id,author,comment,contact\n5551234567,a@x.org,write to "
        "a@x.org,a@x.org\n2,b@x.org,b@x.org,\n"
    )
    comment_set = read(data, mask=True)
    first, second = comment_set.comments
    assert (first.id, first.speaker, first.facets) == (
        "5551234567",
        "a@x.org",
        {"contact": "a@x.org"},
    )
    assert first.text == "write to [email]"
    assert (second.speaker, second.text) == ("b@x.org", "[email]")
    assert read(data).texts[0] == "write to a@x.org"


def test_rows_that_were_left_out_are_masked_too(read):
    comment_set = read(
        f"comment\nMy number is 555-123-4567 {'x' * 200}\n", mask=True, max_characters=100
    )
    assert comment_set.rows[0].text.startswith("My number is [phone]█████ xxx")
    assert len(comment_set.rows[0].text) == 120


def test_offsets_stay_what_they_were(read):
    text = "My mail is jo@example.org and I like parks."
    comment_set = read(f"comment\n{text}\n", mask=True)
    start = text.index("I like parks")
    assert comment_set.texts[0][start:] == "I like parks."
