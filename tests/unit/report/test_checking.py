"""What analysts propose is checked: quotes, subtopics, groups, evidence."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.apps.report.checking import (
    check_clustering,
    check_draft,
    check_groups,
    check_sentences,
    without_repeats,
)
from holdfast.apps.report.model.claim import (
    ClaimDraft,
    DroppedDraft,
    DropReason,
    ProposedGroup,
    QuotedClaim,
    claim_id,
)
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.summary import Sentence
from holdfast.apps.report.model.taxonomy import OTHER, Clustering, Placement, Subtopic, Topic

PARKS = Subtopic("t1.1", "Parks")


def comment(id: str = "1", text: str = "More trees please. And benches.") -> Comment:
    return Comment(id, 1, text, f"speaker {id}")


def claim(number: int, statement: str) -> QuotedClaim:
    return QuotedClaim(
        claim_id(str(number), 0, 5, statement),
        str(number),
        f"s{number}",
        "t1.1",
        statement,
        "quote",
        0,
        5,
    )


# --- drafts ---------------------------------------------------------------------------------------


def test_a_draft_with_a_real_quote_becomes_a_claim_with_its_place():
    claims = check_draft(
        ClaimDraft("The town needs  more trees", "more trees", "t1.1"), comment(), ["t1.1"]
    )
    assert isinstance(claims, QuotedClaim)
    assert (claims.start, claims.end, claims.quote) == (0, 10, "More trees")
    assert claims.statement == "The town needs more trees"
    assert claims.speaker == "speaker 1"


def test_a_draft_is_lost_with_the_reason():
    lost = [
        check_draft(ClaimDraft("Trees", "fewer trees", "t1.1"), comment(), ["t1.1"]),
        check_draft(ClaimDraft(" … ", "More trees", "t1.1"), comment(), ["t1.1"]),
        check_draft(ClaimDraft("Trees", "More trees", "t9.9"), comment(), ["t1.1"]),
    ]
    assert [entry.reason for entry in lost if isinstance(entry, DroppedDraft)] == [
        DropReason.QUOTE_NOT_FOUND,
        DropReason.NO_STATEMENT,
        DropReason.UNKNOWN_SUBTOPIC,
    ]


def test_the_same_claim_twice_counts_once():
    first = check_draft(ClaimDraft("Trees", "More trees", "t1.1"), comment(), ["t1.1"])
    groups, lost = without_repeats([first, first])
    assert len(groups) == 1
    assert [entry.reason for entry in lost] == [DropReason.REPEATED]


# --- topics ---------------------------------------------------------------------------------------


def test_every_comment_is_placed_and_nothing_unknown_survives():
    topics = (
        Topic("t1", "Green", "", (PARKS, Subtopic("t1.2", "Empty"))),
        Topic("t2", "Nothing", "", ()),
    )
    proposed = Clustering(
        topics,
        (
            Placement("1", "t1.1", -5, 900),
            Placement("1", "t1.1", -5, 900),
            Placement("2", "t7.7", 0, 3),
            Placement("ghost", "t1.1", 0, 3),
        ),
    )
    clustering = check_clustering(proposed, [comment("1"), comment("2"), comment("3")])
    length = len(comment().text)
    assert clustering.placements == (
        Placement("1", "t1.1", 0, length),
        Placement("2", OTHER, 0, length),
        Placement("3", OTHER, 0, length),
    )
    assert [(topic.id, [entry.id for entry in topic.subtopics]) for topic in clustering.topics] == [
        ("t1", ["t1.1"])
    ]


# --- groups ---------------------------------------------------------------------------------------


def test_opposites_proposed_as_one_group_are_kept_apart():
    claims = [
        claim(1, "Bridge Street should be closed to cars"),
        claim(2, "Bridge Street should not be closed to cars"),
        claim(3, "Close Bridge Street to cars"),
        claim(4, "Never close Bridge Street to cars"),
    ]
    groups = check_groups(
        PARKS, claims, [ProposedGroup("Close Bridge Street", tuple(entry.id for entry in claims))]
    )
    assert [[member.comment for member in group.members] for group in groups] == [
        ["1", "3"],
        ["2", "4"],
    ]
    assert groups[1].statement == claims[1].statement


proposals = st.lists(
    st.tuples(st.text(max_size=20), st.lists(st.integers(-2, 12), max_size=8)), max_size=6
)


@given(
    st.lists(
        st.sampled_from(
            ["We need trees", "We do not need trees", "Trees are expensive", "More buses"]
        ),
        max_size=10,
    ),
    proposals,
)
def test_whatever_is_proposed_every_claim_is_in_exactly_one_group(statements, proposed):
    claims = [claim(number, statement) for number, statement in enumerate(statements)]
    ids = [entry.id for entry in claims]
    named_groups = [
        ProposedGroup(
            statement, tuple(ids[n] if 0 <= n < len(ids) else f"ghost-{n}" for n in members)
        )
        for statement, members in proposed
    ]
    groups = check_groups(PARKS, claims, named_groups)
    assert sorted(member.id for group in groups for member in group.members) == sorted(ids)
    assert len({group.id for group in groups}) == len(groups)
    assert all(group.statement for group in groups)


# --- sentences ------------------------------------------------------------------------------------


def test_a_sentence_without_evidence_is_not_printed_and_counted():
    sentences, unfounded = check_sentences(
        [
            Sentence("People  want trees.", ("g-1", "g-9", "g-1")),
            Sentence("All is well.", ("g-9",)),
            Sentence(" ", ("g-1",)),
        ],
        ["g-1", "g-2"],
    )
    assert sentences == [Sentence("People want trees.", ("g-1",))]
    assert unfounded == 2
