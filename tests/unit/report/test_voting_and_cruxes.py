"""Votes say who stands where; drafts of cruxes are put in order; everybody is counted once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apps.report.cruxes import from_draft, from_votes, gather
from holdfast.apps.report.model.claim import ClaimGroup, QuotedClaim, claim_id
from holdfast.apps.report.model.comment import Comment, Votes
from holdfast.apps.report.model.crux import Basis, Crux, CruxDraft, controversy, level
from holdfast.apps.report.model.stance import Stance, VoteTally
from holdfast.apps.report.opinions import find_opinions
from holdfast.apps.report.self_description import describes_author
from holdfast.apps.report.voting import ballots, with_votes


def comment(id: str, text: str, agrees: int | None = None, disagrees: int | None = None) -> Comment:
    return Comment(id, int(id), text, f"s{id}", agrees=agrees, disagrees=disagrees)


def group(of: Comment, quote: str | None = None) -> ClaimGroup:
    quote = quote or of.text
    start = of.text.index(quote)
    member = QuotedClaim(
        claim_id(of.id, start, start + len(quote), quote),
        of.id,
        of.speaker,
        "t1.1",
        quote,
        quote,
        start,
        start + len(quote),
    )
    return ClaimGroup(f"g-{of.id}", "t1.1", quote, (member,))


SPLIT = comment("1", "Close the street", 20, 19)
LOPSIDED = comment("2", "More trees", 40, 1)
HARDLY_VOTED = comment("3", "Ban dogs", 1, 1)
TWO_THOUGHTS = comment(
    "4", "Open the pool at last and long before anything else. No flats.", 30, 30
)
COMMENTS = {entry.id: entry for entry in (SPLIT, LOPSIDED, HARDLY_VOTED, TWO_THOUGHTS)}


def cruxes(*groups: ClaimGroup, votes: Votes | None = None, of=COMMENTS) -> list[Crux]:
    cast = ballots(of.values(), votes)
    return from_votes(find_opinions(cast, votes), cast, groups, {"t1.1": "t1"}, of)


def test_comments_that_divide_are_cruxes_however_many_a_subtopic_has():
    crux, second = cruxes(group(LOPSIDED), group(SPLIT), group(TWO_THOUGHTS), group(HARDLY_VOTED))
    assert (crux.statement, second.statement) == (TWO_THOUGHTS.text, SPLIT.text)
    assert (second.agree, second.disagree, second.unclear) == (20, 19, 0)
    assert second.basis == Basis.VOTES
    assert second.controversy == pytest.approx(2 * 19 / 39)


def test_votes_belong_to_the_whole_comment():
    cast = ballots(COMMENTS.values(), None)
    part = group(TWO_THOUGHTS, "No flats.")
    assert with_votes(part, cast, COMMENTS).votes is None
    assert with_votes(group(TWO_THOUGHTS), cast, COMMENTS).votes == VoteTally(30, 30, 0)
    (crux,) = cruxes(part)
    assert (crux.statement, crux.cites) == (TWO_THOUGHTS.text, (part.id,))


def test_few_votes_divide_nobody():
    assert cruxes(group(HARDLY_VOTED)) == []


def test_the_widest_gap_between_groups_comes_before_the_evenest_split():
    statements = {id: comment(id, f"Statement {id}") for id in map(str, range(1, 9))}
    cells = []
    for at in range(40):
        cells += [(at, statement, 1 if at < 20 else -1) for statement in range(7)]
        cells += [(at, 7, 1 if at % 2 else -1)] * (at % 20 < 3)
    votes = Votes(tuple(f"p{at:02}" for at in range(40)), tuple(statements), tuple(cells))
    crux_list = cruxes(*map(group, statements.values()), votes=votes, of=statements)
    assert [crux.statement for crux in crux_list][-1] == "Statement 8"
    assert [tally.cast >= 15 for tally in crux_list[0].groups] == [True, True]
    assert crux_list[0].gap > 0.8 > 0.2 > crux_list[-1].gap


def test_the_matrix_of_votes_gives_names_and_wins_over_counts():
    votes = Votes(("ann", "bob", "cem"), ("1",), ((0, 0, 1), (1, 0, -1), (2, 0, 0)))
    ballot = ballots(COMMENTS.values(), votes)["1"]
    assert (ballot.agrees, ballot.disagrees, ballot.passes) == (1, 1, 1)
    assert ballot.stances == {"ann": Stance.AGREE, "bob": Stance.DISAGREE, "cem": Stance.UNCLEAR}


def test_a_draft_counts_only_speakers_of_the_subtopic_and_each_of_them_once():
    groups = [group(comment(str(n), f"claim {n}")) for n in range(1, 6)]
    draft = CruxDraft("Close it", "why", ("s1", "s2", "stranger"), ("s2", "s3"), ("g-1", "g-99"))
    crux = from_draft("t1", "t1.1", draft, groups)
    assert crux is not None
    assert (crux.agreeing, crux.disagreeing, crux.undecided) == (
        ("s1",),
        ("s3",),
        ("s2", "s4", "s5"),
    )
    assert crux.cites == ("g-1",)
    assert crux.controversy == pytest.approx(0.4)


@pytest.mark.parametrize("draft", [
    CruxDraft("Close it", "", ("s1",), ()),
    CruxDraft("Close it", "", ("s1",), ("s1",)),
    CruxDraft("  ", "", ("s1",), ("s2",)),
    CruxDraft("Close it", "", ("nobody",), ("s2",)),
])  # fmt: skip
def test_a_draft_that_divides_nobody_is_no_crux(draft):
    assert (
        from_draft("t1", "t1.1", draft, [group(comment("1", "a b")), group(comment("2", "c d"))])
        is None
    )


def test_the_matrix_has_a_cell_for_every_speaker_and_crux():
    groups = [group(comment(str(n), f"claim {n}")) for n in range(1, 4)]
    first = from_draft("t1", "t1.1", CruxDraft("A", "", ("s1",), ("s2", "s3")), groups)
    two = from_draft("t1", "t1.2", CruxDraft("B", "", ("s1",), ("s2",)), groups[:2])
    assert first is not None
    assert two is not None
    gathered = gather([first, two])
    assert [crux.statement for crux in gathered.cruxes] == ["B", "A"]
    table = {
        speaker: dict(zip("BA", row, strict=True))
        for speaker, row in zip(gathered.speakers, gathered.matrix, strict=True)
    }
    assert table == {
        "s1": {"B": "agree", "A": "agree"},
        "s2": {"B": "disagree", "A": "disagree"},
        "s3": {"B": "", "A": "disagree"},
    }


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_controversy_lies_between_nobody_and_an_even_split(agree, disagree, unclear):
    score = controversy(agree, disagree, agree + disagree + unclear)
    assert 0 <= score <= 1
    assert level(score) in ("low", "light", "mid", "high", "max")
    assert score == controversy(disagree, agree, agree + disagree + unclear)


@pytest.mark.parametrize(
    ("text", "personal"),
    [
        ("I grew up watching football.", True),
        ("I identify as upper-middle class", True),
        ("我有小型車駕駛執照", True),
        ("I will not let my kids play.", False),
        ("I am scared of climate change", False),
        ("I am a nurse and we should be paid more", False),
    ],
)
def test_what_people_say_of_themselves_splits_nobody(text, personal):
    about = comment("1", text, 20, 19)
    voted = ballots([about, SPLIT_TOO], None)
    opinions = find_opinions(voted, None, {about.id} if describes_author(text) else ())
    assert (about.id not in opinions.splits) is personal
    crux_list = from_votes(
        opinions, voted, [group(about), group(SPLIT_TOO)], {"t1.1": "t1"},
        {about.id: about, SPLIT_TOO.id: SPLIT_TOO},
    )  # fmt: skip
    assert len(crux_list) == (1 if personal else 2)


SPLIT_TOO = comment("9", "Open the street", 20, 19)
