"""A second model reads names and findings, and only what it disagrees with is kept."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.report.llm.harness import BRIEF, TOPICS, Harness, group, run_story

from holdfast.apps.report import ReportRequest
from holdfast.apps.report.model.remark import Remark, RemarkKind
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.testing.brain import ReportBrain
from holdfast.testing.fakellm import Fixed

FARES, TREES = group("Fares should fall", "ann", "bob"), group("Nobody asked for shade", "cat")
FINDING = Sentence("Everybody wants free buses.", (FARES.id,))


def reviewed(brain: Any, findings: Any = (FINDING,)) -> tuple[list[Remark], list[str]]:
    async def story(harness: Harness) -> Any:
        groups = {"t1": [FARES], "t2": [TREES]}
        remarks = await harness.analyst.review(TOPICS, groups, findings, BRIEF, harness.ctx)
        return remarks, [call.task for call in harness.fake.calls]

    return run_story(story, brain)


def said(id: str, verdict: str, right: bool, claims: list[int], why: str) -> dict[str, Any]:
    return {"id": id, "claims": claims, "why": why, verdict: right}


def test_what_fits_and_holds_is_not_remarked_on():
    names = {"groups": [said("t1", "fits", True, [], ""), said("t2", "fits", True, [], "x")]}
    findings = {"findings": [said("1", "holds", True, [], "")]}
    assert reviewed(Fixed(review_names=names, review_findings=findings))[0] == []


def test_a_disagreement_says_what_a_person_should_read():
    names = {"groups": [said("t2", "fits", False, [3, 99], "It takes a side."),
                        said("t9", "fits", False, [1], "There is no such topic.")]}  # fmt: skip
    findings = {"findings": [said("1", "holds", False, [], "Cheaper is not free.")]}
    remarks, tasks = reviewed(Fixed(review_names=names, review_findings=findings))
    assert remarks == [
        Remark(RemarkKind.NAME, "t2", "Parks", "It takes a side.", (TREES.id,)),
        Remark(RemarkKind.FINDING, "1", FINDING.text, "Cheaper is not free.", (FARES.id,)),
    ]
    assert tasks == ["review_names", "review_findings"]


def test_no_findings_are_not_asked_about():
    assert reviewed(ReportBrain(), ())[1] == ["review_names"]


def test_the_reviewer_is_a_language_model():
    with pytest.raises(ValidationError, match="has to be a language model"):
        ReportRequest(rows=({"comment": "More trees"},), reviewer="local:")
