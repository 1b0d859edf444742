"""The forms that answers have to fit. Limits are modest: what exceeds them was not meant seriously.

A field's description is part of the schema that the model is given. Evidence comes before wording:
a model that has copied the quote, or listed the claims, words what they say and not what it
expected them to say. Lengths that are a matter of taste are not here: a name of 61 characters is
shortened, it is no reason to ask again."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

Name = Annotated[str, Field(max_length=300)]
Text = Annotated[str, Field(max_length=2_000)]
Id = Annotated[str, Field(max_length=40)]
Number = Annotated[int, Field(ge=0, le=1_000_000)]


class SubtopicAnswer(BaseModel):
    description: Text = Field(description="What belongs here, in at most 70 words.")
    name: Name = Field(description="For that, in a few words.")


class TopicAnswer(BaseModel):
    subtopics: list[SubtopicAnswer] = Field(max_length=30)
    description: Text = Field(description="25 to 35 words.")
    name: Name = Field(description="For all of it, in a few words.")


class TopicsAnswer(BaseModel):
    """Topics, the most important first."""

    topics: list[TopicAnswer] = Field(max_length=60)


class AssignmentAnswer(BaseModel):
    id: Id = Field(description="The comment's id.")
    subtopics: list[Id] = Field(
        max_length=12, description='Ids of one to three subtopics, or "other" alone.'
    )


class AssignmentsAnswer(BaseModel):
    comments: list[AssignmentAnswer] = Field(max_length=200)


class ClaimAnswer(BaseModel):
    quote: Annotated[str, Field(max_length=12_000)] = Field(
        description="Copied letter for letter from the comment."
    )
    subtopic: Id = Field(description="The id of one of the comment's own subtopics.")
    statement: Text = Field(description="What the quote claims.")


class CommentAnswer(BaseModel):
    id: Id = Field(description="The comment's id.")
    claims: list[ClaimAnswer] = Field(max_length=60)


class ExtractionAnswer(BaseModel):
    comments: list[CommentAnswer] = Field(max_length=100)


class QuoteAnswer(BaseModel):
    id: Id = Field(description="The entry's id.")
    quote: Annotated[str, Field(max_length=12_000)] = Field(
        description="Copied letter for letter, or empty."
    )


class QuotesAnswer(BaseModel):
    quotes: list[QuoteAnswer] = Field(max_length=100)


class GroupAnswer(BaseModel):
    claims: list[Id] = Field(max_length=200, description="Ids of the claims in this group.")
    statement: Text = Field(description="What all of them say.")


class GroupsAnswer(BaseModel):
    groups: list[GroupAnswer] = Field(max_length=200)


class SentenceAnswer(BaseModel):
    claims: list[Number] = Field(
        max_length=60, description="Numbers of the claims that the sentence rests on."
    )
    text: Text


class SentencesAnswer(BaseModel):
    sentences: list[SentenceAnswer] = Field(max_length=30)


class CruxAnswer(BaseModel):
    claims: list[Number] = Field(
        max_length=60, description="Numbers of the claims that oppose each other, from both sides."
    )
    divided: bool = Field(description="Whether these people disagree about something that matters.")
    statement: Text = Field(description="Empty if nothing divides them.")
    agree: list[Number] = Field(
        max_length=400, description="Numbers of the speakers who clearly agree."
    )
    disagree: list[Number] = Field(
        max_length=400, description="Numbers of the speakers who clearly disagree."
    )
    explanation: Text = Field(description="30 to 500 characters; empty if nothing divides them.")


class NameReviewAnswer(BaseModel):
    id: Id = Field(description="The group's id.")
    claims: list[Number] = Field(
        max_length=60, description="Numbers of the claims that the name does not cover."
    )
    why: Text = Field(description="Empty if the name fits.")
    fits: bool


class NameReviewsAnswer(BaseModel):
    groups: list[NameReviewAnswer] = Field(max_length=60)


class FindingReviewAnswer(BaseModel):
    id: Id = Field(description="The finding's id.")
    claims: list[Number] = Field(
        max_length=60, description="Numbers of the claims that do not support it."
    )
    why: Text = Field(description="Empty if the finding holds.")
    holds: bool


class FindingReviewsAnswer(BaseModel):
    findings: list[FindingReviewAnswer] = Field(max_length=60)
