"""The request: one meaning for each way of asking, and the same key for the same question."""

import pytest

from holdfast.apps.report import ReportRequest, Upload
from holdfast.errors import InvalidInput
from holdfast.model.codec import codec_for

ROWS = [{"id": "1", "comment": "More trees", "interview": "Ada"}]
JOB = {
    "config": {
        "firebaseDetails": {"reportId": "r-123", "userId": "u-1"},
        "llm": {"model": "gpt-4o-mini"},
        "instructions": {
            "systemInstructions": "Be kind.",
            "clusteringInstructions": "Find topics.",
            "extractionInstructions": "Find claims.",
            "dedupInstructions": "Merge.",
            "summariesInstructions": "Sum up.",
            "cruxInstructions": "Find cruxes.",
            "outputLanguage": "French",
        },
        "options": {"cruxes": True, "sortStrategy": "numClaims"},
    },
    "data": ROWS,
    "reportDetails": {
        "title": "Trees",
        "description": "d",
        "question": "What now?",
        "filename": "trees.csv",
    },
}


def request(**more) -> ReportRequest:
    return codec_for(ReportRequest).validate({"rows": ROWS, **more})


def upload(*parts: str) -> Upload:
    return Upload(filename="a.csv", sha256="ab", bytes=2, parts=parts)


def test_the_job_message_of_seed_000_is_understood():
    request = codec_for(ReportRequest).validate(JOB)
    assert (request.report_id, request.key) == ("r-123", "r-123")
    assert (request.model, request.language, request.cruxes, request.sort) == (
        "openai:gpt-4o-mini",
        "fr",
        True,
        "claims",
    )
    assert (request.title, request.question) == ("Trees", "What now?")
    assert request.rows == tuple(ROWS)
    assert sorted(request.prompts) == [
        "clustering",
        "crux",
        "dedup",
        "extraction",
        "summaries",
        "system",
    ]


@pytest.mark.parametrize(("model", "address"), [
    ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
    ("gemini-2.5-flash", "google:gemini-2.5-flash"),
    ("openai:gpt-4o", "openai:gpt-4o"),
    ("", "local:"),
])  # fmt: skip
def test_a_bare_model_name_finds_its_vendor(model, address):
    job = {**JOB, "config": {**JOB["config"], "llm": {"model": model}}}
    assert codec_for(ReportRequest).validate(job).model == address


def test_the_same_question_has_the_same_key_wherever_the_bytes_are():
    first = ReportRequest(file=upload("default/uploads/x"))
    other = ReportRequest(file=upload("acme/uploads/y"), budget=5.0, fresh=True)
    assert first.key == other.key
    assert first.key != ReportRequest(file=upload("default/uploads/x"), cruxes=True).key


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"rows": None}, "either a file or rows"),
        ({"file": upload("x")}, "not both"),
        ({"prompts": {"sumaries": "x"}}, "no prompt 'sumaries'; known: system, clustering"),
        ({"budget": 0}, "budget"),
        ({"topic": 3}, "topic: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_request_is_refused_with_what_is_wrong(more, message):
    with pytest.raises(InvalidInput, match=message):
        request(**more)


def test_a_report_without_a_language_speaks_that_of_the_comments():
    assert request().brief("de").language == "de"
    assert request().brief("und").language == "en"
    assert request(language="fr").brief("de").language == "fr"
