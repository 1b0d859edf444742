"""Whole reports by the analyst who asks a model: the real pipeline on the real engine, the fake
server on a socket."""

from __future__ import annotations

import asyncio
import csv
import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.unit.report.llm.harness import Harness, comment, comments, harness, language_model

from holdfast import Holdfast
from holdfast.adapters.llm.address import parse
from holdfast.adapters.llm.client import ModelClient
from holdfast.adapters.memory.blobs import MemoryBlobs
from holdfast.adapters.memory.store import MemoryStore
from holdfast.apps.report import ReportRequest, report
from holdfast.apps.report.analyst import Analysts
from holdfast.apps.report.llm.analyst import LLMAnalyst
from holdfast.apps.report.llm.cost_estimate import Estimate, estimate
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.outputs.json_document import from_json
from holdfast.apps.report.outputs.markdown import markdown
from holdfast.apps.report.outputs.validation import problems
from holdfast.apps.report.page.render import render_page
from holdfast.apps.report.testing.brain import ReportBrain
from holdfast.apps.report.testing.hostile_brain import HostileBrain
from holdfast.apps.report.testing.injections import injections
from holdfast.model.clock import SystemClock
from holdfast.model.run import RunState
from holdfast.testing.fakellm import FakeLLM, by_chance

SAMPLE = Path(__file__).parents[4] / "examples" / "data" / "riverside.csv"
QUESTION = "What should our town do?"


class Only:
    """An app that knows one analyst."""

    def __init__(self, analyst: Any) -> None:
        self._analyst = analyst

    def named(self, name: str) -> Any:
        return self._analyst


class Reports:
    """An app with the report pipeline, and what its runs have asked."""

    def __init__(self, app: Holdfast, harness: Harness) -> None:
        self._app = app
        self.harness = harness
        self.model = harness.model
        self.number = 0

    async def start(self, sources: Sequence[Comment], **options: Any) -> Any:
        self.number += 1
        rows = tuple(
            {"id": entry.id, "comment": entry.text, "interview": entry.speaker} for entry in sources
        )
        request = ReportRequest(
            rows=rows,
            model="openai:fake-1",
            question=QUESTION,
            report_id=f"r{self.number}",
            cruxes=True,
            **options,
        )
        return await self._app.submit(report, request)

    async def make(
        self, sources: Sequence[Comment], **options: Any
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """The report, and the calls that were made for it."""
        before = len(self.harness.fake.calls)
        result = await (await self.start(sources, **options)).result()
        data = await self.harness.blobs.get(result.files["report.json"])
        return json.loads(data or b""), self.harness.asked(before)


def at_work(story: Any, brain: Any = None, **options: Any) -> Any:
    async def whole() -> Any:
        async with harness(brain, **options) as set_up:
            provide: Any = {Analysts: Only(set_up.analyst)}
            async with Holdfast("memory:", [report], blobs=set_up.blobs, provide=provide) as app:
                return await story(Reports(app, set_up))

    return asyncio.run(whole())


def claims_of(report: dict[str, Any]) -> dict[str, list[Any]]:
    """What each comment is quoted with: topic, subtopic, statement, words."""
    by_comment: dict[str, list[Any]] = {comment["id"]: [] for comment in report["comments"]}
    for topic in report["topics"]:
        for subtopic in topic["subtopics"]:
            for claim in subtopic["claims"]:
                for quote in claim["quotes"]:
                    by_comment[quote["comment"]].append(
                        (topic["name"], subtopic["name"], quote["statement"], quote["text"])
                    )
    return {comment: sorted(quotes) for comment, quotes in by_comment.items()}


def price(stats: dict[str, Any]) -> float:
    return (stats["input_tokens"] * 0.15 + stats["output_tokens"] * 0.6) / 1e6


def sample() -> list[Comment]:
    with open(SAMPLE, encoding="utf-8") as file:
        rows = [row["comment-body"] for row in csv.DictReader(file)]
    return [
        comment(str(number), text)
        for number, text in enumerate(dict.fromkeys(rows))
        if text.strip()
    ]


@cache
def report_of_the_sample() -> Any:
    """The report, what was asked for it, what the server counted, and what was estimated before."""

    async def story(reports: Reports) -> Any:
        report, calls = await reports.make(sample(), language="en")
        estimated = estimate(sample(), Brief(question=QUESTION), reports.model, cruxes=True)
        return report, calls, reports.harness.fake.stats(), estimated

    return at_work(story, faults=by_chance(5, malformed=0.1))


def test_a_report_of_the_sample_is_complete_and_quotes_letter_for_letter():
    report, calls, _, _ = report_of_the_sample()
    texts = {comment["id"]: comment["text"] for comment in report["comments"]}
    quotes = [
        quote
        for topic in report["topics"]
        for subtopic in topic["subtopics"]
        for claim in subtopic["claims"]
        for quote in claim["quotes"]
    ]
    assert len(quotes) == report["counts"]["extracted"] > 300
    assert all(
        texts[quote["comment"]][quote["start"] : quote["end"]] == quote["text"] for quote in quotes
    )
    assert calls["requote"] >= 1
    assert report["findings"]
    assert report["coverage"]["placed"] > 0.5
    assert calls["extraction"] <= len(texts) / 10 * 1.6


def test_the_same_comments_again_cost_nothing():
    async def story(reports: Reports) -> Any:
        first, _ = await reports.make(comments(150))
        second, calls = await reports.make(comments(150)[::-1], title="Another title")
        return first, second, calls

    first, second, call_count = at_work(story)
    assert call_count == {}
    assert claims_of(second) == claims_of(first)
    assert second["made"]["cost"] == 0.0


def test_thirty_seven_new_comments_are_paid_for_and_the_groups_that_they_change():
    async def story(reports: Reports) -> Any:
        _, all_ = await reports.make(comments(400))
        _, calls = await reports.make(comments(437))
        return all_, calls

    all_, call_count = at_work(story)
    assert call_count["assignment"] == 1
    assert call_count["extraction"] == 4
    assert "clustering" not in call_count
    assert call_count.get("dedup", 0) <= all_["dedup"]
    assert sum(call_count.values()) < sum(all_.values()) / 3


def test_what_the_run_says_it_cost_is_what_the_server_counted():
    report, _, stats, _ = report_of_the_sample()
    steps = report["made"]["steps"]
    assert sum(step["input_tokens"] for step in steps) == stats["input_tokens"]
    assert sum(step["output_tokens"] for step in steps) == stats["output_tokens"]
    assert sum(step["calls"] for step in steps) == stats["calls"]
    assert report["made"]["cost"] == pytest.approx(price(stats), rel=1e-3)


def test_a_run_pauses_before_its_budget_is_passed():
    async def story(reports: Reports) -> Any:
        run = await reports.start(sample(), budget=0.02)
        info = await run.info()
        while info.state in (RunState.QUEUED, RunState.RUNNING):
            await asyncio.sleep(0.01)
            info = await run.info()
        return info, reports.harness.fake.stats()

    info, stats = at_work(story)
    assert info.state == RunState.PAUSED
    assert 0.005 < price(stats) <= 0.02


def test_stopping_in_the_middle_of_the_claims_costs_at_most_the_calls_in_flight():
    """The first app is closed at once; another one, with an analyst that remembers nothing, goes
    on."""

    async def story() -> Any:
        async with harness(address={"in_flight": 4}, latency=0.02) as set_up:
            store = MemoryStore(SystemClock())
            enough = asyncio.Event()
            set_up.fake.faults = lambda call: (
                enough.set() if set_up.asked().get("extraction", 0) >= 9 else None
            )
            provide: Any = {Analysts: Only(set_up.analyst)}
            async with Holdfast(store, [report], blobs=set_up.blobs, provide=provide) as app:
                run = await Reports(app, set_up).start(comments(200))
                await enough.wait()
                await app.close(grace=0)
            later = set_up.another_model()
            provide = {Analysts: Only(LLMAnalyst(later))}
            async with Holdfast(store, [report], blobs=set_up.blobs, provide=provide) as app:
                result = await (await app.run(run.id)).result()
            await later.aclose()
            texts = [call.text for call in set_up.fake.calls if call.task == "extraction"]
            return result, set_up.asked(), texts

    result, calls, sent_texts = asyncio.run(story())
    assert result.comments == 200
    times = Counter(
        comment["text"]
        for text in sent_texts
        for comment in json.loads(text.splitlines()[1])["comments"]
    )
    assert len(times) == 200
    assert sum(times.values()) <= 200 + 4 * 10
    assert calls["clustering"] == 1
    assert calls["assignment"] == 5


def test_two_hundred_injections_change_nothing_but_their_own_rows():
    hostile = [comment(str(5000 + number), text) for number, text in enumerate(injections())]
    mixed = [
        finding for pair in zip(comments(150), hostile[:150], strict=True) for finding in pair
    ] + hostile[150:]

    async def story(reports: Reports) -> Any:
        report, _ = await reports.make(mixed)
        return report

    async def without(reports: Reports) -> Any:
        report, _ = await reports.make(comments(150))
        return report

    honest = at_work(without, HostileBrain())
    reported = at_work(story, HostileBrain())
    own = claims_of(reported)
    assert len(reported["comments"]) == 150 + len(hostile)
    assert {finding.id: own[finding.id] for finding in comments(150)} == claims_of(honest)
    topics = {topic["id"]: topic for topic in reported["topics"]}
    for topic in honest["topics"]:
        assert topics[topic["id"]]["name"] == topic["name"]
        assert [finding["text"] for finding in topics[topic["id"]]["summary"]] == [
            finding["text"] for finding in topic["summary"]
        ]
    assert [finding["text"] for finding in reported["findings"]] == [
        finding["text"] for finding in honest["findings"]
    ]
    assert [
        (finding["statement"], finding["agree"], finding["disagree"])
        for finding in reported["cruxes"]
    ] == [
        (finding["statement"], finding["agree"], finding["disagree"])
        for finding in honest["cruxes"]
    ]
    hacked = {quote for finding in hostile for quote in own[finding.id]}
    words = {finding.id: finding.text for finding in hostile}
    assert hacked
    assert all(quote[3] in words[finding.id] for finding in hostile for quote in own[finding.id])


def test_comments_in_chinese_become_a_report():
    texts = [
        "計程車司機應該要有更好的保障。",
        "政府不應該禁止新的叫車服務。",
        "叫車服務的費率不透明，乘客很困擾。",
        "計程車的品質參差不齊，政府應該管理。",
        "乘客的安全比價格更重要。",
        "新的服務帶來競爭，計程車會進步。",
    ]
    sources = [
        comment(str(number), f"{text}第{number}號。") for number, text in enumerate(texts * 5)
    ]

    async def story(reports: Reports) -> Any:
        return await reports.make(sources, language="zh-TW")

    report, calls = at_work(story)
    assert report["counts"]["extracted"] >= 30
    assert report["coverage"]["placed"] > 0.5
    assert calls["extraction"] == 3


@pytest.mark.parametrize("seed", range(2))
def test_a_bad_day_at_the_vendors_changes_nothing_in_the_end(seed: int):
    """Answers that are cut, truncated, wrapped, malformed or wrong, and lost calls: the report is
    the same."""
    faults = by_chance(
        seed,
        cut=0.03,
        truncated=0.04,
        fenced=0.1,
        malformed=0.05,
        wrong_types=0.03,
        prose=0.05,
        extra_keys=0.1,
        nan=0.03,
    )

    async def story(reports: Reports) -> Any:
        return await reports.make(comments(60))

    report, _ = at_work(story, ReportBrain(), faults=faults)
    plain, _ = at_work(story, ReportBrain())
    assert report["counts"] == plain["counts"]
    assert claims_of(report) == claims_of(plain)


@pytest.mark.parametrize(
    "fault",
    ["foreign_ids", "duplicate_ids", "markup", "surrogates", "two_answers", "nested", "empty"],
)
def test_hostile_answers_never_reach_the_report(fault: str):
    """One answer in five is a lie of that kind. What can't be used is asked again, and every
    comment stays in."""

    async def story(reports: Reports) -> Any:
        return await reports.make(comments(30))

    report, _ = at_work(story, faults=by_chance(1, **{fault: 0.2}))
    assert len(report["comments"]) == 30
    assert not report["method"]["failed"]
    texts = {comment["id"]: comment["text"] for comment in report["comments"]}
    for comment_id, quotes in claims_of(report).items():
        assert all(text in texts[comment_id] for _, _, _, text in quotes)
    report_text = json.dumps([report["topics"], report["findings"], report["cruxes"]])
    assert "evil.example" not in report_text
    assert "<script" not in report_text
    assert "ghost-" not in report_text


# --- the price before -----------------------------------------------------------------------------


def is_about_right(estimated: Estimate, stats: dict[str, Any]) -> None:
    assert estimated.cost == pytest.approx(price(stats), rel=0.4)
    assert estimated.calls == pytest.approx(stats["calls"], rel=0.4)
    assert estimated.input_tokens == pytest.approx(stats["input_tokens"], rel=0.4)


def test_an_estimate_is_within_forty_percent():
    _, _, stats, estimated = report_of_the_sample()
    is_about_right(estimated, stats)


def test_an_estimate_counts_with_the_topics_that_were_asked_for():
    async def story(reports: Reports) -> Any:
        await reports.make(comments(400), topics=6)
        estimated = estimate(
            comments(400), Brief(question=QUESTION, topics=6), reports.model, cruxes=True
        )
        return estimated, reports.harness.fake.stats()

    is_about_right(*at_work(story))


def test_an_estimate_knows_no_price_that_nobody_knows():
    async def story() -> Any:
        async with FakeLLM(ReportBrain()) as fake:
            client = ModelClient(parse(fake.address()), environment=fake.environment)
            model = language_model(client, MemoryBlobs())
            return estimate(comments(20), Brief(), model, cruxes=False), estimate(
                [], Brief(), model, cruxes=True
            )

    estimated, unpriced = asyncio.run(story())
    assert [step.step for step in estimated.steps] == [
        "clustering",
        "claims",
        "sort_and_deduplicate",
        "summaries",
    ]
    assert estimated.cost is None
    assert estimated.input_tokens > 0
    assert unpriced.comments == 0


def test_where_a_second_model_disagrees_the_report_says_what_to_read():
    async def story(reports: Reports) -> Any:
        return await reports.make(comments(12), reviewer="openai:second?in_flight=2")

    report, calls = at_work(story, Disagreeing())
    assert report["reviewer"] == report["method"]["options"]["reviewer"] == "openai:second"
    assert (calls["review_names"], calls["review_findings"]) == (1, 1)
    topic_names = {topic["id"]: topic["name"] for topic in report["topics"]}
    names = [remark for remark in report["remarks"] if remark["kind"] == "name"]
    assert [(remark["about"], remark["text"]) for remark in names] == [("t1", topic_names["t1"])]
    assert any(remark["kind"] == "finding" for remark in report["remarks"])
    assert all(remark["cites"] for remark in report["remarks"])
    document = from_json(json.dumps(report).encode())
    assert problems(document) == []
    assert "openai:second reviewed the names and findings and disagrees" in markdown(document)
    assert 'id="second-opinion"' in render_page(document)


class Disagreeing(ReportBrain):
    """Objects to the first name and the first finding."""

    def review_names(self, data: Any, system: str) -> Any:
        return {
            "groups": [
                self.objection(entry, "fits", entry["id"] == "t1") for entry in data["groups"]
            ]
        }

    def review_findings(self, data: Any, system: str) -> Any:
        return {
            "findings": [
                self.objection(entry, "holds", entry["id"] == "1") for entry in data["findings"]
            ]
        }

    def objection(self, entry: Any, verdict: str, objects: bool) -> Any:
        numbers = [entry["claims"][0]["number"]] if objects else []
        why = "It says more than people said." if objects else ""
        return {"id": entry["id"], "claims": numbers, "why": why, verdict: not objects}


def test_every_question_has_topics_of_its_own():
    questions = ("What is good here?", "What should change?")

    async def story(reports: Reports) -> Any:
        rows = tuple(
            {questions[0]: first.text, questions[1]: other.text}
            for first, other in zip(comments(10), comments(10, 40), strict=True)
        )
        before = len(reports.harness.fake.calls)
        run = await reports._app.submit(report, ReportRequest(rows=rows, model="openai:fake-1"))
        data = await reports.harness.blobs.get((await run.result()).files["report.json"])
        return json.loads(data or b""), reports.harness.fake.calls[before:]

    reported, calls = at_work(story)
    prompts = [call.system for call in calls if call.task == "clustering"]
    assert [[question in text for question in questions] for text in prompts] == [
        [True, False],
        [False, True],
    ]
    sections = [topic["question"] for topic in reported["topics"] if topic["id"] != "other"]
    assert set(sections) == set(questions)
    assert sections == sorted(sections, key=questions.index)
    belongs = {entry["id"]: entry["question"] for entry in reported["comments"]}
    for topic in reported["topics"]:
        for subtopic in topic["subtopics"]:
            for claim in subtopic["claims"]:
                assert {belongs[quote["comment"]] for quote in claim["quotes"]} == {
                    topic["question"]
                }
    document = from_json(json.dumps(reported).encode())
    assert problems(document) == []
    assert all(f"## *{question}*" in markdown(document) for question in questions)
    assert render_page(document).count('class="asked"') == 2
