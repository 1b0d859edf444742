"""Votes say who stands where; drafts of cruxes are put in order; everybody is counted once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apps.report.cruxes import from_draft, from_votes, gather
from holdfast.apps.report.model.claim import ClaimGroup, QuotedClaim, claim_id
from holdfast.apps.report.model.comment import Comment, Votes
from holdfast.apps.report.model.crux import Basis, CruxDraft, Stance, controversy, level
from holdfast.apps.report.voting import ballot_of, ballots, most_divided


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
COMMENTS = {one.id: one for one in (SPLIT, LOPSIDED, HARDLY_VOTED, TWO_THOUGHTS)}


def test_the_most_divided_claim_is_the_crux():
    groups = [group(LOPSIDED), group(SPLIT), group(HARDLY_VOTED)]
    found = most_divided(groups, ballots(COMMENTS.values(), None), COMMENTS)
    assert found is not None
    assert found[0].id == "g-1"
    crux = from_votes("t1", *found)
    assert (crux.agree, crux.disagree, crux.unclear, crux.basis) == (20, 19, 0, Basis.VOTES)
    assert crux.controversy == pytest.approx(2 * 19 / 39)


def test_a_vote_on_a_whole_comment_does_not_count_for_a_small_part_of_it():
    given = ballots(COMMENTS.values(), None)
    assert ballot_of(group(TWO_THOUGHTS, "No flats."), given, COMMENTS) is None
    assert ballot_of(group(TWO_THOUGHTS, TWO_THOUGHTS.text), given, COMMENTS) is not None


def test_few_votes_divide_nobody():
    assert most_divided([group(HARDLY_VOTED)], ballots(COMMENTS.values(), None), COMMENTS) is None


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
    one = from_draft("t1", "t1.1", CruxDraft("A", "", ("s1",), ("s2", "s3")), groups)
    two = from_draft("t1", "t1.2", CruxDraft("B", "", ("s1",), ("s2",)), groups[:2])
    assert one is not None
    assert two is not None
    found = gather([one, two])
    assert [crux.statement for crux in found.cruxes] == ["B", "A"]
    table = {
        speaker: dict(zip("BA", row, strict=True))
        for speaker, row in zip(found.speakers, found.matrix, strict=True)
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
