"""Claims that say the same, in groups: none lost, none twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.llm.harness import (
    BRIEF,
    TOPICS,
    FakeContext,
    Harness,
    claim,
    run_story,
    text,
)

from holdfast.apps.report.llm.answers import GroupsAnswer
from holdfast.apps.report.llm.grouping import MOST, Bundle, _ordered, _parts, merge_as_answered
from holdfast.apps.report.model.claim import ProposedGroup, QuotedClaim
from holdfast.apps.report.testing.brain import ReportBrain
from holdfast.apps.report.testing.hostile_brain import HostileBrain
from holdfast.apps.report.testing.injections import injections
from holdfast.testing.fakellm import when

SUBTOPIC = TOPICS[0].subtopics[0]


def grouped(
    claims: list[QuotedClaim], brain: Any = None
) -> tuple[list[ProposedGroup], dict[str, int]]:
    async def story(harness: Harness) -> Any:
        return await harness.analyst.group(SUBTOPIC, claims, BRIEF, harness.ctx), harness.asked()

    return run_story(story, brain)


def members(groups: list[ProposedGroup]) -> list[str]:
    return sorted(member for group in groups for member in group.members)


def people(statement: str, number: int) -> list[QuotedClaim]:
    return [claim(statement, f"{statement} {member}") for member in range(number)]


def test_claims_of_the_same_words_share_a_group():
    claims = [
        claim("Buses should be free"),
        claim("Free buses, please", "bob"),
        claim("Parks need trees", "cat"),
    ]
    groups, calls = grouped(claims, ReportBrain())
    assert calls == {"dedup": 1}
    assert members(groups) == sorted(member.id for member in claims)
    free = next(group for group in groups if claims[2].id in group.members)
    assert free == ProposedGroup("Parks need trees", (claims[2].id,))


def test_equal_statements_need_no_model():
    claims = [claim("Buses should be free."), claim("buses  should be FREE", "bob")]
    groups, calls = grouped(claims)
    assert calls == {}
    assert groups == [ProposedGroup("Buses should be free.", (claims[0].id, claims[1].id))]


def test_most_typical_claims_come_first():
    claims = [claim("Free buses now", "ann"), *people("Now buses free", 3)]
    groups, _ = grouped(claims)
    assert len(groups) == 1
    assert groups[0].members[0] == claims[1].id


def test_five_hundred_claims_are_all_in_exactly_one_group():
    claims = [claim(text(number % 250), str(number)) for number in range(500)]
    groups, calls = grouped(claims)
    assert members(groups) == sorted(member.id for member in claims)
    assert len(groups) == 250
    assert 5 <= calls["dedup"] <= 30


def test_a_call_has_at_most_sixty_claims():
    async def story(harness: Harness) -> Any:
        await harness.analyst.group(
            SUBTOPIC, [claim(text(number)) for number in range(200)], BRIEF, harness.ctx
        )
        return [call.text.count('"id":') for call in harness.fake.calls]

    assert max(run_story(story)) <= MOST


def test_the_same_claim_in_different_parts_is_found_in_the_end():
    """Two hundred different claims, each made in two orders of words: they must meet somewhere."""
    claims = []
    for number in range(100):
        claims.append(claim(f"{WORDS[number]} near the canal deserves money", f"a{number}"))
        claims.append(claim(f"Money deserves the canal near {WORDS[number]}", f"b{number}"))
    groups, calls = grouped(claims)
    assert len(groups) == 100
    assert calls["dedup"] < 25


WORDS = [
    f"{first}{second}"
    for first in ("lamp", "roof", "wall", "door", "tree")
    for second in (
        "ade",
        "ber",
        "cot",
        "dun",
        "eel",
        "fir",
        "gum",
        "hay",
        "ivy",
        "jar",
        "kin",
        "log",
        "mud",
        "nut",
        "oak",
        "pin",
        "rye",
        "sap",
        "tin",
        "urn",
    )
]


def test_what_was_grouped_before_costs_nothing_whoever_said_it():
    async def story(harness: Harness) -> Any:
        claims = [claim(text(number), str(number)) for number in range(90)]
        await harness.analyst.group(SUBTOPIC, claims, BRIEF, harness.ctx)
        before = len(harness.fake.calls)
        others = [claim(other.statement, "other " + other.speaker) for other in reversed(claims)]
        groups = await harness.analyst.group(SUBTOPIC, others, BRIEF, FakeContext(run="run-2"))
        same = harness.asked(before)
        more = [*claims, claim("The kites over the harbour are lovely", "new")]
        await harness.analyst.group(SUBTOPIC, more, BRIEF, harness.ctx)
        return groups, others, same, harness.asked(before), harness.asked()

    groups, others, same, one_more, all_ = run_story(story)
    assert same == {}
    assert members(groups) == sorted(other.id for other in others)
    assert one_more["dedup"] < all_["dedup"] - one_more["dedup"]


def test_another_prompt_is_another_question():
    async def story(harness: Harness) -> Any:
        claims = [claim("Buses are good"), claim("Parks are good", "bob")]
        await harness.analyst.group(SUBTOPIC, claims, BRIEF, harness.ctx)
        await harness.analyst.group(
            SUBTOPIC, claims, replace(BRIEF, prompts={"dedup": "Merge all."}), harness.ctx
        )
        await harness.analyst.group(SUBTOPIC, claims, replace(BRIEF, fresh=True), harness.ctx)
        return harness.asked()

    assert run_story(story) == {"dedup": 3}


@pytest.mark.parametrize(
    "answer",
    [
        [],
        [("All", ["1", "2", "3"]), ("All again", ["1", "2", "3"])],
        [("Ghosts", ["17", "0", "-1", "x"]), ("Two", ["2", "2", " 3 "])],
        [("", ["1", "2"])],
        [("One", ["1"])],
    ],
)
def test_every_claim_is_in_exactly_one_group_whatever_the_answer(
    answer: list[tuple[str, list[str]]],
):
    part = [Bundle(f"Statement {number}", (f"c{number}", f"d{number}")) for number in range(1, 4)]
    shape = GroupsAnswer.model_validate(
        {"groups": [{"statement": statement, "claims": ids} for statement, ids in answer]}
    )
    merged = merge_as_answered(part, shape)
    assert sorted(member for bundle in merged for member in bundle.members) == [
        "c1",
        "c2",
        "c3",
        "d1",
        "d2",
        "d3",
    ]
    assert all(bundle.statement for bundle in merged)


def test_claims_that_are_refused_together_are_compared_in_parts():
    async def story(harness: Harness) -> Any:
        claims = [claim(text(number), str(number)) for number in range(40)]
        twice = [*claims, claim("(no. 5) harbour the near cheaper be should noise The", "again")]
        return await harness.analyst.group(SUBTOPIC, twice, BRIEF, harness.ctx), twice

    groups, claims = run_story(story, faults=when(lambda call: "(no. 7)" in call.text, "refusal"))
    assert members(groups) == sorted(member.id for member in claims)
    assert len(groups) <= 41


def test_a_group_of_one_keeps_its_own_words():
    part = [Bundle("Statement", ("c1",)), Bundle("Another", ("c2",))]
    shape = GroupsAnswer.model_validate({"groups": [{"statement": "Reworded", "claims": ["1"]}]})
    assert merge_as_answered(part, shape) == part


def test_parts_cover_everything_once_and_an_addition_changes_few():
    bundles = [Bundle(text(number), (str(number),)) for number in range(1000)]
    parts = list(_parts(_ordered(bundles, 0)))
    assert [bundle for part in parts for bundle in part] == _ordered(bundles, 0)
    assert all(len(part) <= MOST for part in parts)
    more = list(_parts(_ordered([*bundles, Bundle("Kites over the harbour", ("new",))], 0)))
    changed = [part for part in more if part not in parts]
    assert len(changed) <= 4


def test_injections_join_no_group_and_spoil_none():
    hostile = [claim(injection, f"h{number}") for number, injection in enumerate(injections())]
    honest = [claim(text(number % 25), str(number)) for number in range(50)]
    alone, _ = grouped(honest, HostileBrain())
    groups, calls = grouped([*honest, *hostile], HostileBrain())
    assert groups[: len(alone)] == alone
    assert calls == {"dedup": 1}
    assert all(len(group.members) == 1 for group in groups[len(alone) :])
    assert members(groups) == sorted(member.id for member in [*honest, *hostile])
