"""Cruxes: one statement for each subtopic that divides people most, with everybody in exactly one
place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from holdfast.apps.report.model.claim import ClaimGroup
from holdfast.apps.report.model.crux import Basis, Crux, CruxDraft, Cruxes, Stance
from holdfast.apps.report.voting import Ballot


def from_votes(topic: str, group: ClaimGroup, ballot: Ballot) -> Crux:
    """A claim that people voted on, as a crux."""
    voters = {
        stance: tuple(voter for voter, vote in ballot.stances.items() if vote == stance)
        for stance in Stance
    }
    return Crux(
        crux_id(group.subtopic, group.statement),
        topic,
        group.subtopic,
        group.statement,
        "",
        Basis.VOTES,
        ballot.agrees,
        ballot.disagrees,
        ballot.passes,
        voters[Stance.AGREE],
        voters[Stance.DISAGREE],
        voters[Stance.UNCLEAR],
        (group.id,),
    )


def from_draft(
    topic: str, subtopic: str, draft: CruxDraft, groups: Sequence[ClaimGroup]
) -> Crux | None:
    """A proposed crux with its speakers put in order, or None if it does not divide anybody.

    Only speakers of the subtopic count. Who is on both sides is undecided, and so is everybody not
    mentioned."""
    speakers = dict.fromkeys(speaker for group in groups for speaker in group.speakers)
    agree = [
        speaker for speaker in speakers if speaker in draft.agree and speaker not in draft.disagree
    ]
    disagree = [
        speaker for speaker in speakers if speaker in draft.disagree and speaker not in draft.agree
    ]
    statement = " ".join(draft.statement.split())
    if not agree or not disagree or not statement:
        return None
    unclear = [speaker for speaker in speakers if speaker not in agree and speaker not in disagree]
    known = {group.id for group in groups}
    return Crux(
        crux_id(subtopic, statement),
        topic,
        subtopic,
        statement,
        " ".join(draft.explanation.split()),
        draft.basis,
        len(agree),
        len(disagree),
        len(unclear),
        tuple(agree),
        tuple(disagree),
        tuple(unclear),
        tuple(id for id in dict.fromkeys(draft.cites) if id in known),
    )


def gather(proposed: Iterable[Crux], notes: Sequence[str] = ()) -> Cruxes:
    """All cruxes, those that divide most people most first, and the matrix of who stands where."""
    cruxes = sorted(proposed, key=lambda crux: (-crux.weight, crux.id))
    stances = [_stances(crux) for crux in cruxes]
    speakers = list(dict.fromkeys(speaker for by_speaker in stances for speaker in by_speaker))
    matrix = tuple(
        tuple(by_speaker.get(speaker, "") for by_speaker in stances) for speaker in speakers
    )
    return Cruxes(tuple(cruxes), tuple(speakers), matrix, tuple(notes))


def _stances(crux: Crux) -> dict[str, str]:
    return {
        **dict.fromkeys(crux.agreeing, str(Stance.AGREE)),
        **dict.fromkeys(crux.disagreeing, str(Stance.DISAGREE)),
        **dict.fromkeys(crux.undecided, str(Stance.UNCLEAR)),
    }


def crux_id(subtopic: str, statement: str) -> str:
    return "x-" + sha256(f"{subtopic}\x1f{statement}".encode()).hexdigest()[:10]
