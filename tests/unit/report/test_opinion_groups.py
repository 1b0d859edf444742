"""People who vote alike are found whatever the order of the file, and not found where votes are
chance."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("numpy", reason="reports need holdfast[report]")

from holdfast.apps.report.headline import LISTED, headline, unmarked_splits
from holdfast.apps.report.local.vote_findings import vote_findings
from holdfast.apps.report.model.claim import ClaimGroup, QuotedClaim
from holdfast.apps.report.model.comment import Comment, Votes
from holdfast.apps.report.model.stance import Stance
from holdfast.apps.report.opinion_groups import find_groups
from holdfast.apps.report.opinions import find_opinions
from holdfast.apps.report.vote_evidence import vote_evidence
from holdfast.apps.report.voting import ballots_in

SIZES = (40, 25, 15)


def camps(sizes=SIZES, statements=18, share_voted=0.6, noise=0.1, seed=1) -> Votes:
    """People of several camps: each agrees with its own third of the statements, all agree with the
    first one, and most have not seen everything."""
    chance = random.Random(seed)
    people, cells = [], []
    for camp, size in enumerate(sizes):
        for _ in range(size):
            at = len(people)
            people.append(f"c{camp}-{at}")
            for statement in range(statements):
                if chance.random() > share_voted:
                    continue
                agrees = statement == 0 or statement % len(sizes) == camp
                if chance.random() < noise:
                    agrees = not agrees
                cells.append((at, statement, 1 if agrees else -1))
    return Votes(tuple(people), tuple(map(str, range(statements))), tuple(cells))


def reordered(votes: Votes, seed: int) -> Votes:
    chance = random.Random(seed)
    people = chance.sample(range(len(votes.participants)), len(votes.participants))
    comments = chance.sample(range(len(votes.comments)), len(votes.comments))
    cells = [(people.index(p), comments.index(c), vote) for p, c, vote in votes.cells]
    chance.shuffle(cells)
    return Votes(
        tuple(votes.participants[at] for at in people),
        tuple(votes.comments[at] for at in comments),
        tuple(cells),
    )


def test_camps_are_found_and_lettered_by_size():
    grouping = find_groups(camps())
    assert grouping is not None
    letters = {name: group for name, _, _, group in grouping.people}
    by_camp = [{letters[name] for name in letters if name.startswith(f"c{n}")} for n in range(3)]
    assert by_camp == [{"A"}, {"B"}, {"C"}]
    assert grouping.silhouette > 0.5
    assert all(0 <= x <= 1 and 0 <= y <= 1 for _, x, y, _ in grouping.people)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_file_does_not_matter(seed):
    votes = camps()
    assert find_groups(reordered(votes, seed)) == find_groups(votes)


def test_votes_by_chance_make_no_groups():
    chance = random.Random(4)
    cells = [(p, c, chance.choice((1, -1))) for p in range(80) for c in range(20)]
    votes = Votes(tuple(f"p{p}" for p in range(80)), tuple(map(str, range(20))), tuple(cells))
    assert find_groups(votes) is None


def test_groups_too_small_to_hide_in_are_not_shown():
    grouping = find_groups(camps(sizes=(40, 30, 3), noise=0.0, share_voted=1.0))
    assert grouping is not None
    letters = {name: group for name, _, _, group in grouping.people}
    assert {letters[name] for name in letters if name.startswith("c2")} <= {"", "A", "B"}
    sizes = [sum(group == letter for group in letters.values()) for letter in "AB"]
    assert min(sizes) >= 5


@pytest.mark.parametrize("people", [0, 1, 6])
def test_a_handful_of_people_is_no_group(people):
    votes = camps(sizes=(people,)) if people else Votes((), ("1",), ())
    assert find_groups(votes) is None


def test_opinions_say_what_marks_each_group_what_is_shared_and_what_splits():
    votes = camps(sizes=(40, 30), share_voted=0.8, noise=0.05)
    opinions = find_opinions(ballots_in(votes), votes)
    assert [(group.id, group.people) for group in opinions.groups] == [("A", 40), ("B", 30)]
    assert [(position.comment, position.stance) for position in opinions.shared] == [
        ("0", Stance.AGREE)
    ]
    first, second = opinions.groups
    assert all(int(mark.comment) % 2 == 0 for mark in first.marks)
    assert all(int(mark.comment) % 2 == 1 for mark in second.marks)
    assert all(mark.share > 0.8 > 0.2 > mark.others for mark in first.marks)
    assert "0" not in opinions.splits
    assert len(opinions.splits) == 8
    assert opinions.voters == 70
    assert opinions.votes == len(votes.cells)


def test_unsure_is_what_many_pass_on():
    cells = [(p, 0, 0 if p < 15 else 1) for p in range(30)] + [(p, 1, 1) for p in range(30)]
    votes = Votes(tuple(f"p{p}" for p in range(30)), ("maybe", "yes"), tuple(cells))
    opinions = find_opinions(ballots_in(votes), votes)
    assert opinions.unsure == ("maybe",)
    assert [position.comment for position in opinions.shared] == ["yes"]
    assert opinions.groups == ()


def said(votes):
    return {id: Comment(id, at, f"Statement {id}", "Ann") for at, id in enumerate(votes.comments)}


def test_the_headline_says_nothing_twice_and_key_findings_go_on_from_it():
    votes = camps(sizes=(40, 30), share_voted=0.8, noise=0.05)
    opinions, comments = find_opinions(ballots_in(votes), votes), said(votes)
    lines = list(headline(opinions, comments))
    assert [(line.kind, line.group) for line in lines] == [
        ("mark", 0),
        ("mark", 1),
        ("shared", None),
        ("splits", None),
    ]
    assert len({line.comment for line in lines}) == 4
    groups = [
        claim_group(id, QuotedClaim(f"c-{id}", id, "Ann", "t1.1", text, text, 0, len(text)))
        for id, text in ((id, comment.text) for id, comment in comments.items())
    ]
    evidence = vote_evidence(opinions, groups, comments)
    assert evidence is not None
    assert evidence.headline == tuple(f"g-{line.comment}" for line in lines)
    cited = [id for finding in vote_findings(evidence, "en") for id in finding.cites]
    assert cited == [f"g-{id}" for id in opinions.splits if f"g-{id}" not in evidence.headline][:3]


def claim_group(id, member):
    return ClaimGroup(f"g-{id}", member.subtopic, member.statement, (member,))


def test_there_is_no_headline_without_groups():
    votes = Votes(("p1",), ("1",), ((0, 0, 1),))
    assert list(headline(find_opinions(ballots_in(votes), votes), said(votes))) == []


def test_what_is_listed_as_a_mark_is_not_listed_as_a_split():
    votes = camps(sizes=(40, 30), share_voted=0.8, noise=0.05)
    opinions = find_opinions(ballots_in(votes), votes)
    marks = {mark.comment for group in opinions.groups for mark in group.marks[:LISTED]}
    assert marks.isdisjoint(unmarked_splits(opinions))
