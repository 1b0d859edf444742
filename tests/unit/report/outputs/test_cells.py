"""No cell is calculated, and nothing is lost by it."""

from __future__ import annotations

import csv
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apps.report.outputs.cells import guard, table, unguard

NASTY = st.text(
    alphabet=st.sampled_from(list("=+-@＝＋－＠﹢ \t\r\n;'\"\u200b\ufeff\u00a0a1)(,")), max_size=12
)
TEXTS = st.one_of(st.text(), NASTY)


def dangerous(cell: str) -> bool:
    """What spreadsheets are known to calculate, written down independently of the code."""
    if cell[:1] in ("\t", "\r", "\n"):
        return True
    text = cell.lstrip(' \u00a0\u200b\ufeff"')
    return unicodedata.normalize("NFKC", text[:1]) in ("=", "+", "-", "@")


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "＝1",
        "－1",
        "  =1",
        '"=1"',
        "\ufeff=1",
        "\u200b@x",
        "\tx",
    ],
)
def test_a_cell_that_could_be_calculated_gets_an_apostrophe_in_front(text: str) -> None:
    assert guard(text).startswith("'")
    assert unguard(guard(text)) == text


@pytest.mark.parametrize(
    "text", ["", "plain", "a=b", "3 - 2", "'quoted'", "don't", "yes ;-)", "e-mail", "'tis", ";=)"]
)
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert guard(text) == text


def test_nothing_inside_a_cell_is_changed() -> None:
    assert guard("harmless;=1+1;end") == "harmless;=1+1;end"
    assert guard("list:\n- one\n- two") == "list:\n- one\n- two"


@given(TEXTS)
def test_no_guarded_cell_is_dangerous_and_at_most_an_apostrophe_is_added(text: str) -> None:
    cell = guard(text)
    assert not dangerous(cell)
    assert cell in (text, f"'{text}")


@given(TEXTS)
def test_guarded_text_comes_back_exactly(text: str) -> None:
    assert unguard(guard(text)) == text


@given(TEXTS, TEXTS)
def test_different_texts_stay_different(first: str, second: str) -> None:
    assert (guard(first) == guard(second)) == (first == second)


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
            st.integers(),
        )
    )
)
def test_a_table_is_read_back_by_any_csv_reader(rows: list[tuple[str, int]]) -> None:
    data = table(("text", "number"), rows)
    assert data.startswith(b"\xef\xbb\xbftext,number\r\n")
    header, *records = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    assert header == ["text", "number"]
    assert [(unguard(text), int(number)) for text, number in records] == rows


def test_numbers_stay_numbers_and_nothing_is_an_empty_cell() -> None:
    assert table(("a", "b", "c"), [(-1, 0.25, None)]) == "\ufeffa,b,c\r\n-1,0.25,\r\n".encode()
