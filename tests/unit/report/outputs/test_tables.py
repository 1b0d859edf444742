"""The tables of a report join with one another and account for every row."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import pytest

from holdfast.apps.report.model.comment import Row
from holdfast.apps.report.model.document import Report
from holdfast.apps.report.outputs.cells import unguard
from holdfast.apps.report.outputs.tables import csv_files

Table = list[dict[str, str]]


def read(data: bytes) -> Table:
    rows = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    return [{name: unguard(cell) for name, cell in row.items()} for row in rows]


@pytest.fixture(scope="module")
def tables(report: Report, rows: list[Row]) -> dict[str, Table]:
    return {name: read(data) for name, data in csv_files(report, rows).items()}


def test_all_seven_tables_are_there(tables: dict[str, Table]) -> None:
    assert set(tables) == {
        "topics.csv",
        "claims.csv",
        "quotes.csv",
        "cruxes.csv",
        "crux_matrix.csv",
        "groups.csv",
        "rows.csv",
    }


def test_quotes_have_exactly_the_promised_columns(report: Report, rows: list[Row]) -> None:
    first = csv_files(report, rows)["quotes.csv"].decode("utf-8-sig").split("\r\n")[0]
    assert (
        first
        == "quote_id,claim_id,comment_id,row,speaker,start,end,text,topic,subtopic,claim,guarded"
    )


def test_offsets_are_characters_of_the_comment_as_given(
    report: Report, tables: dict[str, Table]
) -> None:
    texts = {comment.id: comment.text for comment in report.comments}
    assert len(tables["quotes.csv"]) == 6
    for quote in tables["quotes.csv"]:
        assert texts[quote["comment_id"]][int(quote["start"]) : int(quote["end"])] == quote["text"]


def test_quotes_join_with_claims_and_claims_with_topics(tables: dict[str, Table]) -> None:
    claims = {claim["claim_id"]: claim for claim in tables["claims.csv"]}
    topics = {(topic["topic"], topic["subtopic"]) for topic in tables["topics.csv"]}
    for quote in tables["quotes.csv"]:
        assert claims[quote["claim_id"]]["claim"] == quote["claim"]
        assert (quote["topic"], quote["subtopic"]) in topics
    assert [claim["number"] for claim in tables["claims.csv"]] == ["1", "2", "3", "4"]
    assert claims["g-1"]["agrees"] == "3"
    assert claims["g-2"]["agrees"] == ""


def test_every_row_of_the_input_says_what_became_of_it(tables: dict[str, Table]) -> None:
    rows = tables["rows.csv"]
    assert [row["row"] for row in rows] == ["1", "2", "3", "4", "5", "6", "7", "8"]
    assert rows[0] | {"text": ""} == {
        "row": "1",
        "comment_id": "1",
        "fate": "kept",
        "reason": "",
        "topics": "Traffic; Green spaces",
        "claims": "2",
        "quotes": "2",
        "text": "",
    }
    assert rows[5]["reason"] == "no claim was found in it"
    assert (rows[6]["fate"], rows[6]["reason"]) == ("empty", "The cell is empty.")
    assert rows[7]["text"].startswith("Close the street")


def test_a_comment_that_failed_says_why(report: Report, rows: list[Row]) -> None:
    from dataclasses import replace

    failed = replace(report, method=replace(report.method, failed=(("6", "the model refused"),)))
    assert (
        read(csv_files(failed, rows)["rows.csv"])[5]["reason"]
        == "could not be analysed: the model refused"
    )


def test_the_matrix_has_a_column_for_each_crux_and_a_row_for_each_speaker(
    tables: dict[str, Table],
) -> None:
    crux = tables["cruxes.csv"][0]
    assert (crux["topic"], crux["subtopic"], crux["agreeing"], crux["claim_ids"]) == (
        "Traffic",
        "Cars",
        "Ann; Bo",
        "g-1",
    )
    assert {row["speaker"]: row[crux["crux_id"]] for row in tables["crux_matrix.csv"]} == {
        "Ann": "agree",
        "Bo": "agree",
        "Cy": "disagree",
        "Vic": "unclear",
    }


def test_hostile_text_is_text(report: Report, rows: list[Row]) -> None:
    files = csv_files(report, rows)
    assert b"'=HYPERLINK" in files["rows.csv"]
    assert b"'=SUM(1;-2)" in files["claims.csv"]


def test_the_long_beginning_of_a_comment_is_cut(
    build: Callable[..., Report], a_comment: type, rows_of: Callable
) -> None:
    long = build([a_comment("Ann", "word " * 100)], [])
    assert read(csv_files(long, rows_of(long))["rows.csv"])[0]["text"] == ("word " * 40) + "…"


def test_a_report_of_nothing_still_has_all_tables(build: Callable[..., Report]) -> None:
    for data in csv_files(build([], []), []).values():
        assert data.count(b"\r\n") == 1
