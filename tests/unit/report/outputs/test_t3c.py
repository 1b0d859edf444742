"""The export for Talk to the City has every field its viewer reads, and every reference leads
somewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apps.report.model.document import Report
from holdfast.apps.report.outputs.t3c import t3c, utf16

COLOURS = {
    "violet",
    "blueSea",
    "blueSky",
    "greenLeaf",
    "greenLime",
    "yellow",
    "red",
    "purple",
    "brown",
}
STEPS = {
    "input",
    "sanitization_filter",
    "meaningfulness_filter",
    "claims_extraction",
    "deduplication",
    "crux_generation_validation",
}
ACTIONS = {"received", "accepted", "rejected", "modified", "deduplicated"}


# --- a validator of the shape ---------------------------------------------------------------------


class Shape:
    """An object with these members and no others; one whose name here ends with `_` may be
    missing."""

    def __init__(self, **members: Any) -> None:
        self.required = {name: kind for name, kind in members.items() if not name.endswith("_")}
        self.optional = {name[:-1]: kind for name, kind in members.items() if name.endswith("_")}

    def check(self, value: Any, at: str) -> None:
        assert isinstance(value, dict), at
        missing, unknown = (
            self.required.keys() - value.keys(),
            value.keys() - self.required.keys() - self.optional.keys(),
        )
        assert not missing, f"{at} lacks {missing}"
        assert not unknown, f"{at} has unknown {unknown}"
        for name, kind in (self.required | self.optional).items():
            if name in value:
                check(value[name], kind, f"{at}.{name}")


def check(value: Any, kind: Any, at: str) -> None:
    if isinstance(kind, Shape):
        kind.check(value, at)
    elif isinstance(kind, list):  # a list of one kind
        assert isinstance(value, list), at
        for index, entry in enumerate(value):
            check(entry, kind[0], f"{at}[{index}]")
    elif isinstance(kind, tuple):  # [tag, value], one of several
        assert isinstance(value, list), at
        assert len(value) == 2, at
        tags = dict(kind)
        assert value[0] in tags, f"{at}: {value[0]}"
        check(value[1], tags[value[0]], f"{at}[1]")
    elif isinstance(kind, set):
        assert value in kind, f"{at}: {value!r}"
    else:
        assert isinstance(value, kind), f"{at}: {value!r}"
        assert not isinstance(value, bool), at


NUMBER = int | float
REFERENCE = Shape(
    id=str,
    sourceId=str,
    interview=str,
    data=(
        ("text", Shape(startIdx=int, endIdx=int)),
        ("video", Shape(link=str, beginTimestamp=str, endTimestamp_=str)),
    ),
)
QUOTE = Shape(id=str, text=str, reference=REFERENCE)
SIMILAR = Shape(id=str, title=str, number=int, quotes=[QUOTE], similarClaims=[Shape()])
CLAIM = Shape(id=str, title=str, number=int, quotes=[QUOTE], similarClaims=[SIMILAR])
SUBTOPIC = Shape(id=str, title=str, description=str, claims=[CLAIM])
TOPIC = Shape(
    id=str,
    title=str,
    description=str,
    summary_=str,
    context_=str,
    topicColor=COLOURS,
    subtopics=[SUBTOPIC],
)
SOURCE = Shape(
    id=str,
    interview=str,
    data=(("text", Shape(text=str)), ("video", Shape(text=str, link=str, timestamp=str))),
)
CRUX = Shape(
    topic=str,
    subtopic=str,
    cruxClaim=str,
    agree=[str],
    disagree=[str],
    no_clear_position=[str],
    explanation=str,
    agreementScore=NUMBER,
    disagreementScore=NUMBER,
    controversyScore=NUMBER,
    speakersInvolved=int,
    totalSpeakersInSubtopic=int,
)
SCORE = Shape(topic=str, averageControversy=NUMBER, subtopicCount=int, totalSpeakers=int)
MATRIX = Shape(speakers=[str], cruxLabels=[str], matrix=[[{"agree", "disagree", "no_position"}]])
ADD_ONS = Shape(subtopicCruxes=[CRUX], topicScores=[SCORE], speakerCruxMatrix=MATRIX)
DATA = Shape(
    title=str,
    description=str,
    date=str,
    topics=[TOPIC],
    sources=[SOURCE],
    addOns_=ADD_ONS,
    questionAnswers_=[Shape(question=str, answer=str)],
)
METADATA = Shape(startTimestamp=int, duration=NUMBER, totalCost=str, author=str, organization=str)
ENTRY = Shape(
    entryId=str,
    entryType=str,
    commentId_=str,
    textPreview=str,
    interview_=str,
    step=STEPS,
    action=ACTIONS,
    reason_=str,
    timestamp=str,
    commentLength_=int,
    claimsExtracted_=int,
    claimIds_=[str],
    topicAssignments_=[str],
    primaryClaimId_=str,
    mergedClaimIds_=[str],
)
SUMMARY = Shape(
    rejectedBySanitization=int,
    rejectedByMeaningfulness=int,
    rejectedByClaimsExtraction=int,
    deduplicated=int,
    accepted=int,
)
AUDIT = Shape(
    version={"1.0"},
    reportId=str,
    createdAt=str,
    inputCommentCount=int,
    finalQuoteCount=int,
    modelName=str,
    entries=[ENTRY],
    summary=SUMMARY,
)
PROMPTS = Shape(
    systemInstructions=str,
    clusteringInstructions=str,
    extractionInstructions=str,
    dedupInstructions=str,
    summariesInstructions=str,
    cruxInstructions_=str,
)
OUTPUT = Shape(
    data=(("v0.2", DATA),), metadata=(("v0.2", METADATA),), auditLog=AUDIT, promptsUsed_=PROMPTS
)


def javascript_slice(text: str, start: int, end: int) -> str:
    """`text.slice(start, end)` where strings are UTF-16."""
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")


def check_references(output: dict[str, Any]) -> None:
    data = output["data"][1]
    sources = {source["id"]: source for source in data["sources"]}
    claims = [
        claim
        for topic in data["topics"]
        for similarclaim in topic["subtopics"]
        for claim in similarclaim["claims"]
    ]
    quotes = [quote for claim in claims for quote in claim["quotes"]]
    for quote in quotes:
        reference = quote["reference"]
        source = sources[reference["sourceId"]]
        assert source["interview"] == reference["interview"]
        assert reference["data"][0] == source["data"][0]
        if reference["data"][0] == "text":
            span = reference["data"][1]
            assert (
                javascript_slice(source["data"][1]["text"], span["startIdx"], span["endIdx"])
                == quote["text"]
            )
    for ids in (
        [quote["id"] for quote in quotes],
        [quote["reference"]["id"] for quote in quotes],
        [claim["id"] for claim in claims]
        + [similarclaim["id"] for claim in claims for similarclaim in claim["similarClaims"]],
        list(sources),
        [entry["entryId"] for entry in output["auditLog"]["entries"]],
    ):
        assert len(set(ids)) == len(ids)
    assert sorted(claim["number"] for claim in claims) == list(range(1, len(claims) + 1))


def check_add_ons(data: dict[str, Any]) -> None:
    add_ons = data["addOns"]
    titles = {
        (topic["title"], subtopic["title"])
        for topic in data["topics"]
        for subtopic in topic["subtopics"]
    }
    for crux in add_ons["subtopicCruxes"]:
        assert (crux["topic"], crux["subtopic"]) in titles
        sides = [set(crux[side]) for side in ("agree", "disagree", "no_clear_position")]
        assert sum(map(len, sides)) == len(set().union(*sides))
        assert all(
            ":" in speaker and speaker.split(":")[0].isdecimal() for speaker in set().union(*sides)
        )
        least = min(crux["agreementScore"], crux["disagreementScore"])
        assert crux["controversyScore"] == pytest.approx(2 * least, abs=0.0002)
        assert all(
            0 <= crux[score] <= 1
            for score in ("agreementScore", "disagreementScore", "controversyScore")
        )
    matrix = add_ons["speakerCruxMatrix"]
    assert len(matrix["matrix"]) == len(matrix["speakers"])
    assert all(len(row) == len(matrix["cruxLabels"]) for row in matrix["matrix"])
    assert matrix["cruxLabels"] == [
        f"{crux['topic']} → {crux['subtopic']}" for crux in add_ons["subtopicCruxes"]
    ]


def validated(report: Report) -> dict[str, Any]:
    output = json.loads(t3c(report))
    OUTPUT.check(output, "output")
    check_references(output)
    if "addOns" in output["data"][1]:
        check_add_ons(output["data"][1])
    return output


# --- tests ----------------------------------------------------------------------------------------


def test_the_export_has_the_shape_its_viewer_reads(report: Report) -> None:
    output = validated(report)
    assert list(output) == ["data", "metadata", "auditLog", "promptsUsed"]
    assert output["promptsUsed"]["dedupInstructions"] == "Do dedup."


def test_offsets_count_utf_16_code_units_with_the_end_excluded(report: Report) -> None:
    topics = validated(report)["data"][1]["topics"]
    trees = next(topic for topic in topics if topic["title"] == "Green spaces")["subtopics"][0][
        "claims"
    ][0]
    own = next(
        quote
        for topic in report.topics
        for entry in topic.subtopics
        for claim in entry.claims
        for quote in claim.quotes
        if quote.text == "plant trees!"
    )
    span = trees["quotes"][0]["reference"]["data"][1]
    assert (span["startIdx"], span["endIdx"]) == (
        own.start + 2,
        own.end + 2,
    )  # two bicycles are two units more


def test_a_video_is_opened_where_the_speaker_is_heard(report: Report) -> None:
    data = validated(report)["data"][1]
    source = next(source for source in data["sources"] if source["interview"] == "Dee")
    assert source["data"] == [
        "video",
        {"text": "More trees 🌳 please", "link": "https://example.org/v/1", "timestamp": "0:01:02"},
    ]
    quote = next(
        quote
        for topic in data["topics"]
        for entry in topic["subtopics"]
        for claim in entry["claims"]
        for quote in claim["quotes"]
        if quote["reference"]["interview"] == "Dee"
    )
    assert quote["reference"]["data"] == [
        "video",
        {"link": "https://example.org/v/1", "beginTimestamp": "0:01:02"},
    ]


def test_a_link_that_is_no_web_page_is_not_passed_on(
    build: Callable[..., Report], a_comment: type
) -> None:
    hostile = build(
        [a_comment("Ann", "Close it", (("cars", "Close", "Close it"),), "javascript:alert(1)")], []
    )
    assert validated(hostile)["data"][1]["sources"][0]["data"] == ["text", {"text": "Close it"}]


def test_topics_come_with_the_most_speakers_first(report: Report) -> None:
    turned = replace(report, topics=tuple(reversed(report.topics)))
    topics = json.loads(t3c(turned))["data"][1]["topics"]
    assert [topic["title"] for topic in topics] == ["Traffic", "Green spaces", "Other"]
    assert topics[0]["topicColor"] == "violet"


def test_merged_claims_keep_every_quote_once_and_every_wording(report: Report) -> None:
    claim = validated(report)["data"][1]["topics"][0]["subtopics"][0]["claims"][0]
    assert [quote["text"] for quote in claim["quotes"]] == [
        "Close the street 🚲🚲",
        "close it to cars",
    ]
    assert [similarclaim["title"] for similarclaim in claim["similarClaims"]] == [
        "Close the street, says Ann",
        "Close the street, says Bo",
    ]
    assert all(not similarclaim["quotes"] for similarclaim in claim["similarClaims"])


def test_speakers_are_written_with_an_id_and_voters_too(report: Report) -> None:
    add_ons = validated(report)["data"][1]["addOns"]
    assert add_ons["speakerCruxMatrix"]["speakers"] == ["0:Ann", "1:Bo", "2:Cy", "6:Vic"]
    assert add_ons["speakerCruxMatrix"]["matrix"][3] == ["no_position"]
    assert add_ons["topicScores"] == [
        {"topic": "Traffic", "averageControversy": 0.5, "subtopicCount": 1, "totalSpeakers": 3}
    ]


@pytest.mark.parametrize(
    ("basis", "explanation"),
    [
        ("votes", "People voted: 2 agree, 1 disagree, 1 pass."),
        ("tension", "A possible tension"),
        ("claims", "Some need"),
    ],
)
def test_an_explanation_says_what_a_crux_rests_on(
    report: Report, basis: str, explanation: str
) -> None:
    changed = replace(report, cruxes=(replace(report.cruxes[0], basis=basis),))
    assert validated(changed)["data"][1]["addOns"]["subtopicCruxes"][0]["explanation"].startswith(
        explanation
    )


def test_the_audit_log_accounts_for_every_row(report: Report) -> None:
    audit = validated(report)["auditLog"]
    summary = audit["summary"]
    assert audit["inputCommentCount"] == 8
    assert audit["finalQuoteCount"] == 6
    assert summary == {
        "rejectedBySanitization": 0,
        "rejectedByMeaningfulness": 2,
        "rejectedByClaimsExtraction": 1,
        "deduplicated": 2,
        "accepted": 5,
    }
    assert sum(summary.values()) - summary["deduplicated"] == audit["inputCommentCount"]
    merges = [entry for entry in audit["entries"] if entry["step"] == "deduplication"]
    assert [len(entry["mergedClaimIds"]) for entry in merges] == [2, 2]


def test_figures_are_what_the_report_says(report: Report) -> None:
    metadata = validated(report)["metadata"][1]
    assert metadata["duration"] == 12_500
    assert metadata["startTimestamp"] == 1_767_323_045_000 - 12_500
    assert metadata["totalCost"] == "$0.0100"
    unknown = replace(report, made=replace(report.made, cost=None))
    assert validated(unknown)["metadata"][1]["totalCost"] == "unknown"


def test_findings_and_summaries_carry_the_numbers_of_their_claims(report: Report) -> None:
    data = validated(report)["data"][1]
    assert data["questionAnswers"] == [
        {
            "question": "What should become of the street?",
            "answer": "Most people want to close the street. [1]",
        }
    ]
    assert data["topics"][0]["summary"] == "People speak about Traffic. [1]"


def test_prompts_are_left_out_where_there_were_none(report: Report) -> None:
    local = replace(report, method=replace(report.method, prompts=()))
    assert "promptsUsed" not in validated(local)


def test_a_report_of_nothing_is_valid(build: Callable[..., Report]) -> None:
    assert validated(build([], []))["data"][1]["topics"] == []


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.data())
def test_any_quote_of_any_text_is_found_by_its_viewer(
    build: Callable[..., Report], a_comment: type, text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    assert javascript_slice(text, utf16(text, start), utf16(text, end)) == text[start:end]
    validated(build([a_comment("Ann", text, (("cars", "Something", text[start:end]),))], []))


def test_the_validator_can_fail(report: Report) -> None:
    output = json.loads(t3c(report))
    output["data"][1]["topics"][0]["subtopics"][0]["claims"][0]["quotes"][0]["reference"]["data"][
        1
    ]["endIdx"] -= 1
    with pytest.raises(AssertionError):
        check_references(output)
    del output["data"][1]["topics"][0]["topicColor"]
    with pytest.raises(AssertionError, match="topicColor"):
        OUTPUT.check(output, "output")
