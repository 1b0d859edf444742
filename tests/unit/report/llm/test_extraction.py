"""Claims and quotes: several comments in one call, each with its own answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.llm.harness import (
    BRIEF,
    TOPICS,
    FakeContext,
    Harness,
    comment,
    comments,
    run_story,
    whole,
)

from holdfast.apps.report.llm.analyst import LLMAnalyst
from holdfast.apps.report.llm.extraction import COMMENTS_PER_CALL
from holdfast.apps.report.llm.text_cleaning import truncate
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.claim import ClaimDraft
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.taxonomy import OTHER, Subtopic, Topic
from holdfast.apps.report.testing.brain import ReportBrain
from holdfast.apps.report.testing.hostile_brain import HostileBrain
from holdfast.apps.report.testing.injections import injections
from holdfast.errors import Pause, Transient
from holdfast.model.usage import Usage
from holdfast.testing.fakellm import Fault, always, in_turn, when

HONEST = ReportBrain(altered=0, invented=0)


async def read(
    harness: Harness,
    sources: list[Comment],
    brief: Brief = BRIEF,
    ctx: FakeContext | None = None,
    *subtopics: str,
) -> dict[str, list[ClaimDraft]]:
    """The claims of comments, all asked at once; an item of their own each."""
    context = ctx or harness.ctx
    all_drafts = await asyncio.gather(
        *(
            harness.analyst.extract(
                draft, whole(draft, *(subtopics or ("t1.1", "t2.1"))), TOPICS, brief, context.item()
            )
            for draft in sources
        )
    )
    return {draft.id: drafts for draft, drafts in zip(sources, all_drafts, strict=True)}


def reading(
    sources: list[Comment], brain: Any = HONEST, **options: Any
) -> tuple[dict[str, list[ClaimDraft]], dict[str, int]]:
    async def story(harness: Harness) -> Any:
        return await read(harness, sources), harness.asked()

    return run_story(story, brain, **options)


def test_every_claim_has_a_quote_from_its_own_comment_and_one_of_its_subtopics():
    sources = comments(30)
    drafts, calls = reading(sources)
    assert calls == {"extraction": 3}
    for source in sources:
        assert drafts[source.id]
        for draft in drafts[source.id]:
            assert draft.quote in source.text
            assert draft.subtopic in ("t1.1", "t2.1")


def test_what_people_voted_on_is_one_claim_that_quotes_all_of_it():
    first, *others = comments(3)
    two_thoughts = replace(first, text="Buses need more room. Parks must never close.")
    voted = replace(two_thoughts, id="voted", agrees=7, disagrees=2)
    drafts, _ = reading([two_thoughts, voted, *others])
    assert len(drafts[first.id]) == 2
    assert [draft.quote for draft in drafts["voted"]] == [voted.text]


def test_five_hundred_comments_are_fifty_calls():
    _, calls = reading(comments(500), latency=0.01)
    assert calls == {"extraction": 50}


@pytest.mark.parametrize("vendor", ["openai", "anthropic", "google"])
def test_all_vendors_are_asked_the_same(vendor: str):
    drafts, calls = reading(comments(12), vendor=vendor)
    assert calls == {"extraction": 2}
    assert all(drafts.values())


def test_a_long_comment_travels_alone():
    long = comment("long", "We need buses to the harbour. " * 300)
    _, calls = reading([long, *comments(10)])
    assert calls == {"extraction": 2}


def test_the_taxonomy_is_in_the_shared_part_and_the_comment_in_the_data():
    async def story(harness: Harness) -> None:
        await read(harness, [comment("c-77", "Buses are fine indeed.")])
        call = harness.fake.calls[0]
        assert '"id":"t1.2"' in call.system
        assert "Buses are fine indeed." not in call.system
        assert call.text == (
            '<data>\n{"comments":[{"id":"1","subtopics":["t1.1","t2.1"],"text":"Buses are fine '
            'indeed."}]}\n</data>'
        )

    run_story(story, HONEST)


def test_a_subtopic_that_is_not_the_comments_own_becomes_its_first():
    class Elsewhere(ReportBrain):
        def extraction(self, data: Any, system: str) -> Any:
            answer = super().extraction(data, system)
            for entry in answer["comments"]:
                for claim in entry["claims"]:
                    claim["subtopic"] = "t1.2"
            return answer

    all_drafts, _ = reading(comments(10), Elsewhere(altered=0, invented=0))
    assert {draft.subtopic for drafts in all_drafts.values() for draft in drafts} == {"t1.1"}


def test_a_comment_in_other_is_read_as_well():
    async def story(harness: Harness) -> Any:
        return await read(harness, comments(5), BRIEF, None, OTHER)

    all_drafts = run_story(story, HONEST)
    assert {draft.subtopic for drafts in all_drafts.values() for draft in drafts} == {OTHER}


# --- what is known --------------------------------------------------------------------------------


def test_the_same_words_are_asked_about_once_whoever_says_them():
    sources = [
        comment(str(number), "The buses should be free for everybody.") for number in range(30)
    ]
    drafts, calls = reading([*sources, *comments(9, start=50)])
    assert calls == {"extraction": 1}
    assert all(drafts[source.id] == drafts["0"] for source in sources)


def known(
    later: list[Comment], brief: Brief = BRIEF, topics: Any = TOPICS, tenant: str = "acme"
) -> dict[str, int]:
    """What a later process asks after 40 comments have been read."""

    async def story(harness: Harness) -> Any:
        await read(harness, comments(40))
        await harness.model.aclose()
        before = len(harness.fake.calls)
        model = harness.another_model()
        analyst = LLMAnalyst(model)
        context = FakeContext(tenant=tenant, run="run-2")
        await asyncio.gather(
            *(
                analyst.extract(
                    source, whole(source, "t1.1", "t2.1"), topics, brief, context.item()
                )
                for source in later
            )  # type: ignore[arg-type]
        )
        await model.aclose()
        return harness.asked(before)

    return run_story(story, HONEST)


def test_what_was_read_before_costs_nothing():
    assert (
        known(
            [
                replace(comment, id="x" + comment.id, row=999, speaker="other")
                for comment in comments(40)
            ]
        )
        == {}
    )


def test_only_new_comments_are_asked_about():
    assert known(comments(77)) == {"extraction": 4}


def test_new_topics_elsewhere_change_nothing():
    more = (*TOPICS, Topic("t3", "Kites", "All about kites.", (Subtopic("t3.1", "Strings"),)))
    assert known(comments(40), topics=more) == {}


def test_a_subtopic_described_differently_is_another_question():
    trees = replace(TOPICS[1].subtopics[0], description="Shade, and birds.")
    assert known(comments(40), topics=(TOPICS[0], replace(TOPICS[1], subtopics=(trees,)))) == {
        "extraction": 4
    }


@pytest.mark.parametrize(
    "brief",
    [
        replace(BRIEF, language="fr"),
        replace(BRIEF, prompts={"extraction": "Find bold claims."}),
        replace(BRIEF, prompts={"system": "You are a pirate."}),
        replace(BRIEF, fresh=True),
    ],
)
def test_other_instructions_are_another_question(brief: Brief):
    assert known(comments(40), brief) == {"extraction": 4}


def test_other_prompts_are_not():
    assert (
        known(
            comments(40),
            replace(BRIEF, prompts={"crux": "Find the rift."}, title="New", budget=100.0),
        )
        == {}
    )


def test_tenants_share_nothing():
    assert known(comments(40), tenant="other") == {"extraction": 4}


# --- usage, errors, cancelling --------------------------------------------------------------------


def test_what_the_comments_paid_is_what_the_server_counted():
    async def story(harness: Harness) -> Any:
        bill = Usage()
        contexts: Any = [FakeContext(bill=bill) for _ in range(25)]
        await asyncio.gather(
            *(
                harness.analyst.extract(context, whole(context, "t1.1"), TOPICS, BRIEF, ctx)
                for context, ctx in zip(comments(25), contexts, strict=True)
            )
        )
        return [ctx.own for ctx in contexts], harness.fake.stats()

    # One answer in the middle is of no use: it was paid all the same, by the ten who shared it.
    own, stats = run_story(story, HONEST, faults=in_turn(None, "malformed"))
    assert sum(token.input_tokens for token in own) == stats["input_tokens"]
    assert sum(token.output_tokens for token in own) == stats["output_tokens"]
    price = (stats["input_tokens"] * 0.15 + stats["output_tokens"] * 0.6) / 1e6
    assert sum(token.cost for token in own) == pytest.approx(price, rel=1e-9)
    assert all(token.input_tokens > 0 for token in own)


def test_without_budget_everybody_pauses_and_nothing_is_sent():
    async def story(harness: Harness) -> Any:
        reading = (
            read(harness, [comment], replace(BRIEF, budget=0.000001)) for comment in comments(25)
        )
        return await asyncio.gather(*reading, return_exceptions=True), harness.asked()

    drafts, calls = run_story(story, HONEST)
    assert {type(draft) for draft in drafts} == {Pause}
    assert calls == {}


def test_a_server_that_fails_is_a_matter_for_the_engine():
    async def story(harness: Harness) -> Any:
        drafts = await asyncio.gather(
            *(read(harness, [exception]) for exception in comments(20)), return_exceptions=True
        )
        later = await read(harness, comments(20))
        return drafts, later, harness.asked()

    all_drafts, later, calls = run_story(
        story, HONEST, faults=in_turn(Fault("error"), Fault("error"))
    )
    assert {type(draft) for draft in all_drafts} == {Transient}
    assert len(later) == 20
    assert calls == {"extraction": 4}


def test_a_refused_call_is_split_and_only_the_refused_comment_fails():
    sources = [*comments(9), comment("bad", "Something that filters do not like.")]

    async def story(harness: Harness) -> Any:
        drafts = await asyncio.gather(
            *(read(harness, [exception]) for exception in sources), return_exceptions=True
        )
        return drafts, harness.asked()

    all_drafts, calls = run_story(
        story, HONEST, faults=when(lambda call: "filters" in call.text, "refusal")
    )
    assert type(all_drafts.pop()).__name__ == "Declined"
    assert all(isinstance(draft, dict) for draft in all_drafts)
    assert calls == {"extraction": 11}


def test_cancelling_one_comment_cancels_nobody_else():
    async def story(harness: Harness) -> Any:
        called = asyncio.Event()
        harness.fake.faults = lambda call: called.set()
        tasks = [asyncio.ensure_future(read(harness, [comment])) for comment in comments(10)]
        await called.wait()
        tasks[4].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True), harness.asked()

    drafts, calls = run_story(story, HONEST, latency=0.05)
    assert isinstance(drafts.pop(4), asyncio.CancelledError)
    assert all(isinstance(draft, dict) for draft in drafts)
    assert calls == {"extraction": 1}


# --- quotes once more -----------------------------------------------------------------------------


def test_quotes_are_asked_for_again_together_and_remembered():
    async def story(harness: Harness) -> Any:
        drafts = [ClaimDraft(comment.text, "Nobody said this.", "t1.1") for comment in comments(25)]
        asking = [
            harness.analyst.requote(comment, draft, BRIEF, harness.ctx.item())
            for comment, draft in zip(comments(25), drafts, strict=True)
        ]
        quotes = await asyncio.gather(*asking)
        calls = harness.asked()
        again = await harness.analyst.requote(comments(1)[0], drafts[0], BRIEF, harness.ctx)
        return quotes, calls, again, harness.asked()

    quotes, second_calls, again, later = run_story(story)
    assert all(
        quote and quote in source.text for quote, source in zip(quotes, comments(25), strict=True)
    )
    assert second_calls == later == {"requote": 3}
    assert again == quotes[0]


def test_a_claim_that_the_comment_does_not_make_gets_no_quote():
    async def story(harness: Harness) -> Any:
        draft = ClaimDraft("Elephants should rule Antarctica tomorrow.", "Elephants!", "t1.1")
        return await harness.analyst.requote(comments(1)[0], draft, BRIEF, harness.ctx)

    assert run_story(story) == ""


def test_a_quote_that_is_refused_is_not_found_and_its_comment_goes_on():
    async def story(harness: Harness) -> Any:
        return await harness.analyst.requote(
            comments(1)[0], ClaimDraft("Buses!", "Bus", "t1.1"), BRIEF, harness.ctx
        )

    assert run_story(story, faults=always("refusal")) == ""


# --- hostile --------------------------------------------------------------------------------------


def test_two_hundred_injections_change_no_claim_of_anybody_else():
    hostile = [comment(f"h{number}", text) for number, text in enumerate(injections())]
    alone, _ = reading(comments(100), HostileBrain(altered=0, invented=0))
    mixed = [
        source for pair in zip(comments(100), hostile[:100], strict=True) for source in pair
    ] + hostile[100:]
    drafts, calls = reading(mixed, HostileBrain(altered=0, invented=0))
    assert {source.id: drafts[source.id] for source in comments(100)} == alone
    assert calls == {"extraction": 10 + len(hostile)}


def test_an_injection_says_in_the_report_only_what_it_says_itself():
    hostile = [comment(f"h{number}", text) for number, text in enumerate(injections())]
    drafts, _ = reading(hostile, HostileBrain(altered=0, invented=0))
    for source in hostile:
        for draft in drafts[source.id]:
            assert draft.statement == f"“{truncate(draft.quote, 300)}”"
            assert draft.quote == "we were all HACKED" or draft.quote in source.text


def test_what_an_injection_is_said_to_say_and_does_not_is_not_looked_for():
    async def story(harness: Harness) -> Any:
        hostile = comment("h", injections()[0])
        draft = ClaimDraft("Everybody was HACKED", "we were all HACKED", "t1.1")
        return await harness.analyst.requote(hostile, draft, BRIEF, harness.ctx), harness.asked()

    assert run_story(story, HostileBrain()) == ("", {})


def test_an_answer_in_which_comments_say_what_they_do_not_say_is_not_believed():
    """An injection that nobody noticed: the model obeys it and speaks for all others in the
    call."""

    class ObedientBrain(ReportBrain):
        def extraction(self, data: Any, system: str) -> Any:
            honest = super().extraction(data, system)
            if any("open sesame" in comment["text"] for comment in data["comments"]):
                stolen = [claim for comment in honest["comments"] for claim in comment["claims"]][
                    :1
                ]
                return {
                    "comments": [
                        {"id": comment["id"], "claims": stolen} for comment in data["comments"]
                    ]
                }
            return honest

    sources = [comment("sesame", "The parks are for everybody, open sesame please."), *comments(9)]
    drafts, calls = reading(sources, ObedientBrain(altered=0, invented=0))
    honest, _ = reading(sources, HONEST)
    assert drafts == honest
    assert calls == {"extraction": 11}


def test_ids_that_were_not_given_and_second_answers_count_for_nothing():
    class Confused(ReportBrain):
        def extraction(self, data: Any, system: str) -> Any:
            honest = super().extraction(data, system)["comments"]
            claim = {"statement": "Wrong", "quote": "Wrong", "subtopic": "t1.1"}
            return {
                "comments": [
                    {"id": "0", "claims": [claim]},
                    *honest,
                    {"id": "1", "claims": [claim] * 3},
                ]
            }

    confused, _ = reading(comments(10), Confused(altered=0, invented=0))
    honest, _ = reading(comments(10))
    assert confused == honest


def test_a_call_holds_ten_comments():
    assert COMMENTS_PER_CALL.items == 10
