"""The forms that answers have to fit. Limits are modest: what exceeds them was not meant seriously.

A field's description is part of the schema that the model is given. Lengths that are a matter of
taste are not here: a name of 61 characters is shortened, it is no reason to ask again."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

Name = Annotated[str, Field(max_length=300)]
Text = Annotated[str, Field(max_length=2_000)]
Id = Annotated[str, Field(max_length=40)]
Number = Annotated[int, Field(ge=0, le=1_000_000)]


class SubtopicAnswer(BaseModel):
    name: Name
    description: Text = Field(description="What belongs here, in at most 70 words.")


class TopicAnswer(BaseModel):
    name: Name
    description: Text = Field(description="25 to 35 words.")
    subtopics: list[SubtopicAnswer] = Field(max_length=30)


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
    statement: Text
    quote: Annotated[str, Field(max_length=12_000)] = Field(
        description="Copied letter for letter from the comment."
    )
    subtopic: Id = Field(description="The id of one of the comment's own subtopics.")


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
    statement: Text
    claims: list[Id] = Field(max_length=200, description="Ids of the claims in this group.")


class GroupsAnswer(BaseModel):
    groups: list[GroupAnswer] = Field(max_length=200)


class SentenceAnswer(BaseModel):
    text: Text
    claims: list[Number] = Field(
        max_length=60, description="Numbers of the claims that the sentence rests on."
    )


class SentencesAnswer(BaseModel):
    sentences: list[SentenceAnswer] = Field(max_length=30)


class CruxAnswer(BaseModel):
    divided: bool = Field(description="Whether these people disagree about something that matters.")
    statement: Text = Field(description="Empty if nothing divides them.")
    explanation: Text = Field(description="30 to 500 characters; empty if nothing divides them.")
    agree: list[Number] = Field(
        max_length=400, description="Numbers of the speakers who clearly agree."
    )
    disagree: list[Number] = Field(
        max_length=400, description="Numbers of the speakers who clearly disagree."
    )
    claims: list[Number] = Field(
        max_length=60, description="Numbers of the claims that it rests on, from both sides."
    )
