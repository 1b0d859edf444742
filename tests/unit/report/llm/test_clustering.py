"""Topics over all comments, and every comment in its place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.llm.harness import BRIEF, FakeContext, Harness, comment, comments, run_story

from holdfast.apps.report.llm.analyst import LLMAnalyst
from holdfast.apps.report.model.brief import Brief, GivenTopic
from holdfast.apps.report.model.taxonomy import OTHER, Clustering
from holdfast.apps.report.testing.brain import ReportBrain
from holdfast.apps.report.testing.hostile_brain import HostileBrain
from holdfast.apps.report.testing.injections import injections
from holdfast.ports.language_model import Malformed
from holdfast.testing.fakellm import Minimal, when

SOME = comments(120)


def places(clustering: Clustering) -> dict[str, tuple[str, ...]]:
    of: dict[str, tuple[str, ...]] = {}
    for placement in clustering.placements:
        of[placement.comment] = (*of.get(placement.comment, ()), placement.subtopic)
    return of


def named(clustering: Clustering) -> dict[str, tuple[str, ...]]:
    """Where each comment is, by names."""
    names = {
        subtopic.id: f"{topic.name}/{subtopic.name}"
        for topic in clustering.topics
        for subtopic in topic.subtopics
    }
    return {
        item: tuple(names.get(subtopic, subtopic) for subtopic in where)
        for item, where in places(clustering).items()
    }


def clustered(
    source: Any = SOME, brief: Brief = BRIEF, brain: Any = None
) -> tuple[Clustering, dict[str, int]]:
    async def story(harness: Harness) -> Any:
        return await harness.analyst.cluster(source, brief, harness.ctx), harness.asked()

    return run_story(story, brain)


class Forgetful(ReportBrain):
    """Passes over comments about parks, and invents ids for those about buses."""

    def assignment(self, data: Any, system: str) -> Any:
        texts = {comment["id"]: comment["text"] for comment in data["comments"]}
        honest = super().assignment(data, system)["comments"]
        assigned = [comment for comment in honest if "parks" not in texts[comment["id"]]]
        for answer in assigned:
            if "buses" in texts[answer["id"]]:
                answer["subtopics"] = ["t77.1", "HACKED", ""]
        twice = [{"id": comment["id"], "subtopics": ["t1.1"]} for comment in assigned]
        return {"comments": [*assigned, {"id": "999", "subtopics": ["t1.1"]}, *twice]}


def test_every_comment_is_placed_in_subtopics_that_exist():
    clustering, _ = clustered()
    ids = {subtopic.id for topic in clustering.topics for subtopic in topic.subtopics} | {OTHER}
    assert set(places(clustering)) == {source.id for source in SOME}
    assert {subtopic.subtopic for subtopic in clustering.placements} <= ids
    assert all(1 <= len(where) <= 3 for where in places(clustering).values())
    assert all(
        (subtopic.start, subtopic.end) == (0, len(SOME[int(subtopic.comment)].text))
        for subtopic in clustering.placements
    )


def test_forty_comments_share_a_call():
    _, calls = clustered()
    assert calls == {"clustering": 1, "assignment": 3}


def test_a_large_set_is_read_in_samples_that_are_merged():
    clustering, calls = clustered([comment(source.id, source.text * 6) for source in comments(200)])
    assert calls["clustering"] == 2
    assert calls["merging"] == 1
    assert len(clustering.topics) > 2


def test_the_order_of_the_comments_does_not_matter():
    first, _ = clustered(SOME)
    other, _ = clustered(SOME[::-1])
    assert first.topics == other.topics
    assert places(first) == places(other)


def test_given_topics_and_their_number_are_honoured():
    brief = replace(
        BRIEF,
        topics=4,
        given=(GivenTopic("Buses", subtopics=("Fares", "Buses")), GivenTopic("Ghosts")),
    )
    clustering, _ = clustered(brief=brief)
    assert [topic.name for topic in clustering.topics][:2] == ["Buses", "Ghosts"]
    assert [buse.name for buse in clustering.topics[0].subtopics] == ["Fares", "Buses"]
    assert len(clustering.topics) == 4


def test_what_the_model_passes_over_or_makes_up_is_asked_once_more_and_is_then_other():
    clustering, calls = clustered(brain=Forgetful())
    lost = [source.id for source in SOME if "parks" in source.text or "buses" in source.text]
    assert all(places(clustering)[source] == (OTHER,) for source in lost)
    assert calls["assignment"] >= 3 + len(lost)
    ids = [source.id for source in SOME if "taxes" in source.text]
    assert any(places(clustering)[source] != (OTHER,) for source in ids)


def test_too_many_in_other_lead_to_more_topics():
    class Narrow(ReportBrain):
        def clustering(self, data: Any, system: str) -> Any:
            return {"topics": super().clustering(data, system)["topics"][:1]}

    clustering, calls = clustered(brain=Narrow())
    assert calls["extending"] == 1
    assert len(clustering.topics) == 3
    assert [topic.id for topic in clustering.topics] == ["t1", "t2", "t3"]
    assert sum(where == (OTHER,) for where in places(clustering).values()) < 100


def test_the_same_text_is_asked_about_once():
    clustering, calls = clustered(
        [comment(str(number), SOME[number % 40].text) for number in range(200)]
    )
    assert calls["assignment"] == 1
    assert len(places(clustering)) == 200


def refusing(word: str, task: str) -> Any:
    """A filter in front of the model that does not let a word through."""
    return when(lambda call: call.task == task and word in call.text, "refusal")


def test_a_sample_that_is_refused_is_read_in_parts():
    async def story(harness: Harness) -> Any:
        return await harness.analyst.cluster(SOME, BRIEF, harness.ctx), harness.asked()

    clustering, calls = run_story(story, faults=refusing("(no. 77)", "clustering"))
    assert len(clustering.topics) > 2
    assert 5 < calls["clustering"] < 20
    assert set(places(clustering)) == {source.id for source in SOME}


def test_proposals_that_nobody_merges_are_put_together_by_name():
    async def story(harness: Harness) -> Any:
        return await harness.analyst.cluster(
            [comment(source.id, source.text * 6) for source in comments(200)], BRIEF, harness.ctx
        )

    faults = when(lambda call: call.task in ("merging", "extending"), "refusal")
    clustering = run_story(story, faults=faults)
    names = [topic.name for topic in clustering.topics]
    assert len(names) == len(set(names)) > 2


def test_a_comment_that_is_refused_is_placed_in_other_and_disturbs_nobody():
    async def story(harness: Harness) -> Any:
        return await harness.analyst.cluster(SOME, BRIEF, harness.ctx)

    plain, _ = clustered()
    clustering = run_story(story, faults=refusing("(no. 77)", "assignment"))
    assert places(clustering) == {**places(plain), "77": (OTHER,)}


def test_an_answer_without_topics_is_a_failure():
    with pytest.raises(Malformed, match="there is no topic in the answer"):
        clustered(brain=Minimal())


def test_no_comments_are_no_topics():
    assert clustered([]) == (Clustering((), ()), {})


# --- a second time --------------------------------------------------------------------------------


def again(second: Any, brief: Brief = BRIEF, later: Brief = BRIEF, tenant: str = "acme") -> Any:
    """Two reports one after the other, by two processes: what they found, and what the second one
    asked."""

    async def story(harness: Harness) -> Any:
        first = await harness.analyst.cluster(comments(200), brief, harness.ctx)
        await harness.model.aclose()
        before = len(harness.fake.calls)
        model = harness.another_model()
        analyst = LLMAnalyst(model)
        clustering = await analyst.cluster(second, later, FakeContext(tenant=tenant, run="run-2"))
        await model.aclose()
        return first, clustering, harness.asked(before)

    return run_story(story)


def test_the_same_comments_cost_nothing():
    first, second, calls = again(comments(200)[::-1])
    assert calls == {}
    assert second.topics == first.topics
    assert places(second) == places(first)


def test_thirty_seven_new_comments_are_one_call_and_the_topics_stay():
    first, second, calls = again(comments(237))
    assert calls == {"assignment": 1}
    assert second.topics == first.topics
    assert "200 of these 237" in second.notes[0]
    assert places(first).items() <= places(second).items()


def test_new_rows_and_speakers_with_the_same_words_are_not_new():
    same = [
        replace(comment, id=f"x{comment.id}", row=comment.row + 7, speaker="somebody")
        for comment in comments(200)
    ]
    _, second, calls = again(same)
    assert calls == {}
    assert len(places(second)) == 200


def test_other_comments_have_topics_of_their_own():
    _, _, calls = again(comments(200, start=150))
    assert calls["clustering"] == 1


@pytest.mark.parametrize(
    "later",
    [
        replace(BRIEF, question="Something else?"),
        replace(BRIEF, language="de"),
        replace(BRIEF, topics=3),
        replace(BRIEF, given=(GivenTopic("Money"),)),
        replace(BRIEF, fresh=True),
    ],
)
def test_another_question_is_asked_anew(later: Brief):
    _, _, calls = again(comments(200), later=later)
    assert calls["clustering"] >= 1


def test_another_way_to_place_them_leaves_the_topics():
    later = replace(BRIEF, prompts={"assignment": "Place them differently."})
    first, second, calls = again(comments(200), later=later)
    assert calls == {"assignment": 5}
    assert first.topics == second.topics


def test_another_title_is_no_other_question():
    assert again(comments(200), later=replace(BRIEF, title="Now with a better title"))[2] == {}


def test_tenants_share_nothing():
    assert again(comments(200), tenant="other")[2]["clustering"] == 1


def test_the_newest_fitting_report_wins():
    async def story(harness: Harness) -> Any:
        for number in (200, 215, 230):
            await harness.analyst.cluster(comments(number), BRIEF, FakeContext(run=f"run-{number}"))
        before = len(harness.fake.calls)
        clustering = await harness.analyst.cluster(comments(240), BRIEF, FakeContext(run="run-240"))
        return clustering, harness.asked(before)

    cached, calls = run_story(story)
    assert "230 of these 240" in cached.notes[0]
    assert calls == {"assignment": 1}


def test_topics_that_were_added_later_are_found_again():
    """New comments about something else add topics; the old ones keep their places without being
    asked again."""
    more = [
        comment(str(1000 + number), f"Kites fly over roof {number}, kites are lovely.")
        for number in range(37)
    ]

    async def story(harness: Harness) -> Any:
        first = await harness.analyst.cluster(comments(200), BRIEF, harness.ctx)
        second = await harness.analyst.cluster(
            [*comments(200), *more], BRIEF, FakeContext(run="run-2")
        )
        before = len(harness.fake.calls)
        third = await harness.analyst.cluster(
            [*comments(200), *more], BRIEF, FakeContext(run="run-3")
        )
        return first, second, third, harness.asked(before)

    first, second, third, calls = run_story(story)
    assert second.topics[: len(first.topics)] == first.topics
    assert any("kites" in topic.name.lower() for topic in second.topics)
    assert third.topics == second.topics
    assert calls == {}


def test_a_damaged_memory_is_passed_over():
    async def story(harness: Harness) -> Any:
        await harness.analyst.cluster(SOME, BRIEF, harness.ctx)
        await harness.model.aclose()
        for key in harness.blobs._objects:
            harness.blobs._objects[key] = b"{"
        before = len(harness.fake.calls)
        model = harness.another_model()
        analyst = LLMAnalyst(model)
        clustering = await analyst.cluster(SOME, BRIEF, harness.ctx)
        await model.aclose()
        return clustering, harness.asked(before)

    cached, calls = run_story(story)
    assert calls == {"clustering": 1, "assignment": 3}
    assert len(places(cached)) == 120


# --- hostile comments -----------------------------------------------------------------------------


def test_two_hundred_injections_change_neither_the_topics_nor_anybody_elses_place():
    hostile = [comment(f"h{number}", text) for number, text in enumerate(injections())]
    honest, _ = clustered(SOME, brain=HostileBrain())
    clustering, calls = clustered([*SOME, *hostile], brain=HostileBrain())
    assert clustering.topics == honest.topics
    assert {
        item: where for item, where in named(clustering).items() if not item.startswith("h")
    } == named(honest)
    assert {item.id for item in hostile} <= set(places(clustering))
    assert calls["assignment"] == 3 + len(hostile)
